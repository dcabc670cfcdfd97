from __future__ import annotations

import pickle
from collections import defaultdict

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_matrix

from memohop.data.datasets.planetoid import read_planetoid
from memohop.errors import DataError

few = settings(max_examples=25, deadline=None)
PARTS = ("allx", "ally", "tx", "ty", "y", "graph", "test.index")


def write(folder, *, known_x, known_y, test_x, test_y, test, neighbours, labelled=1):
    graph = defaultdict(list)
    graph.update(neighbours)
    parts = {
        "allx": csr_matrix(known_x),
        "ally": known_y,
        "tx": csr_matrix(test_x),
        "ty": test_y,
        "y": known_y[:labelled],
        "graph": graph,
    }
    for suffix, part in parts.items():
        (folder / f"ind.made.{suffix}").write_bytes(pickle.dumps(part, protocol=4))
    (folder / "ind.made.test.index").write_text("".join(f"{node}\n" for node in test))


def small(folder, **changes):
    """Two known nodes and two test nodes; node 2 is described by no file."""
    parts = {
        "known_x": np.array([[1.0, 0], [0, 2]]),
        "known_y": np.array([[0, 1], [1, 0]]),
        "test_x": np.array([[3.0, 0], [0, 4]]),
        "test_y": np.array([[0, 1], [0, 1]]),
        "test": [4, 3],
        "neighbours": {0: [1, 1, 0], 1: [], 2: [], 3: [0], 4: [0, 4]},
    }
    write(folder, **(parts | changes))


def test_the_small_one_by_hand(tmp_path):
    small(tmp_path)
    data = read_planetoid(tmp_path, "made", splits=None)
    assert data.x.tolist() == [[1, 0], [0, 2], [0, 0], [0, 4], [3, 0]]
    assert data.y.tolist() == [1, 0, 0, 1, 1]
    assert data.edge_index.tolist() == [[0, 0, 0, 1, 3, 4], [1, 3, 4, 0, 0, 0]]
    assert data.train_mask.flatten().tolist() == [True, False, False, False, False]
    assert data.test_mask.flatten().tolist() == [False, False, False, True, True]


@few
@given(drawn=st.data())
def test_what_is_written_is_read_back(drawn, tmp_path_factory):
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
    one_hot = np.eye(4, dtype=np.int32)[y]
    write(
        folder,
        known_x=x[:known],
        known_y=one_hot[:known],
        test_x=x[test],
        test_y=one_hot[test],
        test=test,
        neighbours=neighbours,
    )
    data = read_planetoid(folder, "made", splits=None)
    expected = {arc for s, t in arcs if s != t for arc in ((s, t), (t, s))}
    assert data.x.tolist() == (x * described[:, None]).tolist()
    assert data.y.tolist() == (y * described).tolist()
    assert [tuple(arc) for arc in data.edge_index.T.tolist()] == sorted(expected)
    assert data.test_mask.flatten().nonzero().flatten().tolist() == sorted(test)


@few
@given(garbage=st.binary(max_size=200), suffix=st.sampled_from(PARTS))
def test_garbage_is_a_data_error(garbage, suffix, tmp_path_factory):
    folder = tmp_path_factory.mktemp("graph")
    small(folder)
    (folder / f"ind.made.{suffix}").write_bytes(garbage)
    with pytest.raises(DataError, match=r"ind\.made"):
        read_planetoid(folder, "made", splits=None)


@few
@given(suffix=st.sampled_from(PARTS[:-1]), kept=st.floats(0, 0.99))
def test_a_truncated_pickle_is_a_data_error(suffix, kept, tmp_path_factory):
    folder = tmp_path_factory.mktemp("graph")
    small(folder)
    path = folder / f"ind.made.{suffix}"
    content = path.read_bytes()
    path.write_bytes(content[: int(kept * len(content))])
    with pytest.raises(DataError, match=r"ind\.made"):
        read_planetoid(folder, "made", splits=None)


@pytest.mark.parametrize("suffix", PARTS[:-1])
@pytest.mark.parametrize(
    "attack",
    [
        b"cos\nsystem\n(S'touch {mark}'\ntR.",
        b"cposix\nsystem\n(S'touch {mark}'\ntR.",
        b"c__builtin__\nopen\n(S'{mark}'\nS'w'\ntR.",
        b"cbuiltins\nopen\n(S'{mark}'\nS'w'\ntR.",
        b"cnumpy\nsavetxt\n(S'{mark}'\n(I1\nltR.",
        b"cscipy.sparse\nsave_npz\n(S'{mark}'\n(I1\nltR.",
    ],
)
def test_nothing_outside_the_table_is_called(attack, suffix, tmp_path):
    small(tmp_path)
    mark = tmp_path / "mark"
    content = attack.replace(b"{mark}", str(mark).encode())
    (tmp_path / f"ind.made.{suffix}").write_bytes(content)
    with pytest.raises(DataError, match="does not belong in a dataset"):
        read_planetoid(tmp_path, "made", splits=None)
    assert not mark.exists()


@pytest.mark.parametrize(
    ("changes", "complaint"),
    [
        ({"neighbours": {0: [], 1: [], 2: [], 3: [], 9: []}}, "not numbered from 0"),
        ({"neighbours": {0: [7], 1: [], 2: [], 3: [], 4: []}}, "0 -> 7 leaves the graph of 5"),
        ({"test": [3, 3]}, "not numbered from 0"),
        ({"test": [1, 3]}, "described twice"),
        ({"test": [3, 8]}, "out of bounds"),
        ({"test": [3]}, "not have one label for every row"),
        ({"test_y": np.array([[0, 1]])}, "not have one label for every row"),
        ({"test_y": np.array([[1], [1]])}, "labels are of two kinds"),
        ({"test_x": np.ones((2, 3))}, "broadcast"),
    ],
)
def test_parts_that_do_not_fit(changes, complaint, tmp_path):
    small(tmp_path, **changes)
    with pytest.raises(DataError, match=complaint):
        read_planetoid(tmp_path, "made", splits=None)


def test_a_sparse_matrix_that_points_outside_itself(tmp_path):
    matrix = csr_matrix(np.array([[1.0, 0], [0, 2]]))
    small(tmp_path)
    matrix.indices[0] = 10_000_000
    (tmp_path / "ind.made.allx").write_bytes(pickle.dumps(matrix, protocol=4))
    with pytest.raises(DataError, match="indices must be < 2"):
        read_planetoid(tmp_path, "made", splits=None)
