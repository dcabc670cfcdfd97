from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memohop.data.datasets.geom_gcn import read_geom_gcn
from memohop.errors import DataError

few = settings(max_examples=25, deadline=None)
NODES = "out1_node_feature_label.txt"
EDGES = "out1_graph_edges.txt"


@st.composite
def graphs(draw):
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


def write(folder, x, y, arcs, order, *, listed=False):
    lines = ["node_id\tfeature\tlabel"]
    for node in order:
        values = np.flatnonzero(x[node]) if listed else x[node]
        lines.append(f"{node}\t{','.join(map(str, values))}\t{y[node]}")
    (folder / NODES).write_text("\n".join(lines) + "\n")
    lines = ["node_id\tnode_id", *(f"{source}\t{target}" for source, target in arcs)]
    (folder / EDGES).write_text("\n".join(lines) + "\n")
    masks = {f"{part}_mask": np.arange(len(y)) % 3 == number for number, part in enumerate(PARTS)}
    np.savez(folder / "split.npz", **{name: mask.astype("uint8") for name, mask in masks.items()})
    return [folder / "split.npz"]


PARTS = ("train", "val", "test")


@few
@given(graph=graphs(), listed=st.booleans())
def test_what_is_written_is_read_back(graph, listed, tmp_path_factory):
    folder = tmp_path_factory.mktemp("graph")
    x, y, arcs, order = graph
    splits = write(folder, x, y, arcs, order, listed=listed)
    data = read_geom_gcn(folder, splits, words=x.shape[1] if listed else None)
    assert data.x.tolist() == x.tolist()
    assert data.y.tolist() == y
    assert [tuple(arc) for arc in data.edge_index.T.tolist()] == sorted(set(arcs))
    for number, part in enumerate(PARTS):
        expected = [[node % 3 == number] for node in range(len(y))]
        assert data[f"{part}_mask"].tolist() == expected


@pytest.fixture
def small(tmp_path):
    """A graph of three nodes in `tmp_path`, with the path of its split."""
    return write(tmp_path, np.eye(3, dtype=int), [0, 1, 2], [(0, 1), (1, 1), (2, 0)], [2, 0, 1])


@few
@given(garbage=st.binary(max_size=200), name=st.sampled_from([NODES, EDGES, "split.npz"]))
def test_garbage_is_a_data_error(garbage, name, tmp_path_factory):
    folder = tmp_path_factory.mktemp("graph")
    splits = write(folder, np.eye(3, dtype=int), [0, 1, 2], [(0, 1)], [0, 1, 2])
    (folder / name).write_bytes(garbage)
    with pytest.raises(DataError, match=name):
        read_geom_gcn(folder, splits)


@few
@given(
    name=st.sampled_from([NODES, EDGES, "split.npz"]),
    offset=st.floats(0, 0.999),
    byte=st.integers(0, 255),
    listed=st.booleans(),
)
def test_a_changed_byte_gives_a_graph_or_a_data_error(name, offset, byte, listed, tmp_path_factory):
    folder = tmp_path_factory.mktemp("graph")
    splits = write(folder, np.eye(3, dtype=int), [0, 1, 2], [(0, 1)], [0, 1, 2], listed=listed)
    content = bytearray((folder / name).read_bytes())
    content[int(offset * len(content))] = byte
    (folder / name).write_bytes(content)
    try:
        data = read_geom_gcn(folder, splits, words=3 if listed else None)
    except DataError:
        return
    assert data.x.shape[0] == data.y.shape[0] == 3


@pytest.mark.parametrize(
    ("name", "old", "new", "complaint"),
    [
        (EDGES, "2\t0", "2\t7", r"2 -> 7 leaves the graph of 3 nodes"),
        (EDGES, "2\t0", "2\t-1", r"line 4: '-1' is not a number"),
        (EDGES, "2\t0", "2", r"line 4: 1 columns and not 2"),
        (EDGES, "2\t0", "2\t99999999999999999999", r"line 4"),
        (NODES, "2\t0,0,1\t2", "1\t0,0,1\t2", "node 1 comes a second time"),
        (NODES, "2\t0,0,1\t2", "5\t0,0,1\t2", "its 3 nodes are not numbered from 0"),
        (NODES, "2\t0,0,1\t2", "2\t0,1\t2", "node 2 has not 3 features of 0 or 1"),
        (NODES, "2\t0,0,1\t2", "2\t0,0,nan\t2", "node 2 has not 3 features of 0 or 1"),
        (NODES, "2\t0,0,1\t2", "2\t0,0,1\tx", "'x' is not a number"),
    ],
)
def test_errors_name_the_line(name, old, new, complaint, small, tmp_path):
    text = (tmp_path / name).read_text()
    assert old in text
    (tmp_path / name).write_text(text.replace(old, new))
    with pytest.raises(DataError, match=complaint):
        read_geom_gcn(tmp_path, small)


def test_a_word_outside_the_vocabulary(tmp_path):
    splits = write(tmp_path, np.eye(3, dtype=int), [0, 0, 0], [], [0, 1, 2], listed=True)
    with pytest.raises(DataError, match="node 2 has word 2 of 2"):
        read_geom_gcn(tmp_path, splits, words=2)


def test_a_split_of_another_graph(small, tmp_path):
    masks = {f"{part}_mask": np.zeros(4, dtype=bool) for part in PARTS}
    np.savez(tmp_path / "split.npz", **masks)
    with pytest.raises(DataError, match=r"split\.npz has a mask of shape \(4,\)"):
        read_geom_gcn(tmp_path, small)


def test_a_missing_file(small, tmp_path):
    (tmp_path / EDGES).unlink()
    with pytest.raises(DataError, match=EDGES):
        read_geom_gcn(tmp_path, small)
