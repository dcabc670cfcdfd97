"""Gates against local homophily."""

from __future__ import annotations

import json

import numpy as np
import pytest
import torch

from memohop.errors import DataError
from memohop.jobs.named import Settings
from study.paper.gates import Gates, by_homophily, measure_gates
from study.runs.results import Source


def test_bins_are_means_over_rounds_and_nodes_and_spreads_over_splits():
    gates = torch.zeros(2, 2, 4, 3)  # two splits, two rounds
    gates[0, :, :, 0] = torch.tensor([[0.2, 0.4, 0.9, 0.9], [0.4, 0.6, 0.9, 0.9]])
    gates[1, :, :, 0] = 0.8
    gates[:, 0, :, 2], gates[:, 1, :, 2] = 0.25, 0.75  # what the last round passes on is unread
    bins = by_homophily(gates, np.array([0.0, 0.1, 1.0, np.nan]))
    assert [(each.low, each.high, each.nodes) for each in bins] == [(0, 0.2, 2), (0.8, 1, 1)]
    assert bins[0].kept == pytest.approx((0.4 + 0.8) / 2, abs=1e-5)
    assert bins[0].kept_std == pytest.approx(0.4 / 2**0.5, abs=1e-5)
    assert bins[1].kept == pytest.approx((0.9 + 0.8) / 2, abs=1e-5)
    assert [each.passed_on for each in bins] == [0.25, 0.25]
    assert [each.absorbed for each in bins] == [0, 0]


def test_gates_of_trained_networks(tmp_path):
    settings = Settings(
        data={"nodes": 100, "splits": 3, "homophily": 0.5}, epochs=3, lam=0.1,
        options={"hidden_channels": 8},
    )  # fmt: skip
    curve = measure_gates(settings.job("csbm", "gcn+mmp"), protocol="mine")
    assert (curve.dataset, curve.model, curve.lam, curve.splits) == ("csbm", "gcn+mmp", 0.1, 3)
    assert sum(each.nodes for each in curve.bins) <= 100
    for each in curve.bins:
        assert all(0 < value < 1 for value in (each.kept, each.absorbed, each.passed_on))
        assert each.kept_std > 0
    gates = Gates("python -m study bench gates", Source(versions={}, device="none"), (curve,))
    gates.save(tmp_path / "gates.json")
    assert Gates.load(tmp_path / "gates.json") == gates


def test_a_file_that_is_something_else(tmp_path):
    path = tmp_path / "gates.json"
    path.write_text(json.dumps({"curves": []}))
    with pytest.raises(DataError, match=r"not a file of gates .* python -m study bench gates"):
        Gates.load(path)
    with pytest.raises(DataError, match="cannot read the gates"):
        Gates.load(tmp_path / "none.json")
