"""The distance within which nine of ten new numbers are."""

from __future__ import annotations

import math

import numpy as np
import pytest

from memohop import GraphRegressor
from memohop.fit.conformal import reach
from tiny_problem import ring, tiny_problem


@pytest.mark.parametrize("nodes", [1, 8, 9, 18, 19, 29, 100])
def test_it_is_the_distance_of_the_rank_that_nine_of_ten_new_nodes_do_not_exceed(nodes):
    """A new node has any of ``nodes + 1`` ranks with the same probability."""
    distances = np.random.default_rng(0).permutation(nodes) + 1.0
    least = next((rank for rank in range(nodes + 1) if 10 * rank >= 9 * (nodes + 1)), math.inf)
    assert reach(distances) == least


def test_each_group_counts_once():
    far = np.array([1.0] * 30 + [*range(2, 10)])  # a group of 30 nodes and eight of one
    assert reach(far, np.minimum(np.arange(38)[::-1], 8)) == 9
    assert reach(far) == 7  # 36 of the 38 nodes are within it
    assert reach(far[:-1], np.minimum(np.arange(37)[::-1], 7)) == math.inf
    spread = np.arange(40.0)  # ten groups of four: 9.9 of them, all nodes but one at most
    assert reach(spread, np.arange(40) % 10) == 39
    assert reach(np.tile(spread, 2), np.arange(80) // 4) == 37  # 18.9 of twenty groups


def test_groups_of_numbers_that_belong_together_are_covered():
    """Numbers that a group shares, and a new group: too few nodes are within the distance of nodes
    that are taken for independent."""
    generator, covered = np.random.default_rng(0), np.zeros(2)
    for _ in range(300):
        groups = np.repeat(np.arange(15), generator.integers(1, 12, 15))
        shared = generator.normal(size=16)
        far = np.abs(shared[groups] + 0.1 * generator.normal(size=len(groups)))
        new = abs(shared[15] + 0.1 * generator.normal())
        covered += new <= np.array([reach(far, groups), reach(far)])
    assert covered[0] >= 0.9 * 300 - 3 * np.sqrt(300 * 0.09)
    assert covered[0] > covered[1]


@pytest.mark.parametrize("given", ["nodes", "groups"])
def test_too_few_for_an_interval_are_told(given, tmp_path):
    x = tiny_problem().x
    y = np.where(np.arange(60) < (10 if given == "nodes" else 60), 7.0 * x[:, 0], np.nan)
    groups = None if given == "nodes" else np.arange(60) % 10
    model = GraphRegressor(models=["linear"], trials=1, time=None, splits=2)
    model.fit(x, y, ring(60), groups=groups).save(tmp_path / "model")
    report = GraphRegressor.load(tmp_path / "model").report_
    assert report.residual == math.inf
    few = "validation nodes" if given == "nodes" else "groups of validation nodes"
    assert f"too few {few} to tell how close" in report.verdict()
    assert np.isinf(model.predict_interval()).all()
