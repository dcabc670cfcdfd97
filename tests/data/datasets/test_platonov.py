from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from memohop.data.datasets.platonov import read_platonov
from memohop.errors import DataError

few = settings(max_examples=25, deadline=None)


def arrays(nodes=4):
    return {
        "node_features": np.ones((nodes, 2), dtype=np.float32),
        "node_labels": np.arange(nodes),
        "edges": np.array([[0, 1], [1, 2], [2, 1]]),
        "train_masks": np.arange(3 * nodes).reshape(3, nodes) % 3 == 0,
        "val_masks": np.arange(3 * nodes).reshape(3, nodes) % 3 == 1,
        "test_masks": np.arange(3 * nodes).reshape(3, nodes) % 3 == 2,
    }


@few
@given(drawn=st.data(), directed=st.booleans())
def test_what_is_written_is_read_back(drawn, directed, tmp_path_factory):
    path = tmp_path_factory.mktemp("graph") / "graph.npz"
    nodes = drawn.draw(st.integers(3, 9))
    end = st.integers(0, nodes - 1)
    edges = drawn.draw(st.lists(st.tuples(end, end), max_size=20))
    finite = st.floats(-100, 100, width=32)
    written = arrays(nodes) | {
        "node_features": drawn.draw(hnp.arrays(np.float32, (nodes, 3), elements=finite)),
        "node_labels": drawn.draw(hnp.arrays(np.int64, nodes, elements=st.integers(0, 5))),
        "edges": np.array(edges, dtype=np.int64).reshape(-1, 2),
    }
    np.savez(path, **written)
    data = read_platonov(path, directed=directed)
    arcs = set(edges) if directed else {*edges, *((target, source) for source, target in edges)}
    assert [tuple(arc) for arc in data.edge_index.T.tolist()] == sorted(arcs)
    assert np.array_equal(data.x.numpy(), written["node_features"])
    assert np.array_equal(data.y.numpy(), written["node_labels"])
    for part in ("train", "val", "test"):
        assert np.array_equal(data[f"{part}_mask"].numpy(), written[f"{part}_masks"].T)


@few
@given(garbage=st.binary(max_size=300))
def test_garbage_is_a_data_error(garbage, tmp_path_factory):
    path = tmp_path_factory.mktemp("graph") / "graph.npz"
    path.write_bytes(garbage)
    with pytest.raises(DataError, match=r"graph\.npz"):
        read_platonov(path, directed=True)


@few
@given(place=st.floats(0, 0.999), byte=st.integers(0, 255), kept=st.floats(0, 1))
def test_a_damaged_archive_gives_a_graph_or_a_data_error(place, byte, kept, tmp_path_factory):
    path = tmp_path_factory.mktemp("graph") / "graph.npz"
    np.savez(path, **arrays())
    content = bytearray(path.read_bytes())
    content[int(place * len(content))] = byte
    path.write_bytes(content if kept > 0.5 else content[: int(2 * kept * len(content))])
    try:
        data = read_platonov(path, directed=True)
    except DataError:
        return
    assert data.x.shape == (4, 2)


class Trap:
    """Makes its pickle leave a mark where it is loaded."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return open, (str(self.path), "w")


@pytest.mark.parametrize("name", arrays())
def test_pickled_objects_are_refused_and_not_run(name, tmp_path):
    trapped = np.empty(4, dtype=object)
    trapped[0] = Trap(tmp_path / "mark")
    np.savez(tmp_path / "graph.npz", **(arrays() | {name: trapped}))
    with pytest.raises(DataError, match="pickle"):
        read_platonov(tmp_path / "graph.npz", directed=True)
    assert not (tmp_path / "mark").exists()


@pytest.mark.parametrize(
    ("name", "value", "complaint"),
    [
        ("edges", np.array([[0, 4]]), "0 -> 4 leaves the graph of 4 nodes"),
        ("edges", np.array([[0, -1]]), "0 -> -1 leaves"),
        ("edges", np.array([0, 1]), "no graph"),
        ("edges", np.array([[0.0, 1.0]]), "no graph"),
        ("node_labels", np.zeros(3, dtype=int), "no graph"),
        ("node_labels", np.zeros((4, 1), dtype=int), "no graph"),
        ("node_labels", np.zeros(4), "no graph"),
        ("node_features", np.full((4, 2), "x"), "no graph"),
        ("node_features", np.ones(4), "no graph"),
        ("train_masks", np.zeros((3, 5), dtype=bool), r"mask of shape \(3, 5\)"),
        ("test_masks", np.zeros((2, 4), dtype=bool), r"mask of shape \(2, 4\)"),
        ("val_masks", np.zeros((3, 4)), "float64"),
    ],
)
def test_arrays_that_do_not_fit(name, value, complaint, tmp_path):
    np.savez(tmp_path / "graph.npz", **(arrays() | {name: value}))
    with pytest.raises(DataError, match=complaint):
        read_platonov(tmp_path / "graph.npz", directed=True)


def test_an_array_that_is_missing(tmp_path):
    incomplete = arrays()
    del incomplete["edges"]
    np.savez(tmp_path / "graph.npz", **incomplete)
    with pytest.raises(DataError, match="edges"):
        read_platonov(tmp_path / "graph.npz", directed=True)


def test_a_missing_file(tmp_path):
    with pytest.raises(DataError, match="nowhere"):
        read_platonov(tmp_path / "nowhere.npz", directed=True)


def test_the_directed_filtered_files_hold_the_same_graph_as_the_plain_ones(data_root):
    """Which is why the directed ones are used: they differ in direction and self-loops only."""
    for name in ("chameleon", "squirrel"):
        plain = data_root / "platonov" / f"{name}_filtered.npz"
        if not plain.exists():
            pytest.skip("the plain filtered files are not among those that are downloaded")
        one = read_platonov(plain, directed=False)
        other = read_platonov(plain.with_name(f"{name}_filtered_directed.npz"), directed=False)
        for key in ("x", "y", "train_mask", "val_mask", "test_mask"):
            assert one[key].equal(other[key])
        source, target = other.edge_index
        assert one.edge_index.equal(other.edge_index[:, source != target])
