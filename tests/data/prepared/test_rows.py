"""Arcs sorted in files are those sorted in RAM."""

import tempfile
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from memohop.data.prepared import rows
from memohop.data.prepared.arrays import ArrayFile, map_array
from memohop.data.tables.links import Listed, join

EDGES = st.integers(1, 9).flatmap(
    lambda nodes: st.tuples(
        st.just(nodes),
        st.lists(
            st.tuples(*2 * [st.integers(0, nodes - 1)], st.integers(0, 2)), min_size=1, max_size=40
        ),
    )
)


@given(
    EDGES,
    st.sampled_from([None, True, False]),
    st.sampled_from([1, 2, 4, 256]),
    st.sampled_from(["no", "any", "the same both ways"]),
)
def test_as_in_ram(edges, directed, ranges, weights):
    nodes, pairs = edges
    if weights == "the same both ways":
        pairs = [*pairs, *((end, begin, weight) for begin, end, weight in pairs)]
    begin, end, weight = np.array(pairs, dtype=np.int32).T
    weight = None if weights == "no" else weight.astype(np.float64)
    with tempfile.TemporaryDirectory() as name, pytest.MonkeyPatch.context() as patch:
        patch.setattr(rows, "_RANGES", ranges)
        folder = Path(name)
        with closing(rows.ArcFiles(folder, nodes, weighted=weight is not None)) as files:
            for part in np.array_split(np.arange(len(pairs)), 3):
                files.add(begin[part], end[part], None if weight is None else weight[part])
        found = files.write(folder, directed=directed)
        ways = {"out": 1, "in": -1} if found.directed else {"out": 1}
        arcs = {}
        for way, order in ways.items():
            indptr, indices = (
                map_array(folder / f"{way}-{part}.npy") for part in ("indptr", "indices")
            )
            assert len(indptr) == nodes + 1
            arcs[way] = np.stack([np.repeat(np.arange(nodes), np.diff(indptr)), indices])[::order]
        if weight is not None:
            of_arcs = np.array(map_array(folder / "out-weights.npy"))
    listed = Listed(begin.astype(np.int64), end.astype(np.int64), weight, [])
    expected = join([listed], nodes=nodes, directed=directed, origin="")
    assert found.directed == expected.directed
    assert found.notes == expected.notes
    assert found.arcs == expected.arcs.shape[1]
    assert np.array_equal(arcs["out"], expected.arcs)
    assert weight is None or np.array_equal(of_arcs, expected.weight)
    if found.directed:
        turned = expected.arcs[:, np.lexsort(expected.arcs)]
        assert np.array_equal(arcs["in"], turned)


@pytest.mark.parametrize("width", [None, 3])
def test_an_array_that_grows_is_what_numpy_reads(tmp_path, width):
    whole = np.arange(3000, dtype=np.float32)
    whole = whole if width is None else whole.reshape(-1, width)
    with ArrayFile(tmp_path / "a.npy", np.float32, width) as file:
        for part in np.array_split(whole, 7):
            file.append(part)
    found = np.load(tmp_path / "a.npy")
    assert found.dtype == whole.dtype
    assert np.array_equal(found, whole)
    mapped = map_array(tmp_path / "a.npy")
    with pytest.raises(ValueError, match="read-only"):
        mapped[0] = 1
