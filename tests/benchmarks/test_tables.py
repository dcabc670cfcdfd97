"""The draws of benchmarks/tables.py."""

import csv
import gzip
import sys
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).parents[2] / "benchmarks"))
from table_case import hide_others, read
from tables import wanted

NODES = [[f"{number:05}", "yes" if number % 2 else "no", f"0{number}"] for number in range(40)]


def write(folder: Path, name: str, rows: list[list[str]]) -> None:
    with gzip.open(folder / f"{name}.csv.gz", "wt", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows(rows)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Forty nodes on a ring, whose ids begin with 0; the labels of the last ten are hidden."""
    shown = [
        [name, "" if row >= 30 else label, code] for row, (name, label, code) in enumerate(NODES)
    ]
    edges = [[NODES[row][0], NODES[row - 1][0]] for row in range(40)]
    home = tmp_path / "ring"
    home.mkdir()
    write(home, "nodes", [["id", "label", "code"], *shown])
    write(home, "edges", [["from", "to"], *edges])
    truth = "".join(f"{name},{label}\n" for name, label, _ in NODES[30:])
    (home / "truth.csv").write_text("id,truth\n" + truth, encoding="utf-8")
    return home


def test_another_draw_hides_a_fifth_of_the_known_labels_and_changes_nothing_else(
    folder: Path, tmp_path: Path
) -> None:
    drawn = hide_others(folder, 4, tmp_path)
    with (drawn / "truth.csv").open(encoding="utf-8", newline="") as file:
        _, *truth = csv.reader(file)
    with gzip.open(drawn / "nodes.csv.gz", "rt", encoding="utf-8", newline="") as file:
        _, *nodes = csv.reader(file)
    hidden = dict(truth)
    assert len(hidden) == 6
    assert [*hidden.values()].count("yes") == 3
    assert not {*hidden} & {name for name, _, _ in NODES[30:]}, "labels that nobody has"
    for row, (name, label, code) in enumerate(NODES):
        assert nodes[row] == [name, "" if name in hidden or row >= 30 else label, code]
        assert hidden.get(name, label) == label


def test_draw_0_is_the_graph_as_it_is(folder: Path, tmp_path: Path) -> None:
    assert hide_others(folder, 0, tmp_path) == folder


def test_a_graph_has_its_own_draws_or_those_of_all() -> None:
    draws = wanted(["counties", "books~4", "books~5"], "0,1")
    assert draws == {"counties": [0, 1], "books": [4, 5]}


def test_a_draw_has_the_hidden_nodes_and_their_truth(folder: Path, tmp_path: Path) -> None:
    case = read(hide_others(folder, 4, tmp_path))
    assert len(case.known) == 24
    assert {*case.known, *case.hidden} == {*range(30)}
    assert case.truth.tolist() == [row % 2 for row in case.hidden]
