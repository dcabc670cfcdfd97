"""What counts in models, against their outputs, and derivatives by the features themselves."""

from collections import Counter

import lightgbm
import numpy as np
import pytest
import torch
from scipy import sparse

from memohop.explain._contributions import ANY_LABEL, ANY_ROW, reasons, sizes
from memohop.fit._candidate import Setting
from memohop.fit.candidates._extra_trees import ExtraTreesFamily
from memohop.fit.candidates._linear import Linear, LinearFamily
from memohop.fit.candidates._nearest import NearestFamily
from memohop.fit.candidates._network import NetworkFamily
from memohop.fit.candidates._trees import TreeFamily, Trees
from tiny_problem import tiny_problem

NAMES = ["a", "b", "c"]
MARGIN = np.array([-1.0, 1.0, 0.0])  # of the second class over the first
NUMBERS = {"lr": 0.1, "weight_decay": 0.0, "dropout": 0.5, "input_dropout": 0.3, "lam": 0.0}
OPTIONS = {
    "gcn-res": {"num_layers": 2, "hidden_channels": 8},
    "sage-res": {"num_layers": 1, "hidden_channels": 8},
    "dir-gcn": {"num_layers": 2, "hidden_channels": 8},
    "linkx": {"hidden_channels": 8},
    "fsgnn": {"hidden_channels": 8, "hops": 2},
    "gcn+mmp": {"hidden_channels": 8, "labels": "memory", "address": "rows"},
}


def problem_of(classes, as_sparse, *, nodes=60, least=-np.inf):
    """A problem, or one with few of its values, as a sparse matrix."""
    x = tiny_problem(nodes, classes=classes).x
    x = sparse.csr_array(np.where(x > least, x, 0)) if as_sparse else x
    return tiny_problem(nodes, classes=classes, x=x)


def network_of(problem, name, options):
    kind = NetworkFamily(name, epochs=4, patience=4)
    (fits,) = kind.fit(problem, [Setting(name, options, NUMBERS)], [0])
    return fits[0].part


def part_of(problem, kind):
    (fits,) = kind.fit(problem, kind.first(problem)[:1], [0])
    return fits[0].part


def logits(part, problem):
    logarithms = np.log(part.outputs(problem).astype(np.float64))
    return logarithms - logarithms.mean(axis=1, keepdims=True)


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("sees", ["columns", "rows"])
def test_contributions_of_a_linear_model_are_what_sets_a_node_apart(classes, sees):
    problem = tiny_problem(classes=classes)
    part = part_of(problem, LinearFamily("linear", sees))
    said = logits(part, problem)
    apart = (said[7] - said.mean(axis=0))[[1, 0]]
    assert sum(reasons(part, problem, NAMES, 7, MARGIN[:classes]).values()) == pytest.approx(
        apart[0] - apart[1], abs=1e-4
    )


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("as_sparse", [False, True])
def test_contributions_of_trees_add_up_to_the_margin(classes, as_sparse):
    problem = problem_of(classes, as_sparse, nodes=90)
    part = part_of(problem, TreeFamily("lightgbm", "neighbours"))
    features = part.view.features(problem, problem.y)
    dense = features.toarray() if as_sparse else features
    constant = lightgbm.Booster(model_str=part.text).predict(dense[[7]], pred_contrib=True)
    constant = constant.reshape(-1, dense.shape[1] + 1)[:, -1]
    margin = logits(part, problem)[7] @ MARGIN[:classes]
    base = constant[0] if classes == 2 else constant[1] - constant[0]
    assert sum(reasons(part, problem, NAMES, 7, MARGIN[:classes]).values()) + base == pytest.approx(
        margin, abs=1e-4
    )


@pytest.mark.parametrize("as_sparse", [False, True])
def test_sizes_are_means_over_nodes_and_classes(as_sparse):
    problem, expected = problem_of(3, as_sparse, least=0), Counter()
    part = part_of(problem, LinearFamily("linear", "neighbours"))
    features = part.view.features(problem, problem.y)
    dense = features.toarray() if as_sparse else features
    each = (dense - dense.mean(axis=0))[:, :, None] * part.weight
    apart = each - each.mean(axis=2, keepdims=True)
    means = np.abs(apart).mean(axis=(0, 2)).tolist()
    for feature, value in zip(part.view.names(problem, NAMES), means, strict=True):
        expected[feature] += value
    assert sizes(part, problem, NAMES) == pytest.approx(expected, abs=1e-5)


