"""Audits of graphs whose answer is known: literal ones, csbm, and the published files."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from torch_geometric.data import Data

import memohop
from memohop.data.audit import audit
from memohop.data.audit._examine import best_direction
from memohop.data.audit._measures import Said
from memohop.data.datasets.registry import describe
from memohop.data.synthetic import csbm
from memohop.data.tables import read_graph
from memohop.errors import UsageError


def small():
    """Six nodes: two twins (0, 1), a duplicate of 0 (2), a loop (3), one alone (4), one without
    a label (5).
    """
    arcs = [(0, 3), (0, 5), (1, 3), (1, 5), (2, 3), (2, 5), (2, 5), (3, 3), (5, 0)]
    masks = {
        "train_mask": [True, False, False, True, False, False],
        "val_mask": [False, False, True, False, False, False],
        "test_mask": [False, True, False, False, True, False],
    }
    return Data(
        x=torch.tensor([[1.0], [2.0], [1.0], [0.0], [-0.0], [5.0]]),
        y=torch.tensor([0, 0, 1, 1, 0, -1]),
        edge_index=torch.tensor(arcs).T.contiguous(),
        **{name: torch.tensor(mask) for name, mask in masks.items()},
    )


def test_counts_of_a_small_graph():
    report = audit(small())
    assert (report.nodes, report.arcs, report.features) == (6, 9, 1)
    assert (report.class_names, report.class_sizes) == (("0", "1"), (3, 2))
    assert (report.unlabelled, report.isolated) == (1, 1)
    assert (report.self_loops, report.multi_arcs, report.directed) == (1, 1, True)
    assert report.known_sizes == (1, 2)
    assert report.small_classes == ("0", "1")
    assert report.duplicates == 1
    assert (report.split, report.test_nodes) == (0, 2)
    assert (report.twins, report.close_twins) == (1, 1)
    assert report.twin_agreement == 0  # of the validation node 2, twin of 0
    assert report.edge_homophily == pytest.approx(1 / 3)  # 0-3, 1-3 and 2-3 have two labels
    assert report.known_homophily == pytest.approx((1 / 2 - 5 / 8) / (1 - 5 / 8))  # 0-3 and 2-3
    assert (report.features_say, report.neighbours_say) == (None, None)
    assert report.advice.model == "mlp"


def test_an_arc_each_way_is_no_direction():
    data = small()
    data.edge_index = torch.cat([data.edge_index, data.edge_index.flip(0)], dim=1)
    report = audit(data)
    assert not report.directed
    assert report.multi_arcs == 18 - 13  # six edges both ways and the loop are left
    assert report.out_say is None


def test_zero_and_minus_zero_are_the_same_feature():
    data = small()
    data.edge_index = torch.tensor([[0, 1], [1, 0]])
    assert audit(data).duplicates == 1  # 4 of 3


def test_without_splits_there_are_no_twins_and_twins_of_other_classes_do_not_agree():
    data = small()
    data.train_mask = torch.tensor([True, False, True, True, False, False])
    data.val_mask = torch.tensor([False, True, False, False, False, True])
    data.test_mask = torch.tensor([False, False, False, False, True, False])
    report = audit(data)
    assert (report.twins, report.twin_agreement) == (0, 0.5)
    del data.train_mask, data.val_mask, data.test_mask
    bare = audit(data)
    assert (bare.split, bare.test_nodes, bare.twins, bare.twin_agreement) == (None, 0, 0, None)


@pytest.mark.parametrize(
    ("name", "model", "direction", "twins", "percent"),
    [
        ("chameleon", "gcn+mmp", "out", 306, 67),
        ("squirrel", "gcn+mmp", "out", 652, 63),
        ("chameleon-filtered", "gcn+mmp", "undirected", 12, None),
        ("cora", "gcn", "undirected", None, None),
        ("actor", "mlp", "undirected", None, None),
        ("minesweeper", "gcn+mmp", "undirected", None, None),
    ],
)
def test_advice_on_published_graphs(name, model, direction, twins, percent, data_root):
    report = memohop.audit(memohop.load(name, root=data_root))
    assert (report.advice.model, report.advice.direction) == (model, direction)
    assert twins in (report.twins, None)
    leaks = [text for text in report.advice.distrust if "leak" in text]
    assert bool(leaks) == (percent is not None)
    if leaks:
        assert f"{percent}% of the test nodes" in leaks[0]
        assert f"{percent} %" in describe(name).note
        assert report.twin_agreement > 0.99


ADVISED = {0: "gcn+mmp", 0.05: "gcn+mmp", 0.2: "mlp", 0.35: "gcn+mmp", 0.5: "gcn", 0.9: "gcn"}


@pytest.mark.parametrize(("homophily", "model"), ADVISED.items())
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_the_model_for_csbm_follows_its_homophily(homophily, model, seed):
    report = audit(csbm(homophily=homophily, seed=seed))
    assert report.advice.model == model
    assert report.edge_homophily == pytest.approx(homophily)
    # Five classes of equal size: chance is a fifth.
    assert report.adjusted_homophily == pytest.approx((homophily - 0.2) / 0.8, abs=0.01)
    if homophily != 0.35:  # where the gain is near the margin
        little = any("expect little" in reason for reason in report.advice.reasons)
        assert little == (model == "mlp")


def test_what_features_say_does_not_depend_on_the_graph_and_what_neighbours_say_does():
    reports = [audit(csbm(homophily=homophily, seed=3)) for homophily in (0.2, 0.4, 0.6, 0.8)]
    said = [report.neighbours_say for report in reports]
    assert said == sorted(said)
    assert said[0] < 0.1
    assert said[-1] > 0.9
    for report in reports:
        assert report.together_say > max(report.features_say, report.neighbours_say) - 0.05
    mute = audit(csbm(homophily=0.2, strength=0, seed=3))
    assert abs(mute.features_say) < 0.1
    assert "neither features nor neighbours say anything" in "\n".join(mute.advice.distrust)


def with_twins():
    """Every node of a `csbm` and its copy, which may be in another set; one class is large."""
    data = csbm(homophily=0.6, nodes=300, classes=3, splits=1)
    nodes, arcs = data.num_nodes, data.edge_index
    data.x, data.y = data.x.repeat(2, 1), (data.y % 2).repeat(2)
    data.y[[0, nodes]] = 2
    data.edge_index = torch.cat([arcs, arcs + torch.tensor([[nodes], [0]])], dim=1)
    order = torch.randperm(2 * nodes, generator=torch.Generator().manual_seed(0))
    for number, name in enumerate(("train_mask", "val_mask", "test_mask")):
        data[name] = order % 3 == number
    return data


@pytest.mark.parametrize("make", [lambda: csbm(homophily=0.45, seed=4), with_twins, small])
@pytest.mark.parametrize("seed", [0, 1])
def test_the_labels_of_test_nodes_are_not_looked_at_for_advice(make, seed):
    data = make()
    before = audit(data)
    if make is with_twins:  # there is something to go by
        assert before.twin_agreement > 0.9
        assert any("leak" in text for text in before.advice.distrust)
    test = data.test_mask.reshape(data.num_nodes, -1)[:, 0]
    generator, classes = torch.Generator().manual_seed(seed), int(data.y.max()) + 1
    data.y[test] = torch.randint(classes, (int(test.sum()),), generator=generator)
    after = audit(data)
    assert after.advice == before.advice
    for name in ("features_say", "neighbours_say", "together_say", "known_homophily", "twins"):
        assert getattr(after, name) == getattr(before, name)


def test_homophily_is_that_of_all_labels_as_in_papers():
    data = csbm(homophily=0.6, seed=4)
    before = audit(data)
    test = data.test_mask[:, 0]
    data.y[test] = (data.y[test] + 1) % 5
    assert audit(data).edge_homophily < before.edge_homophily
    assert audit(data, split=1).features_say != before.features_say


def test_nodes_in_no_set_are_not_looked_at_either():
    data = csbm(homophily=0.6, seed=4, fractions=(0.3, 0.3, 0.2))
    before = audit(data).advice
    data.y[~(data.train_mask | data.val_mask | data.test_mask)[:, 0]] = 0
    assert audit(data).advice == before


def one_way(turned=False):
    """A node points to three of its own class, and is pointed to by anyone, often."""
    generator = np.random.default_rng(0)
    nodes = 600
    y = generator.permutation(nodes) % 3
    arcs = [
        (node, other)
        for node in range(nodes)
        for other in generator.choice(np.flatnonzero(y == y[node]), 3)
    ]
    noisy = generator.choice(nodes, 60, replace=False)
    arcs += [(node, other) for node in noisy for other in generator.choice(nodes, 150)]
    edge_index = torch.tensor(np.array(arcs).T.copy())
    x = torch.from_numpy(generator.normal(size=(nodes, 4)).astype("float32"))
    return Data(x=x, y=torch.from_numpy(y), edge_index=edge_index.flip(0) if turned else edge_index)


def test_the_direction_that_tells_is_advised():
    out, into = audit(one_way()), audit(one_way(turned=True))
    assert (out.direction, into.direction) == ("out", "in")
    assert out.out_say == pytest.approx(into.in_say, abs=0.02)
    assert out.out_say > out.undirected_say + 0.1
    assert "direction: out" in out.advice.reasons[-1]
    both = one_way()
    both.edge_index = torch.cat([both.edge_index, both.edge_index.flip(0)], dim=1)
    assert audit(both).direction == "undirected"


def test_a_direction_is_advised_only_by_a_margin():
    assert best_direction({"out": Said(0.5, 0.01), "undirected": Said(0.47, 0.01)}) == "out"
    assert best_direction({"out": Said(0.5, 0.02), "undirected": Said(0.47, 0.01)}) == "undirected"
    assert best_direction({"in": Said(0.5, 0.001), "undirected": Said(0.485, 0.01)}) == "undirected"


@pytest.mark.parametrize(
    ("change", "just_below", "word"),
    [
        ({"close_twins": 20, "twin_agreement": 0.9}, {"close_twins": 19}, "leak"),
        ({"duplicates": 10}, {"duplicates": 9}, "the same features and links"),
        ({"small_classes": ("rare",)}, {"small_classes": ()}, "class rare"),
        ({"known_sizes": (750, 250)}, {"known_sizes": (749, 251)}, "75% of the labels"),
        ({"test_nodes": 199}, {"test_nodes": 200}, "one of the 199 test nodes is worth 0.5 points"),
        ({"isolated": 100}, {"isolated": 99}, "100 of 1000 nodes have no neighbour"),
        ({"features_say": 0.04, "neighbours_say": 0.04}, {"features_say": 0.2}, "expect chance"),
    ],
)
def test_each_rule_of_distrust_by_itself(change, just_below, word):
    sound = audit(csbm(homophily=0.6))
    assert sound.advice.distrust == ()
    (text,) = replace(sound, **change).advice.distrust
    assert word in text
    assert replace(sound, **change | just_below).advice.distrust == ()


def test_classes_have_the_names_of_the_table():
    rows = [(n, n % 7, ("dog", "cat")[n % 2]) for n in range(30)]
    nodes = dict(zip(("id", "v", "kind"), zip(*rows, strict=True), strict=True))
    edges = {"source": list(range(29)), "target": list(range(1, 30))}
    report = audit(read_graph(nodes, edges, label="kind"))
    assert (report.class_names, report.class_sizes) == (("cat", "dog"), (15, 15))
    assert report.edge_homophily == 0
    assert report.label_informativeness == 1
    assert report.advice.model == "gcn+mmp"


@pytest.mark.parametrize("width", [60, 70])
def test_sparse_features_are_audited_as_dense_ones_are(width):
    data = csbm(nodes=90, classes=3, degree=4)
    words = np.zeros((90, width), dtype=np.float32)
    words[np.arange(90), np.arange(90) % width] = 1
    words[np.arange(90), 20 * data.y.numpy()] += 1
    data.x = torch.from_numpy(words)
    expected = audit(data)
    data.x = data.x.to_sparse_csr()
    report = audit(data)
    assert report.duplicates == expected.duplicates
    assert report.features_say == pytest.approx(expected.features_say, abs=1e-3)


@pytest.mark.parametrize("change", ["no arcs", "wide features", "one class", "many nodes"])
def test_odd_graphs_are_audited_too(change, monkeypatch):
    data = csbm(nodes=60, classes=3, degree=4)
    if change == "no arcs":
        data.edge_index = torch.zeros((2, 0), dtype=torch.int64)
    elif change == "wide features":
        data.x = torch.rand(60, 200)
    elif change == "one class":
        data.y[:] = 0
    else:
        monkeypatch.setattr("memohop.data.audit._measures._NODES", 30)
    report = audit(data)
    assert (report.isolated == 60) == (change == "no arcs")
    assert (report.edge_homophily is None) == (change == "no arcs")
    assert (report.adjusted_homophily is None) == (change in ("no arcs", "one class"))
    assert (report.features_say is None) == (change == "one class")


def test_mistakes():
    data = small()
    with pytest.raises(UsageError, match="split=1 does not exist; give one from 0 to 0"):
        audit(data, split=1)
    data.y[:] = -1
    with pytest.raises(UsageError, match="data is of type int and no graph"):
        audit(3)
    with pytest.raises(UsageError, match="no label"):
        audit(data)
    data.edge_index = torch.tensor([[0], [9]])
    with pytest.raises(UsageError, match="arc 0 points outside"):
        audit(data)


def test_features_that_leave_no_doubt_give_no_warning():
    """Warnings are errors here: the logarithm of a probability of 0 was one."""
    generator = torch.Generator().manual_seed(0)
    y = torch.arange(200) % 2
    x = 1e4 * (2.0 * y[:, None] - 1) + torch.randn(200, 3, generator=generator)
    x[0] = 1e9  # far beyond what the scaler has seen
    arcs = torch.stack([torch.arange(200), (torch.arange(200) + 2) % 200])
    report = memohop.audit(Data(x=x, y=y, edge_index=arcs))
    assert report.edge_homophily == 1.0
