"""Each reader, on files that are made here."""

import pickle
from collections import defaultdict

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy.sparse import csr_matrix

from memohop.data.datasets._readers import read_geom_gcn, read_planetoid, read_platonov

few = settings(max_examples=25, deadline=None)
PARTS = ("train", "val", "test")


@st.composite
def geom_gcn_graphs(draw):
    """Binary features with at least one word a node, labels, arcs with duplicates, an order."""
    nodes, words = draw(st.integers(1, 9)), draw(st.integers(1, 5))
    row = st.lists(st.integers(0, 1), min_size=words, max_size=words).filter(any)
    end = st.integers(0, nodes - 1)
    return (
        np.array([draw(row) for _ in range(nodes)]),
        draw(st.lists(st.integers(0, 4), min_size=nodes, max_size=nodes)),
        draw(st.lists(st.tuples(end, end), max_size=20)),
        draw(st.permutations(range(nodes))),
    )


def write_geom_gcn(folder, x, y, arcs, order, *, listed=False):
    lines = ["node_id\tfeature\tlabel"]
    for node in order:
        values = np.flatnonzero(x[node]) if listed else x[node]
        lines.append(f"{node}\t{','.join(map(str, values))}\t{y[node]}")
    (folder / "out1_node_feature_label.txt").write_text("\n".join(lines) + "\n")
    lines = ["node_id\tnode_id", *(f"{source}\t{target}" for source, target in arcs)]
    (folder / "out1_graph_edges.txt").write_text("\n".join(lines) + "\n")
    masks = {f"{part}_mask": np.arange(len(y)) % 3 == number for number, part in enumerate(PARTS)}
    np.savez(folder / "split.npz", **{name: mask.astype("uint8") for name, mask in masks.items()})
    return [folder / "split.npz"]


@few
@given(graph=geom_gcn_graphs(), listed=st.booleans())
def test_a_graph_of_geom_gcn_is_read_back(graph, listed, tmp_path_factory):
    folder = tmp_path_factory.mktemp("graph")
    x, y, arcs, order = graph
    splits = write_geom_gcn(folder, x, y, arcs, order, listed=listed)
    data = read_geom_gcn(folder, splits, words=x.shape[1] if listed else None)
    assert data.x.tolist() == x.tolist()
    assert data.y.tolist() == y
    assert [tuple(arc) for arc in data.edge_index.T.tolist()] == sorted(set(arcs))
    for number, part in enumerate(PARTS):
        expected = [[node % 3 == number] for node in range(len(y))]
        assert data[f"{part}_mask"].tolist() == expected


def write_planetoid(folder, *, x, y, known, test, neighbours):
    """A graph whose first ``known`` nodes and ``test`` nodes are described; one is labelled."""
    one_hot = np.eye(4, dtype=np.int32)[y]
    parts = {
        "allx": csr_matrix(x[:known]),
        "ally": one_hot[:known],
        "tx": csr_matrix(x[test]),
        "ty": one_hot[test],
        "y": one_hot[:1],
        "graph": defaultdict(list, neighbours),
    }
    for suffix, part in parts.items():
        (folder / f"ind.made.{suffix}").write_bytes(pickle.dumps(part, protocol=4))
    (folder / "ind.made.test.index").write_text("".join(f"{node}\n" for node in test))


@few
@given(drawn=st.data())
def test_a_graph_of_planetoid_is_read_back(drawn, tmp_path_factory):
    folder = tmp_path_factory.mktemp("graph")
    known, tested, missing = (drawn.draw(st.integers(1, 4)) for _ in range(3))
    nodes = known + tested + missing
    generator = np.random.default_rng(drawn.draw(st.integers(0, 99)))
    x = generator.integers(0, 3, (nodes, 3)).astype(np.float64)
    y = generator.integers(0, 4, nodes)
    test = generator.permutation(np.arange(known, nodes))[:tested]
    described = np.isin(np.arange(nodes), test) | (np.arange(nodes) < known)
    end = st.integers(0, nodes - 1)
    arcs = drawn.draw(st.lists(st.tuples(end, end), max_size=20))
    neighbours = {node: [t for s, t in arcs if s == node] for node in range(nodes)}
    write_planetoid(folder, x=x, y=y, known=known, test=test, neighbours=neighbours)
    data = read_planetoid(folder, "made", splits=None)
    expected = {arc for s, t in arcs if s != t for arc in ((s, t), (t, s))}
    assert data.x.tolist() == (x * described[:, None]).tolist()
    assert data.y.tolist() == (y * described).tolist()
    assert [tuple(arc) for arc in data.edge_index.T.tolist()] == sorted(expected)
    assert data.train_mask.flatten().nonzero().flatten().tolist() == [0]
    assert data.test_mask.flatten().nonzero().flatten().tolist() == sorted(test)


@pytest.mark.parametrize(
    "attack",
    [
        b"cos\nsystem\n(S'touch {mark}'\ntR.",
        b"c__builtin__\nopen\n(S'{mark}'\nS'w'\ntR.",
        b"cnumpy\nsavetxt\n(S'{mark}'\n(I1\nltR.",
    ],
)
def test_nothing_outside_the_table_is_called(attack, tmp_path):
    mark, x = tmp_path / "mark", np.ones((2, 1))
    write_planetoid(tmp_path, x=x, y=[0, 1], known=1, test=[1], neighbours={0: [1]})
    (tmp_path / "ind.made.tx").write_bytes(attack.replace(b"{mark}", str(mark).encode()))
    with pytest.raises(pickle.UnpicklingError, match="does not belong in a dataset"):
        read_planetoid(tmp_path, "made", splits=None)
    assert not mark.exists()


@few
@given(drawn=st.data(), directed=st.booleans())
def test_a_graph_of_platonov_is_read_back(drawn, directed, tmp_path_factory):
    path = tmp_path_factory.mktemp("graph") / "graph.npz"
    nodes = drawn.draw(st.integers(3, 9))
    end = st.integers(0, nodes - 1)
    edges = drawn.draw(st.lists(st.tuples(end, end), max_size=20))
    finite = st.floats(-100, 100, width=32)
    part = np.arange(3 * nodes).reshape(3, nodes) % 3
    written = {
        "node_features": drawn.draw(hnp.arrays(np.float32, (nodes, 3), elements=finite)),
        "node_labels": drawn.draw(hnp.arrays(np.int64, nodes, elements=st.integers(0, 5))),
        "edges": np.array(edges, dtype=np.int64).reshape(-1, 2),
        **{f"{name}_masks": part == number for number, name in enumerate(PARTS)},
    }
    np.savez(path, **written)
    data = read_platonov(path, directed=directed)
    arcs = set(edges) if directed else {*edges, *((target, source) for source, target in edges)}
    assert [tuple(arc) for arc in data.edge_index.T.tolist()] == sorted(arcs)
    assert np.array_equal(data.x.numpy(), written["node_features"])
    assert np.array_equal(data.y.numpy(), written["node_labels"])
    for part in PARTS:
        assert np.array_equal(data[f"{part}_mask"].numpy(), written[f"{part}_masks"].T)
