from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from memohop.data.datasets.registry import describe
from memohop.data.synthetic import csbm, digits
from memohop.errors import UsageError

few = settings(max_examples=25, deadline=None)


@few
@given(
    homophily=st.floats(0, 1),
    nodes=st.integers(60, 150),
    classes=st.integers(2, 6),
    degree=st.floats(0, 8),
    seed=st.integers(0, 2**40),
)
def test_csbm_has_exactly_the_homophily_asked_for(homophily, nodes, classes, degree, seed):
    data = csbm(
        homophily=homophily, nodes=nodes, classes=classes, degree=degree, channels=3, seed=seed
    )
    edges = round(nodes * degree / 2)
    source, target = data.edge_index
    assert data.edge_index.shape == (2, 2 * edges)
    assert data.edge_index.unique(dim=1).shape == (2, 2 * edges)
    assert not (source == target).any()
    assert data.is_undirected()
    assert int((data.y[source] == data.y[target]).sum()) == 2 * round(homophily * edges)
    sizes = data.y.bincount(minlength=classes)
    assert int(sizes.max() - sizes.min()) <= 1


@pytest.mark.parametrize(("homophily", "degree", "edges"), [(1, 3, 18), (0, 8, 48)])
def test_csbm_can_reach_every_pair(homophily, degree, edges):
    data = csbm(homophily=homophily, nodes=12, classes=3, degree=degree)
    same = data.y[:, None] == data.y[None, :]
    wanted = same.fill_diagonal_(False) if homophily else ~same
    assert data.num_edges == 2 * edges
    assert torch.equal(data.edge_index, wanted.nonzero().T)


@pytest.mark.parametrize("homophily", [0, 1])
def test_csbm_draws_pairs_evenly(homophily):
    """Over many seeds every pair comes up as often as any other; the classes have 4, 3 and 3."""
    counts = torch.zeros(10, 10)
    for seed in range(400):
        data = csbm(homophily=homophily, nodes=10, classes=3, degree=1, channels=1, seed=seed)
        order = data.y.argsort(stable=True)
        rank = torch.empty_like(order)
        rank[order] = torch.arange(10)
        counts.index_put_(tuple(rank[data.edge_index]), torch.ones(data.num_edges), accumulate=True)
    label = torch.arange(3).repeat_interleave(torch.tensor([4, 3, 3]))
    same = label[:, None] == label[None, :]
    pairs = (same if homophily else ~same).triu(diagonal=1)
    drawn = counts[pairs]
    mean = 400 * 5 / int(pairs.sum())
    assert drawn.sum() == 400 * 5
    assert (drawn - mean).abs().max() < 5 * mean**0.5


def test_csbm_features_are_strength_times_a_mean_plus_noise():
    none, some = (csbm(strength=strength, channels=500) for strength in (0.0, 2.0))
    means = (some.x - none.x) / 2
    for label in range(5):
        of_class = means[some.y == label]
        assert torch.allclose(of_class, of_class[:1].expand_as(of_class), atol=1e-6)
        assert of_class[0].norm().item() == pytest.approx(1, abs=0.15)
    assert none.x.var().item() == pytest.approx(1 / 500, rel=0.02)
    assert torch.equal(none.edge_index, some.edge_index)


@pytest.mark.parametrize("make", [csbm, digits])
def test_by_default_they_are_what_the_registry_says(make):
    data, info = make(), describe(make.__name__)
    same = data.y[data.edge_index[0]] == data.y[data.edge_index[1]]
    assert data.x.shape == (info.nodes, info.features)
    assert data.num_edges == info.arcs
    assert data.y.unique().tolist() == list(range(info.classes))
    assert same.float().mean().item() == pytest.approx(info.homophily, abs=5e-4)
    assert data.train_mask.shape == (info.nodes, info.splits)
    if make is digits:
        assert (data.x.min().item(), data.x.max().item()) == (0, 1)
    else:
        sizes = [data[f"{part}_mask"].sum(dim=0).unique() for part in ("train", "val", "test")]
        assert sizes == [480, 320, 200]


def test_csbm_seed_decides():
    graph, again, other = (csbm(seed=seed) for seed in (1, 1, 2))
    for key in ("x", "y", "edge_index", "train_mask"):
        assert torch.equal(graph[key], again[key])
        assert not torch.equal(graph[key], other[key])
    assert not (graph.y.diff() >= 0).all()
    otherwise = csbm(seed=1, homophily=0.9)
    assert torch.equal(graph.x, otherwise.x)
    assert torch.equal(graph.y, otherwise.y)
    assert not torch.equal(graph.edge_index, otherwise.edge_index)


def test_csbm_of_a_large_graph_needs_no_list_of_all_pairs():
    data = csbm(nodes=100_000, degree=4, channels=1, splits=1)
    assert data.num_edges == 400_000


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        ({"homophily": 1.2}, r"homophily=1.2"),
        ({"homophily": "high"}, r"homophily='high'"),
        ({"homophily": 1, "nodes": 20, "degree": 10}, "100 edges between nodes of one class.*30"),
        ({"homophily": 0.0, "nodes": 20, "degree": 18}, r"180 edges .* two classes.*160"),
        ({"classes": 1}, "two classes"),
        ({"classes": 0}, "classes=0"),
        ({"nodes": 4}, r"classes=5 is more than nodes=4"),
        ({"nodes": 10.5}, "nodes=10.5"),
        ({"degree": -1}, "degree=-1"),
        ({"channels": 0}, "channels=0"),
        ({"strength": -1}, "strength=-1"),
        ({"seed": -1}, "seed=-1"),
        ({"split": "stratified"}, "stratified"),
        ({"nodes": 10, "degree": 2}, r"class 0 has 2 node.*split='random'"),
    ],
)
def test_csbm_that_cannot_be(options, complaint):
    with pytest.raises(UsageError, match=complaint):
        csbm(**options)


def test_digits_arcs_go_to_the_nearest():
    data = digits(neighbours=3, splits=1)
    distances = torch.cdist(data.x.double(), data.x.double())
    distances.fill_diagonal_(torch.inf)
    third = distances.sort(dim=1).values[:, 2]
    source, target = data.edge_index
    assert source.bincount().tolist() == [3] * 1797
    assert (distances[source, target] <= third[source] + 1e-9).all()


@pytest.mark.parametrize("neighbours", [0, 1797, 2.5])
def test_digits_neighbours_that_cannot_be(neighbours):
    with pytest.raises(UsageError, match=f"neighbours={neighbours}"):
        digits(neighbours=neighbours)
