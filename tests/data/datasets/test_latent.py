import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.spatial import procrustes
from sklearn.manifold import Isomap

import memohop
from memohop.data.arcs import adjacency
from memohop.data.datasets import latent
from memohop.errors import UsageError

few = settings(max_examples=25, deadline=None)
HEADER = "node1,node2\tspace\trelation_type"
SPACES = ("graph", "latent_space")


def links_of(pairs, nodes):
    return adjacency(torch.tensor(pairs).T, nodes, direction="undirected")


def divisions_of(neighbours):
    """The division of every arc."""
    arcs = map(tuple, neighbours.arcs.t().tolist())
    return dict(zip(arcs, neighbours.division.tolist(), strict=True))


def grid(rows, columns):
    node = np.arange(rows * columns).reshape(rows, columns)
    pairs = [*zip(node[1:].flat, node[:-1].flat, strict=True)]
    pairs += zip(node[:, 1:].flat, node[:, :-1].flat, strict=True)
    return links_of(np.array(pairs), node.size)


# Files


@few
@given(data=st.data(), nodes=st.integers(1, 9))
def test_what_is_written_is_read_back(data, nodes, tmp_path_factory):
    end = st.integers(0, nodes - 1)
    line = st.tuples(end, end, st.sampled_from(SPACES), st.integers(0, 3))
    lines = data.draw(st.lists(line, max_size=30, unique_by=lambda line: line[:3]))
    path = tmp_path_factory.mktemp("latent") / "file.txt"
    path.write_text("\n".join([HEADER, *(f"{a},{b}\t{s}\t{p}" for a, b, s, p in lines)]) + "\n")
    expected = {}
    for space in SPACES:  # an arc of both is of the latent space
        expected |= {
            (a, b): position + 4 * SPACES.index(space)
            for a, b, s, position in lines
            if s == space and a != b
        }
    divisions = divisions_of(latent.read_neighbours(path, nodes=nodes))
    assert list(divisions) == sorted(expected)
    assert divisions == expected


IN_LATENT_SPACE = {
    "texas": 540, "wisconsin": 503, "cornell": 241, "chameleon": 254, "cora": 9566, "citeseer": 7579
}  # fmt: skip


@pytest.mark.parametrize("name", IN_LATENT_SPACE)
def test_published_files_tell_the_position_of_every_arc(name, data_root):
    divisions = divisions_of(latent.PublishedNeighbours(name, data_root).read())
    of_graph = {arc: division for arc, division in divisions.items() if division < 4}
    assert len(divisions) - len(of_graph) == IN_LATENT_SPACE[name]
    assert set(of_graph.values()) == {0, 1, 2, 3}
    data = memohop.load(name, root=data_root)
    links = adjacency(
        data.edge_index, data.num_nodes, direction="undirected", self_loops="remove"
    ).tocoo()
    arcs = set(zip(*(ends.tolist() for ends in links.coords), strict=True))
    assert of_graph.keys() <= arcs <= divisions.keys()


# Embeddings


def test_isomap_equals_that_of_scikit_learn_up_to_mirroring():
    links = grid(4, 7)
    weights = links.toarray()
    weights[weights == 0] = 9  # further than the radius
    np.fill_diagonal(weights, 0)
    reference = Isomap(n_neighbors=None, radius=1, metric="precomputed").fit_transform(weights)
    points = latent.isomap(links)
    expected = reference / np.abs(reference).max()
    signs = np.sign((points * expected).sum(0))
    np.testing.assert_allclose(points * signs, expected, atol=1e-5)


def test_landmarks_place_the_nodes_of_a_large_graph_where_all_paths_would(monkeypatch):
    links = grid(15, 25)
    exact = latent.isomap(links)
    monkeypatch.setattr(latent, "_LANDMARKS", 100)
    _, _, disparity = procrustes(exact, latent.isomap(links))
    assert 0 < disparity < 0.01


def test_isomap_keeps_parts_apart_and_twins_together():
    pairs = [(0, 1), (1, 2), (0, 2), (3, 4), (3, 5)]  # 4 and 5 have the same neighbour
    points = latent.isomap(links_of(pairs, 7))
    assert np.abs(points).max() == 1
    parts = [points[:3], points[3:6]]
    within = max(np.ptp(part, axis=0).max() for part in parts)
    assert np.linalg.norm(parts[0].mean(0) - parts[1].mean(0)) > within / 2
    assert points[4].tolist() == points[5].tolist()


