"""A column that may be the label under another name is told, and hardly any other one is."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

import memohop
from memohop.data.tables import read_graph
from memohop.data.tables.leaks import _by_chance

ROWS = 60
DRAW = np.random.default_rng(0)
LABELS = {
    "two": [f"{'no' if n % 3 else 'yes'}" for n in range(ROWS)],
    "three": [["red", "green", "blue"][n % 3] for n in range(ROWS)],
    "numbers": DRAW.lognormal(size=ROWS).round(3).tolist(),
}
EDGES = {"source": list(range(ROWS)), "target": [(n + 1) % ROWS for n in range(ROWS)]}


def told(label, edges=EDGES, drop=(), labelled=ROWS, **columns):
    """The lines on leaks."""
    known = [value if n < labelled else None for n, value in enumerate(label)]
    nodes = {"id": list(range(ROWS)), "kind": known, "size": DRAW.normal(size=ROWS), **columns}
    graph = read_graph(nodes, edges, label="kind", drop=[*drop])
    return [line for line in graph.warnings if "tells the label" in line]


def as_column(label, number):
    """The label in other words."""
    return {
        "the same": label,
        "words": [f"it is {value}" for value in label],
        "codes": [sorted(map(str, set(label))).index(str(value)) for value in label],
        "with gaps": [None if n % 5 == 0 else value for n, value in enumerate(label)],
        "right only where it is known": [*label[: ROWS - 10], *label[:10]],
    }[number]


@pytest.mark.parametrize("label", ["two", "three"])
@pytest.mark.parametrize(
    "how", ["the same", "words", "codes", "with gaps", "right only where it is known"]
)
def test_classes_under_another_name_are_told(label, how):
    labels = LABELS[label]
    (line,) = told(labels, labelled=ROWS - 10, other=as_column(labels, how))
    assert line.startswith("column 'other' tells the label 'kind' of all ")
    assert f"of all {ROWS - 10 - 10 * (how == 'with gaps')} nodes that have both" in line
    assert line.endswith("leave it out (drop=['other'], --drop other)")
    assert told(labels, drop=["other"], other=as_column(labels, how)) == []


@pytest.mark.parametrize(
    "change",
    [
        lambda y: y,
        lambda y: -2 * y + 5,
        np.log,
        lambda y: y.round(2),
        lambda y: [f"$ {value:,.2f}" for value in y],
        lambda y: y**3 * 1e9,
    ],
)
def test_numbers_that_rise_or_fall_with_the_label_are_told(change):
    y = np.array(LABELS["numbers"])
    (line,) = told(LABELS["numbers"], other=change(y))
    assert "column 'other' tells the label 'kind' of all 60 nodes" in line


def test_a_number_that_divides_two_classes_is_told():
    margin = DRAW.uniform(0.1, 1, ROWS) * np.where(np.array(LABELS["two"]) == "yes", 1, -1)
    assert len(told(LABELS["two"], margin=margin)) == 1
    margin[[0, 1]] = margin[[1, 0]]
    assert told(LABELS["two"], margin=margin) == []
    codes = np.array([{"red": 0, "green": 1, "blue": 2}[label] for label in LABELS["three"]])
    assert told(LABELS["three"], margin=codes + DRAW.uniform(0, 0.5, ROWS)) == []


def test_a_statistic_of_edges_is_told_with_what_it_is_made_of():
    edges = {**EDGES, "paid": [2 * value for value in LABELS["numbers"]]}
    lines = told(LABELS["numbers"], edges)
    assert len(lines) == 3  # the mean, the least and the greatest of one edge
    assert lines[0].startswith("column 'paid of edges from it: mean' tells")
    assert lines[0].endswith("leave out what it is made of (drop=['paid'], --drop paid)")
    assert told(LABELS["numbers"], edges, drop=["paid"]) == []
    degree = np.arange(ROWS) + 1
    many = {"source": np.repeat(np.arange(ROWS), degree), "kind": ["a", "b"] * (degree.sum() // 2)}
    many["target"] = (many["source"] + 1) % ROWS
    (line,) = (line for line in told(degree + 0.5, many) if "'edges from it: number'" in line)
    assert line.endswith("unless new nodes have it, give only edges that a new node has")


@pytest.mark.parametrize(
    ("label", "column"),
    [
        (LABELS["two"], [f"{value}{n % 2}" for n, value in enumerate(LABELS["two"])]),  # finer
        (LABELS["three"], [value == "red" for value in LABELS["three"]]),  # coarser
        (LABELS["two"], ["yes", *LABELS["two"][1:-1], "yes"]),  # one is different
        (LABELS["numbers"], np.array(LABELS["numbers"]) + DRAW.normal(size=ROWS) / 4),
        (LABELS["numbers"], LABELS["two"]),
        (LABELS["numbers"], [f"id {value}" for value in LABELS["numbers"]]),
    ],
)
def test_what_tells_only_some_of_it_is_not_told(label, column):
    assert told(label, other=column) == []


@pytest.mark.parametrize(
    ("sizes", "one_to_one"), [([3, 3], True), ([2, 2, 1], True), ([1, 2, 3], False), ([4, 2], True)]
)
def test_the_bound_holds_for_all_orders_of_labels(sizes, one_to_one):
    """Every order of the labels, against a column that is like one of them."""
    y = np.repeat(np.arange(len(sizes)), sizes)
    orders = {*itertools.permutations(y.tolist())}
    if one_to_one:
        alike = [
            order for order in orders if len({*zip(order, y.tolist(), strict=True)}) == len(sizes)
        ]
    else:
        alike = [order for order in orders if order in {tuple(y), tuple(y[::-1])}]
    assert len(alike) / len(orders) <= _by_chance(y, one_to_one) * (1 + 1e-9)
    assert _by_chance(y, False) == pytest.approx(2 / len(orders))


def test_a_few_labels_prove_nothing():
    few = [
        labelled
        for labelled in range(4, ROWS)
        if told(LABELS["two"], labelled=labelled, other=LABELS["two"])
    ]
    assert 20 < few[0] < 30
    assert few == [*range(few[0], ROWS)]
    numbers = [n for n in range(5, 20) if told(LABELS["numbers"], labelled=n, o=LABELS["numbers"])]
    assert numbers == [*range(10, 20)]
    assert 2 / math.factorial(10) < 1e-6 < 2 / math.factorial(9)


def test_one_label_for_each_node_is_no_leak():
    ids = [f"n{n // 2}" for n in range(ROWS)]  # two nodes of each class
    assert told(ids, other=ids) != []
    nodes = {"id": list(range(12)), "kind": list("aabbccddeeff"), "other": list("ghijklmnopqr")}
    edges = {"source": [0], "target": [1]}
    graph = read_graph(nodes, edges, label="kind")
    assert not any("tells" in line for line in graph.warnings)


def test_many_are_a_few_lines():
    columns = {f"c{n}": LABELS["two"] for n in range(9)}
    nodes = {"id": list(range(ROWS)), "kind": LABELS["two"], **columns}
    graph = read_graph(nodes, EDGES, label="kind")
    assert sum("tells the label" in line for line in graph.warnings) == 5
    assert "the same goes for 4 more: columns 'c5', 'c6', 'c7', 'c8'" in graph.warnings


def test_prepared_tables_are_told_alike_and_later_ones_are_not(files, tmp_path):
    rows = [f"{n},{label},{label}!,{n % 7}" for n, label in enumerate(LABELS["two"])]
    links = [f"{n},{(n + 1) % ROWS}" for n in range(ROWS)]
    paths = files(
        "\n".join(["id,kind,other,size", *rows, ""]), "\n".join(["source,target", *links, ""])
    )
    graph = read_graph(*paths, label="kind")
    prepared = memohop.prepare(*paths, tmp_path / "graph", label="kind")
    (line,) = (line for line in prepared.warnings if "tells" in line)
    assert line in graph.warnings
    again = read_graph(*paths, label="kind", encoder=graph.encoder, classes=graph.classes)
    assert not any("tells" in line for line in again.warnings)