@pytest.mark.parametrize(
    "family", [ExtraTreesFamily("any", "columns"), NearestFamily("any", "columns")]
)
@pytest.mark.parametrize("classes", [0, 2, 3])
@pytest.mark.parametrize("as_sparse", [False, True])
def test_without_logits_that_are_sums_contributions_are_differences(family, classes, as_sparse):
    more = {} if classes else {"y": np.linspace(0, 1, 60)}
    problem = tiny_problem(classes=classes or 2, **more)
    if as_sparse:
        problem = tiny_problem(classes=classes or 2, x=sparse.csr_array(problem.x), **more)
    part, x = part_of(problem, family), tiny_problem(classes=classes or 2, **more).x
    margin = MARGIN[:classes] if classes else np.ones(1)

    def changes(feature):
        """What its mean in place of the feature changes, for all rows."""
        moved = x.copy()
        moved[:, feature] = x[:, feature].mean()
        said = (part.of_features(each).astype(np.float64) for each in (x, moved))
        own, other = (np.log(each) if classes else each for each in said)
        return own - other

    each = [changes(feature) for feature in range(3)]
    told = reasons(part, problem, NAMES, 7, margin)
    expected = [change[7] @ margin for change in each]
    assert [told["own", name] for name in NAMES] == pytest.approx(expected, abs=1e-5)
    if classes == 2:
        each = [change[:, 1:] - change[:, :1] for change in each]
    elif classes:
        each = [change - change.mean(axis=1, keepdims=True) for change in each]
    measured = sizes(part, problem, NAMES)
    means = [np.abs(change).mean() for change in each]
    assert [measured["own", name] for name in NAMES] == pytest.approx(means, abs=1e-5)


def test_the_more_trees_the_fewer_nodes_stand_for_all(monkeypatch):
    """Contributions take time for each tree and node; without a limit, half a minute or hours."""
    problem = tiny_problem(300)
    part, seen = part_of(problem, TreeFamily("lightgbm", "columns")), []
    whole = Trees.contributions

    def counting(self, features):
        seen.append(features.shape[0])
        return whole(self, features)

    monkeypatch.setattr(Trees, "contributions", counting)
    for trees, nodes in ((1, 300), (4000, 100), (10**6, 30)):
        seen.clear()
        monkeypatch.setattr(Trees, "count", trees)
        sizes(part, problem, NAMES)
        assert sum(seen) == nodes


@pytest.mark.parametrize("classes", [2, 3])
def test_a_linear_network_is_a_linear_model(classes):
    problem = tiny_problem(classes=classes)
    part = network_of(problem, "mlp", {"num_layers": 1})
    weight = part.state["first.weight"].numpy() / np.float32(part.scale)
    same = Linear(problem.view("columns"), weight, part.state["first.bias"].numpy())
    measured = sizes(part, problem, NAMES)
    expected = sizes(same, problem, NAMES)
    assert [measured["network", name] for name in NAMES] == pytest.approx(
        [expected["own", name] for name in NAMES], rel=1e-4
    )
    margin = logits(part, problem) @ MARGIN[:classes]
    assert sum(reasons(part, problem, NAMES, 7, MARGIN[:classes]).values()) == pytest.approx(
        margin[7] - margin.mean(), abs=1e-4
    )


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
    gradients = torch.autograd.grad(total, list(leaves.values()), retain_graph=True)
    slopes = dict(zip(leaves, gradients, strict=True))
    x = leaves["x"].detach()
    of_columns = slopes.pop("x") * (x - x.mean(dim=0))
    return of_columns, {name: (slopes[name] * leaves[name].detach()).sum(1) for name in slopes}


@pytest.mark.parametrize("as_sparse", [False, True])
@pytest.mark.parametrize("name", list(OPTIONS))
def test_sizes_are_mean_contributions_over_nodes_and_classes(name, as_sparse):
    problem = problem_of(3, as_sparse, least=1)
    part = network_of(problem, name, OPTIONS[name])
    logits, leaves = slow(part, problem)
    total = torch.zeros(leaves["x"].shape[1])
    others = dict.fromkeys([leaf for leaf in leaves if leaf != "x"], 0.0)
    for number in range(3):
        apart = (logits[:, number] - logits.mean(dim=1)).sum()
        of_columns, rest = contributions(apart, leaves)
        total += of_columns.abs().sum(dim=0) / 180
        for leaf, values in rest.items():
            others[leaf] += float(values.abs().sum()) / 180
    measured = sizes(part, problem, NAMES)
    names = [("network", letter) for letter in NAMES] + [("degree", "degree")]
    assert [measured[key] for key in names] == pytest.approx(total.tolist(), rel=1e-3, abs=1e-6)
    for feature, leaf in ((ANY_LABEL, "labels"), (ANY_ROW, "rows")):
        assert (feature in measured) == (leaf in others)
        assert measured.get(feature, 0) == pytest.approx(others.get(leaf, 0), rel=1e-3, abs=1e-6)


@pytest.mark.parametrize("name", ["gcn-res", "gcn+mmp"])
def test_reasons_tell_a_node_from_those_around_it(name):
    problem = tiny_problem()
    part = network_of(problem, name, OPTIONS[name])
    logits, leaves = slow(part, problem)
    of_columns, others = contributions(logits[7, 1] - logits[7, 0], leaves)
    told = reasons(part, problem, NAMES, 7, MARGIN[:2])
    for column, letter in enumerate(NAMES):
        own = float(of_columns[7, column])
        around = float(of_columns[:, column].sum()) - own
        assert told["own", letter] == pytest.approx(own, rel=1e-3, abs=1e-6)
        assert told["around", letter] == pytest.approx(around, rel=1e-3, abs=1e-6)
    if name == "gcn+mmp":
        assert told[ANY_LABEL] == pytest.approx(float(others["labels"].sum()), rel=1e-3, abs=1e-6)
        rows = {feature.name: value for feature, value in told.items() if feature.source == "rows"}
        assert rows == pytest.approx(
            {f"{k}": float(v) for k, v in enumerate(others["rows"]) if v}, rel=1e-3, abs=1e-6
        )