def test_poincare_brings_neighbours_near_and_repeats_itself():
    data = memohop.load("csbm", nodes=100, classes=3, degree=6, homophily=0.95, seed=0)
    arcs, links = data.edge_index.numpy(), links_of(data.edge_index.T.tolist(), 100)
    points = latent.poincare(links)
    assert np.square(points).sum(1).max() < 1
    np.testing.assert_array_equal(points, latent.poincare(links))
    others = np.random.default_rng(0).integers(100, size=arcs.shape[1])
    near = latent.hyperbolic_distance(points[arcs[0]], points[arcs[1]])
    far = latent.hyperbolic_distance(points[arcs[0]], points[others])
    assert (near < far).mean() > 0.75


def test_the_poincare_gradient_is_that_of_the_loss():
    generator = np.random.default_rng(0)
    points = generator.uniform(-0.6, 0.6, (8, 2))
    source, others = np.array([0, 1]), np.array([[2, 3, 4], [5, 6, 7]])  # each node once
    z = torch.tensor(points, requires_grad=True)
    x, y = z[source][:, None], z[others]
    between = 2 * (x - y).square().sum(-1)
    room = (1 - x.square().sum(-1)) * (1 - y.square().sum(-1))
    distance = (1 + between / room).arccosh()
    loss = -(-distance).log_softmax(1)[:, 0].sum()
    (euclidean,) = torch.autograd.grad(loss, z)
    expected = euclidean * ((1 - z.square().sum(1, keepdim=True)).square() / 4)
    gradient = latent._mean_gradient(points, source, others)
    np.testing.assert_allclose(gradient, expected.detach(), rtol=1e-6)
    apart = latent.hyperbolic_distance(points[source][:, None], points[others])
    np.testing.assert_allclose(apart, distance.detach())


# Neighbours


@few
@given(
    places=st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), min_size=1, max_size=12),
    count=st.integers(0, 30),
    rows=st.integers(1, 5),
)
def test_the_nearest_pairs_are_as_many_as_asked_for_or_up_to_twice_as_many(places, count, rows):
    points = np.array(places, dtype=float)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(latent, "_ROWS", rows)
        pairs = latent._nearest_pairs(points, latent.euclidean_distance, count)
    chosen = set(zip(*(part.tolist() for part in pairs), strict=True))
    length = {
        (a, b): np.linalg.norm(points[a] - points[b])
        for a in range(len(points))
        for b in range(a + 1, len(points))
    }
    lengths = sorted(length.values())
    limit = lengths[min(count, len(lengths)) - 1] if count and lengths else -1
    within = {pair for pair in length if length[pair] <= limit}
    if len(within) <= 2 * count:
        assert chosen == within
    else:
        assert {pair for pair in length if length[pair] < limit} <= chosen <= within
        assert len(chosen) == count


@pytest.mark.parametrize("kind", ["isomap", "poincare"])
def test_computed_neighbours_cover_the_graph_and_have_opposite_positions(kind):
    data = memohop.load("csbm", nodes=80, seed=1)
    directed = data.edge_index[:, data.edge_index[0] <= data.edge_index[1]]
    loops = torch.arange(80).repeat(2, 1)
    arcs = torch.cat([directed, loops], dim=1)
    divisions = divisions_of(latent.computed(arcs, 80, embedding=kind))
    assert {tuple(arc) for arc in data.edge_index.t().tolist()} <= set(divisions)
    assert not any(source == target for source, target in divisions)
    count = sum(division >= 4 for division in divisions.values())
    assert count == data.num_edges if kind == "poincare" else count >= data.num_edges
    for (source, target), division in divisions.items():
        back = divisions[target, source]
        assert division // 4 == back // 4  # of the same space
        assert division % 4 == 3 - back % 4 or kind == "isomap"  # where coordinates may be equal


def test_positions_on_a_line():
    position = divisions_of(latent.computed(torch.tensor([[0, 1], [1, 2]]), 3))
    # all three in a row: along the first coordinate one way or the other, equal in the second
    assert position[0, 1] % 4 == position[1, 2] % 4 != position[1, 0] % 4 == position[2, 1] % 4
    assert {position[0, 1] % 4, position[1, 0] % 4} == {1, 3}


@pytest.mark.parametrize("kind", ["isomap", "poincare"])
def test_graphs_without_arcs_have_no_neighbours(kind):
    for nodes, arcs in ((1, [[], []]), (1, [[0], [0]]), (4, [[], []]), (2, [[0], [1]])):
        edge_index = torch.tensor(arcs, dtype=torch.int64)
        neighbours = latent.computed(edge_index, nodes, embedding=kind)
        assert neighbours.arcs.shape == (2, 2 * (nodes == 2))


def test_bad_requests_are_refused():
    nothing = torch.empty(2, 0, dtype=torch.int64)
    with pytest.raises(UsageError, match="no embedding named 'isomop'; did you mean isomap"):
        latent.computed(nothing, 3, embedding="isomop")
    with pytest.raises(UsageError, match="0 -> 3"):
        latent.computed(torch.tensor([[0], [3]]), 3)
