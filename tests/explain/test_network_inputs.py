"""What counts in networks, against linear models and derivatives by the features themselves."""

import numpy as np
import pytest
import torch
from scipy import sparse

from memohop.explain.contributions import mean_sizes
from memohop.explain.network_inputs import ANY_LABEL, ANY_ROW, network_reasons, network_sizes
from memohop.fit.candidates.family import Setting
from memohop.fit.candidates.linear import Linear
from memohop.fit.candidates.networks import NetworkFamily
from memohop.fit.candidates.spaces import SPACES
from tiny_problem import tiny_problem

NAMES = ["a", "b", "c"]
NUMBERS = {"lr": 0.1, "weight_decay": 0.0, "dropout": 0.5, "input_dropout": 0.3, "lam": 0.0}
OPTIONS = {
    "gcn-res": {"num_layers": 2, "hidden_channels": 8},
    "sage-res": {"num_layers": 1, "hidden_channels": 8},
    "dir-gcn": {"num_layers": 2, "hidden_channels": 8},
    "linkx": {"hidden_channels": 8},
    "fsgnn": {"hidden_channels": 8, "hops": 2},
    "gcn+mmp": {"hidden_channels": 8, "labels": "memory", "address": "rows"},
}


def part_of(problem, name, options):
    kind = NetworkFamily(name, SPACES[name], epochs=4, patience=4)
    (fits,) = kind.fit(problem, [Setting(name, options, NUMBERS)], [0], keep=True)
    return fits[0].part


@pytest.mark.parametrize("classes", [2, 3])
def test_a_linear_network_is_a_linear_model(classes):
    problem = tiny_problem(classes=classes)
    part = part_of(problem, "mlp", {"num_layers": 1})
    weight = part.state["first.weight"].numpy() / np.float32(part.scale)
    same = Linear(problem.view("columns"), weight, part.state["first.bias"].numpy())
    found = network_sizes(part, problem, NAMES)
    expected = mean_sizes(same, problem)
    assert [found["network", name] for name in NAMES] == pytest.approx(expected, rel=1e-4)
    reasons = network_reasons(part, problem, NAMES, 7, 1, 0)
    logits = np.log(part.outputs(problem).astype(np.float64))
    margin = logits[:, 1] - logits[:, 0]
    assert sum(reasons.values()) == pytest.approx(margin[7] - margin.mean(), abs=1e-4)


def slow(part, problem):
    """Logits, features, labels and rows, with everything to differentiate by."""
    network, data = part.ready(problem)
    x = torch.from_numpy(data.x.toarray()) if sparse.issparse(data.x) else data.x
    x.requires_grad_()
    leaves = {"x": x}
    if part.takes_labels:
        leaves["labels"] = network.known.requires_grad_()
    for name in network.per_node:
        leaves["rows"] = network.get_parameter(name)
    with torch.enable_grad():
        output = network(x, network.prepare_data(data, "cpu"))
    return (output[0] if isinstance(output, tuple) else output), leaves


def contributions(total, leaves):
    found = torch.autograd.grad(total, list(leaves.values()), retain_graph=True)
    slopes = dict(zip(leaves, found, strict=True))
    x = leaves["x"].detach()
    of_columns = slopes.pop("x") * (x - x.mean(dim=0))
    return of_columns, {name: (slopes[name] * leaves[name].detach()).sum(1) for name in slopes}


@pytest.mark.parametrize("as_sparse", [False, True])
@pytest.mark.parametrize("name", list(OPTIONS))
def test_sizes_are_mean_contributions_over_nodes_and_classes(name, as_sparse):
    problem = tiny_problem(classes=3)
    if as_sparse:
        few = np.where(problem.x > 1, problem.x, 0)
        problem = tiny_problem(classes=3, x=sparse.csr_array(few))
    part = part_of(problem, name, OPTIONS[name])
    logits, leaves = slow(part, problem)
    total = torch.zeros(leaves["x"].shape[1])
    others = dict.fromkeys([one for one in leaves if one != "x"], 0.0)
    for number in range(3):
        apart = (logits[:, number] - logits.mean(dim=1)).sum()
        of_columns, rest = contributions(apart, leaves)
        total += of_columns.abs().sum(dim=0) / 180
        for one, values in rest.items():
            others[one] += float(values.abs().sum()) / 180
    found = network_sizes(part, problem, NAMES)
    names = [("network", letter) for letter in NAMES] + [("degree", "degree")]
    assert [found[one] for one in names] == pytest.approx(total.tolist(), rel=1e-3, abs=1e-6)
    for feature, one in ((ANY_LABEL, "labels"), (ANY_ROW, "rows")):
        assert (feature in found) == (one in others)
        assert found.get(feature, 0) == pytest.approx(others.get(one, 0), rel=1e-3, abs=1e-6)


@pytest.mark.parametrize("name", ["gcn-res", "gcn+mmp"])
def test_reasons_tell_a_node_from_those_around_it(name):
    problem = tiny_problem()
    part = part_of(problem, name, OPTIONS[name])
    logits, leaves = slow(part, problem)
    of_columns, others = contributions(logits[7, 1] - logits[7, 0], leaves)
    found = network_reasons(part, problem, NAMES, 7, 1, 0)
    for column, letter in enumerate(NAMES):
        own = float(of_columns[7, column])
        around = float(of_columns[:, column].sum()) - own
        assert found["own", letter] == pytest.approx(own, rel=1e-3, abs=1e-6)
        assert found["around", letter] == pytest.approx(around, rel=1e-3, abs=1e-6)
    if name == "gcn+mmp":
        assert found[ANY_LABEL] == pytest.approx(float(others["labels"].sum()), rel=1e-3, abs=1e-6)
        rows = {one.name: value for one, value in found.items() if one.source == "rows"}
        assert rows == pytest.approx(
            {f"{k}": float(v) for k, v in enumerate(others["rows"]) if v}, rel=1e-3, abs=1e-6
        )
