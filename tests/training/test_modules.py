"""Modules that are not ours: vectorised if possible, otherwise one member at a time."""

import warnings

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import nn
from torch_geometric.nn import GCNConv

from memohop import grid, train
from memohop.training.trainer import AloneWarning
from numerics import seeded
from plain_loop import RowByRow, plain_loop

pytestmark = pytest.mark.usefixtures("float64")


class Ordinary(nn.Module):
    """What a PyG user brings: stock layers, stock dropout."""

    def __init__(self):
        super().__init__()
        self.first, self.second = GCNConv(12, 8), GCNConv(8, 5)

    def forward(self, x, edge_index):
        hidden = F.dropout(self.first(x, edge_index).relu(), 0.5, self.training)
        return self.second(hidden, edge_index)


class WithNorm(Ordinary):
    """Keeps running statistics."""

    def __init__(self):
        super().__init__()
        # A bias before the norm would have a gradient of rounding errors, which Adam magnifies.
        self.first = GCNConv(12, 8, bias=False)
        self.norm = nn.BatchNorm1d(8)

    def forward(self, x, edge_index):
        return self.second(self.norm(self.first(x, edge_index)).relu(), edge_index)


def test_an_ordinary_module_trains_one_member_at_a_time(data):
    members = grid(split=(0, 1), seed=(seeded(3), seeded(4)), lr=0.05)
    torch.manual_seed(seeded(11))
    before = torch.get_rng_state()
    with pytest.warns(AloneWarning, match="one at a time"):
        results = train(data, Ordinary, members, epochs=40)
    assert torch.equal(before, torch.get_rng_state())
    assert results[0].loss_curve[-1] < 0.8 * results[0].loss_curve[0]
    with pytest.warns(AloneWarning):
        (alone,) = train(data, Ordinary, members[2:3], epochs=40)
    assert np.array_equal(alone.loss_curve, results[2].loss_curve)


def test_running_statistics_are_those_of_the_member(data):
    with pytest.warns(AloneWarning, match="changes its buffer norm.running_mean"):
        results = train(
            data, WithNorm, grid(split=0, seed=(seeded(3), seeded(4))), epochs=12, keep_models=True
        )
    for result in results:
        history = plain_loop(data, result.member, WithNorm, 12)
        vals = [epoch.scores[1] for epoch in history]
        np.testing.assert_allclose(result.val_curve, vals, atol=1e-6)


def test_an_ordinary_module_that_can_be_vectorised_is(data):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        results = train(data, lambda: RowByRow(12, 5), grid(split=(0, 1), seed=(0, 1)), epochs=5)
    assert len(results) == 4
