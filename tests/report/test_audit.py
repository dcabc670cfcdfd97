"""What an audit prints, for people and for programs, and its page, which stands alone."""

import json
import re
import xml.etree.ElementTree as ET
from dataclasses import replace

import pytest
import torch
from torch_geometric.data import Data

from commands import fails, json_of, run
from memohop.data.audit import audit
from memohop.data.synthetic import csbm
from memohop.report.audit import audit_page, audit_row, audit_sheet
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


@pytest.fixture(scope="module")
def report():
    """Neighbours that are unlike, with splits of few test nodes."""
    return audit(csbm(homophily=0.05, nodes=500))


def test_the_row_is_flat_and_has_the_numbers_and_the_advice():
    row = json.loads(json.dumps(audit_row(audit(csbm(homophily=0.6)), "csbm")))
    assert not any(isinstance(value, dict) for value in row.values())
    assert row["edge_homophily"] == pytest.approx(0.6)
    assert (row["model"], row["direction"]) == ("gcn", "undirected")
    assert row["distrust"] == []


def test_the_sheet_ends_in_advice(report, capsys):
    output_console().print(audit_sheet(report, "made [up]"))
    text = capsys.readouterr().out
    assert "made [up]" in text
    assert "adjusted homophily     -0.18" in text
    assert text.index("advice") < text.index("gcn+mmp: the neighbours") < text.index("distrust")
    assert "one of the 100 test nodes is worth 1.0 points" in text


def test_the_command_takes_tables_and_tells_what_it_did_to_them(capsys, tables):
    out, err = run(capsys, "audit", *tables, "--label", "kind", "--drop-unknown", "--json")
    (row,) = json.loads(out)
    assert (row["nodes"], row["arcs"], row["class_names"]) == (24, 48, ["x", "y"])
    assert row["edge_homophily"] == pytest.approx(2 / 3)
    assert row["split"] is None
    assert "memohop: 1 edge(s) dropped that name unknown nodes, such as 'nobody' (row 25)" in err
    out, err = run(capsys, "audit", *tables, "--label", "kind", "--drop-unknown", "--directed")
    assert "24 (directed, 0 from a node to itself" in out
    assert err.count("\n") == 1  # what needs a look
    told = run(capsys, "audit", *tables, "--label", "kind", "--drop-unknown", "--verbose").err
    assert "column 'age': one feature" in told


def test_mistakes_of_the_command(capsys, tables):
    assert "give the id of a dataset" in fails(capsys, "audit")
    assert "give the id of a dataset" in fails(capsys, "audit", "csbm", *tables)
    assert "both --nodes and --edges" in fails(capsys, "audit", *tables[:2])
    assert "needs --label" in fails(capsys, "audit", *tables)
    assert "did you mean kind" in fails(capsys, "audit", *tables, "--label", "kint")
    assert "cannot be both id and label" in fails(capsys, "audit", *tables, "--label", "id")
    assert "--drop-unknown" in fails(capsys, "audit", *tables, "--label", "kind", code=1)
    assert "no dataset named 'csbn'" in fails(capsys, "audit", "csbn")


def rows(page):
    """From the first cell of a row to the others, in a page that is well-formed."""
    root = ET.fromstring(page.removeprefix("<!DOCTYPE html>\n").replace("&nbsp;", "&#160;"))
    cells = [["".join(cell.itertext()) for cell in row] for row in root.iter("tr")]
    return {name: rest for name, *rest in cells}


def bars(page):
    """The length of each bar, by its kind."""
    return re.findall(r'<i class="(\w+)" style="--part:([\d.]+)">', page)


def test_the_advice_comes_first_and_nothing_is_loaded(report):
    page = audit_page(report, "csbm")
    texts = ["<h2>Begin with gcn+mmp</h2>", *report.advice.reasons, *report.advice.distrust]
    positions = [page.index(text) for text in texts]
    assert positions == sorted(positions)
    assert positions[-1] < page.index("<h2>The graph in numbers</h2>")
    assert len(report.advice.distrust) == 1
    assert "Nothing in particular" not in page
    assert not re.search(r"https?:|//|url\(|@import|<script|<link|<img|src=|href=|{%", page)
    assert "prefers-color-scheme: dark" in page
    assert "@media print" in page
    assert "Nothing in particular" in audit_page(audit(csbm(homophily=0.6)), "csbm")


