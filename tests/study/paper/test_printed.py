"""The paper's printed figures, and what can be known from them alone."""

from __future__ import annotations

import math

import pytest

from memohop.data.datasets.registry import datasets
from study.paper.table1 import (
    printed_comparison,
    printed_ranks,
    printed_table1,
    table1_datasets,
    table1_models,
)

TEST_NODES = {"texas": 37, "cornell-legacy": 37, "wisconsin": 51}  # in each of the ten splits


def sums(printed, nodes, runs=10):
    """How many nodes may have been right in all runs; some printed figures are cut, not rounded."""
    total = runs * nodes
    low, high = printed.mean - 0.005, printed.mean + 0.01
    return [k for k in range(total + 1) if low - 1e-9 <= 100 * k / total <= high + 1e-9]


def possible(printed, nodes, ddof, runs=10):
    """Whether whole numbers of nodes can have the printed mean and standard deviation."""
    for total in sums(printed, nodes):
        low, high = (
            total**2 / runs + (runs - ddof) * (std * nodes / 100) ** 2
            for std in (printed.std - 0.005, printed.std + 0.01)
        )
        # A sum of squares is odd where the sum is.
        squares = range(math.ceil(low - 1e-9), math.floor(high + 1e-9) + 1)
        if any(square % 2 == total % 2 for square in squares):
            return True
    return False


def test_there_are_14_models_and_9_datasets():
    assert len(table1_models()) == 14
    assert len(table1_datasets()) == 9
    assert set(printed_table1()) == {(m, d) for m in table1_models() for d in table1_datasets()}
    assert set(table1_datasets()) <= set(datasets())


def test_some_cells():
    cell = printed_table1()["gcn+mmp", "cornell-legacy"]
    assert (cell.mean, cell.std, cell.source) == (82.89, 5.98, "ours")
    cell = printed_table1()["geom-gcn", "pubmed"]
    assert (cell.mean, cell.std, cell.source) == (90.05, None, "copied")
    assert printed_ranks()["gat"] == 12.0


def test_the_printed_ranks_are_not_those_of_the_printed_means():
    comparison = printed_comparison()
    ranks = dict(zip(comparison.models, comparison.ranks, strict=True))
    assert comparison.models[0] == "gcn+mmp"
    expected = {"gcn": 8.50, "gcn+de": 8.78, "geom-gcn": 6.83, "gcn+mmp": 3.00, "gat": 11.89}
    assert {model: ranks[model] for model in expected} == pytest.approx(expected, abs=5e-3)
    right = {model for model, rank in printed_ranks().items() if abs(rank - ranks[model]) <= 0.05}
    assert right == {"mixhop", "gprgnn", "mlp", "gat+jk", "gat+de"}


def test_the_printed_means_tell_few_models_apart():
    comparison = printed_comparison()
    assert comparison.friedman_p == pytest.approx(2.7e-5, abs=5e-7)
    assert comparison.critical_difference == pytest.approx(6.61, abs=5e-3)
    assert {b for a, b in comparison.apart() if a == "gcn+mmp"} == {"gat", "gat+de"}
    assert comparison.differ() == []


def test_the_printed_standard_deviations_are_those_of_samples():
    cells = {
        key: cell for key, cell in printed_table1().items() if key[1] in TEST_NODES and cell.std
    }
    by_ddof = {
        ddof: {k for k, cell in cells.items() if possible(cell, TEST_NODES[k[1]], ddof)}
        for ddof in (0, 1)
    }
    assert by_ddof[0] <= by_ddof[1]
    assert (len(by_ddof[0]), len(by_ddof[1]), len(cells)) == (6, 32, 39)


def test_some_printed_means_are_not_means_of_ten_published_splits():
    impossible = {
        key
        for key, cell in printed_table1().items()
        if key[1] in TEST_NODES and not sums(cell, TEST_NODES[key[1]])
    }
    assert impossible == {
        ("gcn+mmp", "texas"),
        ("gcn+mmp", "wisconsin"),
        ("gcn+mmp", "cornell-legacy"),
        ("gat+mmp", "texas"),
        ("gcn+de", "texas"),
    }
