"""Whatever is in a file, it is read or refused in plain words."""

from __future__ import annotations

import gzip
import io

import pyarrow as pa
import pyarrow.parquet
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from commands import write_parquet
from memohop.data.tables import read_graph
from memohop.errors import MemohopError

NODES = b'id,age,kind\na,1,x\nb,2,y\nc,3,x\nd,,\n"e","36,200",x\nf,5%, X\n'
EDGES = b"source,target,weight\na,b,1\nb,c,2\nd,a,\n"


def parquet(table):
    file = io.BytesIO()
    pa.parquet.write_table(pa.table(table), file)
    return file.getvalue()


NODE_TABLE = {
    "id": ["a", "b", "c", "d"],
    "age": [1, 2, 3, None],
    "kind": ["x", "y", "x", None],
    "on": [True, False, None, True],
}
EDGE_TABLE = {"source": ["a", "b", "d"], "target": ["b", "c", "a"]}
FILES = {
    ".csv": (NODES, EDGES),
    ".csv.gz": (gzip.compress(NODES), gzip.compress(EDGES)),
    ".parquet": (parquet(NODE_TABLE), parquet(EDGE_TABLE)),
}


@st.composite
def damaged(draw, content):
    """The bytes with a few of them changed, taken out or put in, and perhaps cut off."""
    changed = bytearray(content)
    for _ in range(draw(st.integers(1, 4))):
        start = draw(st.integers(0, len(changed)))
        end = start + draw(st.sampled_from([0, 1, 1, 1, 4, 40]))
        changed[start:end] = draw(st.binary(max_size=4))
    return bytes(changed[: draw(st.sampled_from([None, None, None, len(changed) // 2]))])


def options_on(column):
    """None, the kind of the labels, or one option that concerns a column."""
    roles = st.sampled_from(["split", "time_column", "group"]).map(lambda role: {role: column})
    readings = st.sampled_from(["categorical", "numeric", "text", "drop"])
    tasks = st.sampled_from(["numbers", "classes"]).map(lambda task: {"task": task})
    return st.just({}) | roles | readings.map(lambda how: {how: [column]}) | tasks


OPTIONS = (
    options_on("age")
    | st.just({"weight": "weight"})
    | st.sampled_from(["auto", "numbers", "classes"]).map(
        lambda task: {"label": "age", "task": task}
    )
)


@pytest.mark.fuzz
@pytest.mark.parametrize("suffix", FILES)
@given(data=st.data(), as_nodes=st.booleans(), options=OPTIONS)
def test_any_bytes_and_damaged_files_are_read_or_refused(tmp_path, suffix, data, as_nodes, options):
    contents = list(FILES[suffix])
    anything = st.binary(max_size=60)
    if suffix == ".csv.gz":
        anything = anything.map(gzip.compress)
    contents[not as_nodes] = data.draw(anything | damaged(contents[not as_nodes]))
    paths = tmp_path / f"nodes{suffix}", tmp_path / f"edges{suffix}"
    for path, content in zip(paths, contents, strict=True):
        path.write_bytes(content)
    try:
        graph = read_graph(*paths, **{"label": "kind", "drop_unknown": True} | options)
    except MemohopError:
        return
    assert len(graph.ids) == len(graph.data.x) == len(graph.data.y)
    assert bool(torch.isfinite(graph.data.x).all())
    assert set(graph.warnings) <= set(graph.notes)


WORDS = st.text(st.characters(exclude_categories=["Cs"]), max_size=5)
CELLS = {
    pa.string(): WORDS,
    pa.large_string(): WORDS,
    pa.binary(): st.binary(max_size=3),
    pa.bool_(): st.booleans(),
    pa.int64(): st.integers(-(2**63), 2**63 - 1),
    pa.uint8(): st.integers(0, 255),
    pa.float32(): st.floats(width=32),
    pa.float64(): st.floats(),
    pa.decimal128(9, 3): st.decimals(-1000, 1000, places=3),
    pa.date32(): st.dates(),
    pa.timestamp("us", tz="Europe/Rome"): st.datetimes(),
    pa.time64("ns"): st.times(),
    pa.duration("s"): st.timedeltas(),
    pa.list_(pa.int64()): st.lists(st.integers(0, 9), max_size=2),
    pa.struct([("a", pa.int64())]): st.fixed_dictionaries({"a": st.integers(0, 9)}),
    pa.dictionary(pa.int8(), pa.string()): st.sampled_from(["p", "q"]),
    pa.dictionary(pa.int8(), pa.int64()): st.integers(0, 3),
    pa.null(): st.none(),
}


@st.composite
def columns(draw, rows):
    kind = draw(st.sampled_from(list(CELLS)))
    cells = st.none() | CELLS[kind]
    return pa.array(draw(st.lists(cells, min_size=rows, max_size=rows)), kind)


@st.composite
def typed_tables(draw):
    """Nodes whose id, label or feature may be of any type, and edges whose ends may be."""
    names = ["a", "b", "c", "d", "e"]
    nodes = {"id": names, "kind": ["x", "y", "x", "y", None], "v": draw(columns(5))}
    edges = {"source": names[:4], "target": names[1:]}
    strange = draw(st.sampled_from([None, None, "id", "kind", "source", "target"]))
    if strange in nodes:
        nodes[strange] = draw(columns(5))
    elif strange is not None:
        edges[strange] = draw(columns(4))
    nodes = {draw(WORDS): [1, 2, 3, 4, 5], **nodes} if draw(st.booleans()) else nodes
    return pa.table(nodes), pa.table(edges)


@pytest.mark.fuzz
@given(typed_tables(), options_on("v"))
def test_a_table_object_and_its_parquet_file_are_the_same_graph_or_refused(
    tmp_path, tables, options
):
    paths = write_parquet(tmp_path, *tables)
    outcomes = []
    for given_tables in (tables, paths):
        try:
            graph = read_graph(*given_tables, label="kind", id="id", source="source", **options)
        except MemohopError as error:
            outcomes.append((type(error), [], []))
        else:
            tensors = [graph.data.x, graph.data.y, graph.data.edge_index]
            outcomes.append((graph.ids.tolist(), graph.classes, tensors))
    (*in_ram, tensors), (*in_files, others) = outcomes
    assert in_ram == in_files
    torch.testing.assert_close(tensors, others, rtol=0, atol=0, equal_nan=True)
