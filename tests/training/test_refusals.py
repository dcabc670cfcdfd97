"""Calls, data and members that cannot be right are refused; the grid of members."""

import pytest
import torch
from torch import nn
from torch_geometric.data import HeteroData

from memohop import Member, UsageError, grid, train

pytestmark = pytest.mark.usefixtures("float64")


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"members": []}, "members is empty"),
        ({"members": [Member(split=99)]}, r"split=99, but the data has 10 split\(s\)"),
        ({"epochs": 0}, "epochs=0 is too small"),
        ({"epochs": 1.5}, "epochs=1.5 is not a whole number"),
        ({"epochs": 10**12}, "one member takes .* for 1000000000000 epochs"),
        ({"patience": 0}, "patience=0 is too small"),
        ({"device": "cuda"}, "sees no GPU here: use device='cpu'"),
        ({"features": "some"}, "features must be one of auto, sparse, dense, not 'some'"),
        ({"model": "gnc"}, "no model named 'gnc'; did you mean .*gcn"),
        ({"model": nn.Linear(1, 1)}, "pass a function that builds it"),
        ({"memory": 10}, "memory=10 bytes is too little: the process holds .*; give more"),
        ({"memory": 10, "members": [Member()]}, "memory=10 bytes is too little"),
        ({"memory": 0.5}, "memory=0.5 is not a whole number"),
    ],
)
def test_bad_calls_are_refused(data, change, words):
    if change.get("device") == "cuda" and torch.cuda.is_available():
        pytest.skip("there is a GPU here")
    call = {"model": "gcn", "members": grid(split=range(2)), "epochs": 2, **change}
    with pytest.raises(UsageError, match=words):
        train(data, call.pop("model"), call.pop("members"), **call)


def test_bad_data_is_refused(data):
    broken = data.clone()
    broken.x = data.x.clone()
    broken.x[3, 1] = float("nan")
    with pytest.raises(UsageError, match="node 3, column 1"):
        train(broken, "gcn", [Member()], epochs=1)


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"lam": -0.1}, "lam=-0.1 is out of range; give a number from 0"),
        ({"lr": 0}, "lr=0 would learn nothing; give a number above 0"),
        ({"lr": 1e39}, "lr=1e.39 is out of range"),
        ({"lr": "much"}, "lr='much' is not a number"),
        ({"weight_decay": float("nan")}, "weight_decay=nan is not a number"),
        ({"dropout": 1.0}, "dropout=1.0 would drop everything; give a number below 1"),
        ({"seed": -1}, "seed=-1 is too small; give a whole number from 0"),
        ({"seed": 2**32}, "seed=4294967296 is too large; give a whole number up to 4294967295"),
        ({"seed": 0.5}, "seed=0.5 is not a whole number"),
    ],
)
def test_bad_members_are_refused(fields, words):
    with pytest.raises(UsageError, match=words):
        Member(**fields)


def test_grid_is_the_product_of_its_axes():
    members = grid(split=range(2), lam=(0, 0.5), lr=0.05)
    assert [(m.split, m.lam, m.lr) for m in members] == [
        (0, 0, 0.05), (0, 0.5, 0.05), (1, 0, 0.05), (1, 0.5, 0.05),
    ]  # fmt: skip


def test_a_graph_of_several_kinds_is_named():
    with pytest.raises(UsageError, match=r"data is a HeteroData; give a Data.*to_homogeneous"):
        train(HeteroData(), "gcn", [Member()])