def test_the_figures_are_those_of_the_audit(report):
    table = rows(audit_page(report, "csbm"))
    assert table["nodes"][0] == "500"
    assert table["arcs"] == [str(report.arcs), "each edge counts both ways"]
    assert table["edge homophily"][0] == f"{report.edge_homophily:.3f}"
    assert report.adjusted_homophily < 0
    assert table["adjusted homophily"][0] == f"\N{MINUS SIGN}{-report.adjusted_homophily:.3f}"
    assert table["label informativeness"][0] == f"{report.label_informativeness:.3f}"
    assert table["test nodes of split 0"][0] == "100"
    assert table["with a twin in training"][0] == str(report.twins)
    assert table["duplicates"][0] == "0"
    for name in ("edge", "node", "class", "adjusted"):
        assert len(table[f"{name} homophily"][1]) > 40  # what it means
    for name, size in zip(report.class_names, report.class_sizes, strict=True):
        assert table[name][:2] == [str(size), f"{size / 5:.0f}\N{NO-BREAK SPACE}%"]


def test_bars_are_as_long_as_what_is_said_and_missing_below_chance(report):
    page = audit_page(replace(report, features_say=-0.07), "csbm")
    assert bars(page)[:3] == [
        ("features", "0.000"),
        ("neighbours", f"{report.neighbours_say:.3f}"),
        ("together", f"{report.together_say:.3f}"),
    ]
    assert rows(page)["features"] == ["\N{MINUS SIGN}0.070", ""]


def test_a_direction_has_its_own_bars_and_table(report):
    directed = replace(
        report, directed=True, direction="out", out_say=0.7, in_say=0.1, neighbours_say=0.7,
        undirected_say=0.4, informativeness_out=0.31, informativeness_in=0.02,
    )  # fmt: skip
    page = audit_page(directed, "csbm")
    of_neighbours = [part for kind, part in bars(page) if kind == "neighbours"]
    assert of_neighbours == ["0.700", "0.100", "0.400"]
    table = rows(page)
    assert table["the nodes that a node points to (the advice)"] == ["0.310", "0.700"]
    assert table["the nodes that point to a node"] == ["0.020", "0.100"]
    assert "±" in table["nodes it points to"][0]
    assert "±" not in table["nodes that point to it"][0]
    assert "The arcs have no direction: each one has its opposite" in audit_page(report, "csbm")


def test_what_cannot_be_told_is_not_made_up():
    lonely = Data(
        x=torch.eye(3), y=torch.tensor([0, 1, -1]), edge_index=torch.zeros(2, 0, dtype=torch.long)
    )
    page = audit_page(audit(lonely), "lonely")
    table = rows(page)
    assert table["edge homophily"][0] == "–"  # noqa: RUF001
    assert "Not measured" in page
    assert "as there are no splits" in page
    assert table["0 (too few)"][0] == "1"
    assert {kind for kind, _ in bars(page)} == {"class"}
    assert not re.search(r"\b(nan|None)\b", page)


def test_many_classes_are_summed_up(report):
    names = tuple(f"kind {place}" for place in range(50))
    many = replace(report, class_names=names, class_sizes=(*range(1, 50), 700))
    table = rows(audit_page(many, "many"))
    shown = [name for name in table if name.startswith("kind ")]
    assert shown[:2] == ["kind 49", "kind 48"]
    assert len(shown) == 40
    assert table["10 smaller classes"][0] == str(sum(range(1, 11)))


def test_names_are_escaped(report):
    odd = ("<script>alert(1)</script>", "a&b", "{{ 7 * 6 }}", '"x" onload="y', "\N{SNOWMAN}")
    page = audit_page(replace(report, class_names=odd, small_classes=odd[:1]), "<img src=x>.csv")
    assert "<script" not in page
    assert "<img" not in page
    assert "<h1>Audit of &lt;img src=x&gt;.csv</h1>" in page
    table = rows(page)
    assert f"{odd[0]} (too few)" in table
    assert all(name in table for name in odd[1:])


def test_the_command_writes_the_page_and_prints_the_sheet_or_rows(capsys, tmp_path):
    (row,) = json_of(capsys, "audit", "csbm")
    assert (row["dataset"], row["nodes"], row["split"]) == ("csbm", 1000, 0)
    page = tmp_path / "audit.html"
    out, err = run(capsys, "audit", "csbm", "-o", page)
    assert "adjusted homophily" in out
    assert err == f"memohop: wrote {page}; open it in a browser\n"
    assert "<h1>Audit of csbm</h1>" in page.read_text(encoding="utf-8")


def test_the_command_writes_nothing_when_it_fails(capsys, tmp_path):
    for name, words, text in (
        ("audit.pdf", [], "give a name that ends in .html"),
        ("nowhere/audit.html", [], "there is no folder"),
        ("audit.html", ["--split", "10"], "split=10 does not exist"),
    ):
        assert text in fails(capsys, "audit", "csbm", "-o", tmp_path / name, *words)
        assert list(tmp_path.iterdir()) == []
