"""The two sides of a speed ratio are the same network, and the table holds what was measured."""

from itertools import count

import pytest
import torch

import memohop
from study import speed
from study.speed import OPTIONS, build_stock, undirected_arcs


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
            copy_layer(stock[1], ours.convs[0], transpose=True)
            copy_layer(stock[4], ours.convs[1])
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


@pytest.fixture
def clock(monkeypatch):
    """Takes every contender's turn once and says that each took a millisecond more than the last.

    So a population, which comes after stock PyG, takes 2 ms, and the graph product 3 ms.
    """
    taken = count(1)

    def take_turns(contenders, device, epochs):
        for contender in contenders:
            contender()
        return [float(next(taken)) for _ in contenders]

    monkeypatch.setattr(speed, "_take_turns", take_turns)


@pytest.mark.usefixtures("clock")
def test_a_row_of_the_table(data):
    row = speed.measure(data, "gcn+mmp", members=4, device=torch.device("cpu"))
    assert (row.dataset, row.model, row.device, row.members) == ("csbm", "gcn+mmp", "cpu", 4)
    assert (row.stock_ms, row.ms, row.ratio) == (1.0, 2.0 / 4, 2.0)
    assert row.floor_share == 6 * 3.0 / 2.0  # six products
    assert row.peak_mb > 0
    assert speed.measure(data, "gat", members=1, device=torch.device("cpu")).floor_share is None


def test_contenders_take_turns_and_the_first_turns_do_not_count(monkeypatch):
    now, turns = 0.0, []

    def contender(name, seconds):
        def run():
            nonlocal now
            turns.append(name)
            warming_up = len(turns) <= 2 * speed._WARM_UP
            now += 100.0 if warming_up else next(seconds)

        return run

    monkeypatch.setattr(speed.time, "perf_counter", lambda: now)
    contenders = [contender("a", iter([1.0, 9.0, 2.0])), contender("b", iter([4.0, 4.0, 5.0]))]
    assert speed._take_turns(contenders, torch.device("cpu"), 3) == [2000.0, 4000.0]
    assert turns == ["a", "b"] * (speed._WARM_UP + 3)


def test_models_without_a_twin_are_named():
    with pytest.raises(memohop.UsageError, match="no stock twin of a model named 'mlp'"):
        build_stock("mlp", 3, 2)
