"""The two sides of a speed ratio are the same network, and the table holds what was measured."""

import pytest
import torch

import memohop
from memohop.bench.speed import growth, measure
from memohop.bench.stock import OPTIONS, build_stock, undirected_arcs


@pytest.fixture(scope="module")
def data():
    return memohop.load("csbm", nodes=60, degree=4, channels=10)


def copy_layer(pyg, ours, transpose=False):
    weight = ours.linear.weight
    pyg.lin.weight.copy_(weight.t() if transpose else weight)
    pyg.bias.copy_(ours.bias)
    if hasattr(pyg, "att_src"):
        pyg.att_src.copy_(ours.send[None])
        pyg.att_dst.copy_(ours.receive[None])


@pytest.mark.usefixtures("float64")
@pytest.mark.parametrize("name", OPTIONS)
def test_the_stock_twin_is_the_same_network(name, data):
    x = data.x.double()
    ours = memohop.build(name, 10, 5, **OPTIONS[name]).eval()
    stock = build_stock(name, 10, 5).eval()
    with torch.no_grad():
        if name == "h2gcn":
            stock.input.weight.copy_(ours.input.weight.t())
            stock.classifier.load_state_dict(ours.classifier.state_dict())
        elif name in ("gcn", "gat"):
            copy_layer(stock.first, ours.convs[0], transpose=True)
            copy_layer(stock.second, ours.convs[1])
        else:
            stock.input.weight.copy_(ours.input.weight.t())
            stock.input.bias.copy_(ours.input.bias)
            for conv, mmp in zip(stock.convs, ours.rounds, strict=True):
                copy_layer(conv, mmp.conv)
            stock.gate.load_state_dict(ours.rounds[0].gate.out.state_dict())
            stock.classifier.load_state_dict(ours.classifier.state_dict())
        output = ours(x, ours.prepare(data.edge_index, data.num_nodes))
        logits = output[0] if isinstance(output, tuple) else output
        torch.testing.assert_close(logits, stock(x, undirected_arcs(data)))


def test_a_row_of_the_table(data):
    row = measure(data, "gcn+mmp", members=3, device=torch.device("cpu"), epochs=2)
    assert (row.dataset, row.model, row.device, row.members) == ("csbm", "gcn+mmp", "cpu", 3)
    assert row.ratio == pytest.approx(row.stock_ms / row.ms)
    assert row.peak_mb > 0
    assert 0 < row.floor_share < 1
    assert measure(data, "gat", members=1, device=torch.device("cpu"), epochs=1).floor_share is None


def test_growth_has_three_axes(monkeypatch):
    monkeypatch.setattr("memohop.bench.speed.csbm", lambda **options: memohop.load(
        "csbm", nodes=40, degree=min(options["degree"], 20), seed=0
    ))  # fmt: skip
    points = list(growth(device=torch.device("cpu"), epochs=1))
    assert {point.axis for point in points} == {"members", "arcs", "width"}
    assert all(point.step_ms > 0 for point in points)


def test_models_without_a_twin_are_named():
    with pytest.raises(memohop.UsageError, match="no stock twin of a model named 'mlp'"):
        build_stock("mlp", 3, 2)
