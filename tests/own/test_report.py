"""What a report says of differences, and what it says of itself."""

import msgspec
import pytest
import torch
from torch_geometric.data import Data

from memohop.own.report import FitReport, make_report
from memohop.own.search import Search
from memohop.own.space import MODELS, Space
from memohop.own.tried import Tried
from memohop.training import Member, MemberResult
from memohop.training.choice import summarise


def right_on(y, wrong):
    """Logits of networks that are wrong on these nodes, a set of them for each split."""
    said = torch.stack([y.clone() for _ in wrong])
    for split, nodes in enumerate(wrong):
        said[split, list(nodes)] = 1 - said[split, list(nodes)]
    return torch.nn.functional.one_hot(said, 2).float()


def searched(graph, wrong, **more):
    """A search of one trial, by the nodes on which each network of each model is wrong."""
    tried, logits = {}, {}
    for model in MODELS:
        trial = Space(model, directed=False, seed=0).first[0]
        logits[model] = right_on(graph.y, wrong[model])
        right = logits[model].argmax(-1) == graph.y
        scores = [float(right[s][graph.test_mask[:, s]].double().mean()) for s in range(2)]
        results = [MemberResult(Member(), 0, 1, 1.0, 0.5, score, None, None) for score in scores]
        tried[model] = (Tried(trial, summarise(results)),)
    stop = {"epochs": 200, "epochs_asked": 200, "stopped": "trials", "seconds": 1.0}
    return Search(tried, logits, **{**stop, **more})


def two_splits(nodes, test):
    """The first and the last nodes are tested, and all others trained on, some to choose."""
    node = torch.arange(nodes)
    tested = torch.stack([node < test, node >= nodes - test], dim=1)
    val = node[:, None].expand(-1, 2) % 4 == 0
    return Data(
        x=torch.zeros(nodes, 1),
        y=node % 2,
        edge_index=torch.tensor([[0], [1]]),
        train_mask=~tested & ~val,
        val_mask=~tested & val,
        test_mask=tested,
        metric="accuracy",
    )


def report(graph, wrong, **more):
    return make_report(searched(graph, wrong, **more), graph, torch.arange(2).numpy())


def test_two_splits_that_agree_do_not_prove_that_the_graph_hurts():
    # One test node of 19 in either split: -5.3 points twice, and a spread of 0.
    graph = two_splits(60, test=19)
    found = report(graph, {"gcn+mmp": [{3}, {50}], "mlp": [(), ()], "gcn": [{3}, {50}]})
    against = found.differences["mlp"]
    assert against.mean == pytest.approx(-1 / 19)
    assert against.low < -0.1
    assert against.high > 0
    assert found.verdict().startswith("It is not clear that the graph helps: gcn+mmp is 5.3 points")
    assert found.differences["gcn"].low == -found.differences["gcn"].high < -0.02


def test_splits_that_agree_on_many_test_nodes_prove_something():
    graph = two_splits(2000, test=600)
    wrong = {"gcn+mmp": [range(200), range(1800, 2000)], "mlp": [(), ()], "gcn": [(), ()]}
    assert report(graph, wrong).verdict().startswith("The graph hurts: gcn+mmp is 33.3 points")


def test_an_interval_that_holds_everything_is_said_to_say_nothing():
    graph = two_splits(60, test=19)
    wrong = {"gcn+mmp": [(), range(50, 60)], "mlp": [range(9), ()], "gcn": [(), ()]}
    found = report(graph, wrong)
    against = found.differences["mlp"]
    assert (against.low, against.high) == (-1, 1)
    assert found.verdict().startswith(
        "Whether the graph helps is not known: 2 splits with 19 test node(s) are too few"
    )


def test_the_spread_over_one_test_set_is_not_taken_for_one_over_splits():
    graph = two_splits(2000, test=600)
    graph.test_mask[:, 1] = graph.test_mask[:, 0]
    graph.train_mask[:600] = False
    wrong = {"gcn+mmp": [range(60), range(66)], "mlp": [(), ()], "gcn": [(), ()]}
    found = report(graph, wrong).differences
    # t of one degree of freedom, times the standard error of two seeds without a correction.
    assert found["mlp"].high - found["mlp"].mean == pytest.approx(12.706 * 0.005, rel=1e-3)


def test_a_report_comes_back_from_json_also_from_version_0_1_0():
    graph = two_splits(60, test=19)
    found = report(graph, {model: [{3}, {50}] for model in MODELS})
    assert msgspec.convert(found.to_json(), FitReport) == found
    old = found.to_json()
    for name in ("epochs_cut", "own_test", "notes", "diverged"):
        del old[name]
    assert msgspec.convert(old, FitReport).verdict() == found.verdict()
