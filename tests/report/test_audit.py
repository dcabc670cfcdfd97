"""What an audit prints, for people and for programs."""

from __future__ import annotations

import json

import pytest

from memohop.cli import main
from memohop.data.audit import audit
from memohop.data.synthetic import csbm
from memohop.report.audit import audit_row, audit_sheet
from memohop.report.terminal import output_console

NODES = "id,age,kind\n" + "".join(
    f"n{n},{n * n % 11},{('x', 'y')[n // 3 % 2]}\n" for n in range(24)
)
EDGES = "source,target\n" + "".join(f"n{n},n{(n + 1) % 24}\n" for n in range(24))


@pytest.fixture
def tables(tmp_path):
    (tmp_path / "nodes.csv").write_text(NODES)
    (tmp_path / "edges.csv").write_text(EDGES + "n0,nobody\n")
    return ["--nodes", str(tmp_path / "nodes.csv"), "--edges", str(tmp_path / "edges.csv")]


def fails(capsys, *arguments, code=2):
    """The one line on standard error of a command that fails."""
    assert main(["audit", *arguments]) == code
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("memohop: ")
    assert err.count("\n") == 1
    return err


def test_the_row_is_flat_and_has_the_numbers_and_the_advice():
    found = audit(csbm(homophily=0.6))
    row = json.loads(json.dumps([audit_row(found, "csbm")]))[0]
    assert not any(isinstance(value, dict) for value in row.values())
    assert row["dataset"] == "csbm"
    assert row["edge_homophily"] == pytest.approx(0.6)
    assert (row["model"], row["direction"]) == ("gcn", "undirected")
    assert row["distrust"] == []


def test_the_sheet_ends_in_advice(capsys):
    found = audit(csbm(homophily=0.05, nodes=500))
    output_console().print(audit_sheet(found, "made [up]"))
    text = capsys.readouterr().out
    assert "made [up]" in text
    assert "adjusted homophily     -0.18" in text
    assert (
        text.index("advice") < text.index("gcn+mmp: the neighbours tell") < text.index("distrust")
    )
    assert "one of the 100 test nodes is worth 1.0 points" in text


def test_the_command_takes_a_dataset(capsys):
    assert main(["audit", "csbm", "--json"]) == 0
    (row,) = json.loads(capsys.readouterr().out)
    assert (row["dataset"], row["nodes"], row["split"]) == ("csbm", 1000, 0)


def test_the_command_takes_tables_and_tells_what_it_did_to_them(capsys, tables):
    assert main(["audit", *tables, "--label", "kind", "--drop-unknown", "--json"]) == 0
    out, err = capsys.readouterr()
    (row,) = json.loads(out)
    assert (row["nodes"], row["arcs"], row["class_names"]) == (24, 48, ["x", "y"])
    assert row["edge_homophily"] == pytest.approx(2 / 3)
    assert row["split"] is None
    assert "memohop: 1 edge(s) dropped that name unknown nodes, such as 'nobody' (row 25)" in err
    assert main(["audit", *tables, "--label", "kind", "--drop-unknown", "--directed"]) == 0
    out, err = capsys.readouterr()
    assert "24 (directed, 0 from a node to itself" in out
    assert err.count("\n") == 1  # what needs a look
    assert main(["audit", *tables, "--label", "kind", "--drop-unknown", "--verbose"]) == 0
    assert "column 'age': one feature" in capsys.readouterr().err


def test_mistakes_of_the_command(capsys, tables):
    assert "give the id of a dataset" in fails(capsys)
    assert "give the id of a dataset" in fails(capsys, "csbm", *tables)
    assert "both --nodes and --edges" in fails(capsys, *tables[:2])
    assert "needs --label" in fails(capsys, *tables)
    assert "did you mean kind" in fails(capsys, *tables, "--label", "kint")
    assert "cannot be both id and label" in fails(capsys, *tables, "--label", "id")
    assert "--drop-unknown" in fails(capsys, *tables, "--label", "kind", code=1)
    assert "no dataset named 'csbn'" in fails(capsys, "csbn")
    assert "split=10 does not exist" in fails(capsys, "csbm", "--split", "10")
