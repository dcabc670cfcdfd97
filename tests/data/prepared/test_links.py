"""Arcs sorted by a database are those sorted in RAM."""

import tempfile
from contextlib import closing
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memohop.data.prepared._arrays import ArrayFile, map_array
from memohop.data.prepared._links import LinkDatabase
from memohop.data.read_options import ReadOptions, find_roles
from memohop.data.tables.links import Links
from memohop.data.tables.sources import UnreadTable

EDGES = st.integers(1, 9).flatmap(
    lambda nodes: st.tuples(
        st.just(nodes),
        st.lists(
            st.tuples(*2 * [st.integers(0, nodes - 1)], st.integers(0, 2)), min_size=1, max_size=40
        ),
    )
)


def table(**columns):
    """A table that is read two rows at a time."""
    whole = pa.table(columns)

    def batches(schema):
        return iter(whole.select(schema.names).cast(schema).to_batches(max_chunksize=2))

    return UnreadTable(
        "", whole.column_names, lambda *_: whole, batches=batches, stored=whole.schema
    )


@settings(max_examples=40)
@given(
    EDGES,
    st.sampled_from([None, True, False]),
    st.sampled_from(["no", "any", "the same both ways"]),
)
def test_as_in_ram(edges, directed, weights):
    nodes, pairs = edges
    if weights == "the same both ways":
        pairs = [*pairs, *((end, begin, weight) for begin, end, weight in pairs)]
    begin, end, weight = np.array(pairs, dtype=np.int64).T
    weight = None if weights == "no" else weight.astype(np.float64)
    columns = {"source": begin, "target": end, **({} if weight is None else {"w": weight})}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        options = ReadOptions(weight=None if weight is None else "w")
        roles = find_roles(table(id=np.arange(nodes)), table(**columns), options)
        with closing(LinkDatabase(folder, roles, 2**28)) as links:
            links.add_nodes(folder / "ids.arrow")
            links.add_edges(drop_unknown=False)
            count, is_directed, notes = links.write(folder, nodes, directed=directed)
        ways = {"out": 1, "in": -1} if is_directed else {"out": 1}
        arcs = {}
        for way, order in ways.items():
            indptr, indices = (
                map_array(folder / f"{way}-{part}.npy") for part in ("indptr", "indices")
            )
            assert len(indptr) == nodes + 1
            arcs[way] = np.stack([np.repeat(np.arange(nodes), np.diff(indptr)), indices])[::order]
        if weight is not None:
            of_arcs = np.array(map_array(folder / "out-weights.npy"))
    expected = Links.of(np.stack([begin, end]), weight, nodes=nodes, directed=directed)
    assert is_directed == expected.directed
    assert notes == expected.notes
    assert count == expected.arcs.shape[1]
    assert np.array_equal(arcs["out"], expected.arcs)
    assert weight is None or np.array_equal(of_arcs, expected.weight)
    if is_directed:
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
