"""A prepared folder holds what `read_graph` reads, however the tables are cut into files."""

import gzip
import json
import os

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from scipy import sparse

import memohop
from commands import write_parquet
from memohop.cli import main
from memohop.data.prepared import _reading, sample
from memohop.data.tables import read_graph

NODES = """id,age,city,active,about,kind
a,31,Rome,yes,likes red wine,x
b,,Paris,no,likes old books,y
c,45,Rome,no,likes red books,x
d,22,Oslo,yes,likes old wine,
e,60,Paris,yes,NA,y
"""
EDGES = """source,target
a,b
b,c
c,a
a,b
d,d
e,a
"""


def write(folder, name, text):
    path = folder / name
    path.parent.mkdir(exist_ok=True, parents=True)
    path.write_text(text)
    return path


def whole_tables(folder, nodes=None, edges=None):
    """The tables in a file each."""
    texts = {"nodes.csv": nodes or NODES, "edges.csv": edges or EDGES}
    return [write(folder, name, text) for name, text in texts.items()]


def cut(folder, text, ending="csv"):
    """The rows of a text, two in a file."""
    header, *rows = text.splitlines()
    for start in range(0, len(rows), 2):
        content = "\n".join([header, *rows[start : start + 2], ""]).encode()
        name = f"part-{start}.{ending}"
        folder.mkdir(exist_ok=True, parents=True)
        (folder / name).write_bytes(gzip.compress(content) if ending.endswith("gz") else content)
    return folder


def random_tables(folder, *, listed_twice=False, more=0):
    """Folders of Parquet files with every kind of column, and the same in a file each.

    Ids are whole numbers in no order.
    """
    generator, nodes, edges = np.random.default_rng(0), 300, 2000
    ids = generator.permutation(10 * nodes)[:nodes]
    words = np.array([f"word{number}" for number in range(60)])
    table = pa.table(
        {
            "id": ids,
            **{f"number{number}": generator.normal(size=nodes) for number in range(more)},
            "amount": generator.lognormal(sigma=2, size=nodes),
            "share": pa.array(generator.normal(size=nodes), mask=generator.random(nodes) < 0.1),
            "count": generator.poisson(0.1, nodes),
            "flag": generator.random(nodes) < 0.3,
            "zip_code": generator.integers(40, size=nodes),
            "city": words[generator.integers(12, size=nodes)],
            "about": [" ".join(words[generator.integers(len(words), size=6)]) for _ in ids],
            "kind": pa.array(
                words[generator.integers(3, size=nodes)], mask=generator.random(nodes) < 0.3
            ),
        }
    )
    ends = ids[generator.integers(nodes, size=(2, edges))]
    if listed_twice:
        ends = np.hstack([ends, ends[::-1, : edges // 2]])
    pairs = pa.table({"source": ends[0], "target": ends[1]})
    for name, whole in (("nodes", table), ("edges", pairs)):
        (folder / name).mkdir(parents=True)
        third = whole.num_rows // 3 + 1
        for start in range(0, whole.num_rows, third):
            path = folder / name / f"{start:06}.parquet"
            pa.parquet.write_table(whole.slice(start, third), path)
        pa.parquet.write_table(whole, folder / f"{name}.parquet")
    names = "nodes", "edges"
    return [folder / name for name in names], [folder / f"{name}.parquet" for name in names]


def compared(folder, tables, whole, **options):
    """Tables when they are prepared, and the same when they are read, which must be alike."""
    prepared = memohop.prepare(*tables, folder / "graph", **options)
    expected = read_graph(*whole, **options)
    assert_same(prepared, expected)
    again = memohop.open_prepared(folder / "graph")
    assert again.digest == prepared.digest
    assert_same(prepared, again.in_ram())
    return prepared, expected


def assert_same(prepared, expected):
    data = expected.data
    source = np.repeat(np.arange(prepared.nodes), np.diff(prepared.out.indptr))
    assert np.array_equal(np.stack([source, prepared.out.indices]), data.edge_index.numpy())
    target = np.repeat(np.arange(prepared.nodes), np.diff(prepared.into.indptr))
    by_target = np.lexsort(data.edge_index.numpy())
    reversed_arcs = np.stack([prepared.into.indices, target])
    assert np.array_equal(reversed_arcs, data.edge_index.numpy()[:, by_target])
    if prepared.out.weights is not None or "edge_weight" in data:
        assert np.array_equal(prepared.out.weights, data.edge_weight)
        assert np.array_equal(prepared.into.weights, data.edge_weight[by_target])
    assert prepared.directed == expected.directed
    encoders = [graph.encoder.without_attributes() for graph in (prepared, expected)]
    assert encoders[0] == encoders[1]  # attributes of arcs are of tables alone
    x = expected.x
    assert sparse.issparse(prepared.x) == sparse.issparse(x)
    dense = [part.toarray() if sparse.issparse(part) else part for part in (prepared.x, x)]
    assert np.array_equal(*dense)
    assert np.array_equal(prepared.y, data.y.numpy(), equal_nan=data.y.is_floating_point())
    assert prepared.classes == expected.classes
    assert prepared.ids.to_pylist() == expected.ids.tolist()
    assert (prepared.masks is None) == (expected.masks is None)
    assert all(map(np.array_equal, prepared.masks or (), expected.masks or ()))
    assert np.array_equal(prepared.groups, expected.groups)


@pytest.mark.parametrize("ending", ["csv", "csv.gz"])
@pytest.mark.parametrize("directed", [None, True, False])
def test_many_small_text_files_are_one_table(tmp_path, directed, ending):
    tables = cut(tmp_path / "n", NODES, ending), cut(tmp_path / "e", EDGES, ending)
    compared(tmp_path, tables, whole_tables(tmp_path), label="kind", directed=directed)


@pytest.mark.parametrize(
    ("drop", "more", "is_sparse"),
    [(["about", "zip_code"], 0, False), ([], 0, True), ([], 60, False)],
    ids=["few", "mostly zeros", "many"],
)
@pytest.mark.parametrize("listed_twice", [False, True])
def test_parquet_with_every_kind_of_column(tmp_path, listed_twice, drop, more, is_sparse):
    tables, whole = random_tables(tmp_path, listed_twice=listed_twice, more=more)
    prepared, expected = compared(tmp_path, tables, whole, label="kind", drop=drop)
    assert prepared.directed == listed_twice
    assert sparse.issparse(prepared.x) == is_sparse
    rows = prepared.features_of(slice(100, 200))
    if is_sparse:
        rows = rows.toarray()
        assert not prepared.x.data.flags.writeable  # mapped
    assert np.array_equal(rows, expected.data.x.to_dense()[100:200].numpy())
    some = np.arange(100, 200)
    for block in (prepared.out.matrix(slice(100, 200)), prepared.out.matrix(some)):
        bounds = slice(*prepared.out.indptr[[100, 200]])
        assert np.array_equal(block.indices, prepared.out.indices[bounds])
        assert block.shape == (100, prepared.nodes)


ENDS_AND_WEIGHTS = st.integers(0, 8).flatmap(
    lambda most: st.lists(
        st.tuples(*2 * [st.integers(0, most)], st.integers(0, 2)), min_size=1, max_size=40
    )
)


@settings(max_examples=25)
@given(
    ENDS_AND_WEIGHTS,
    st.sampled_from([None, True, False]),
    st.sampled_from([None, "any", "the same both ways"]),
)
@example([(0, 0, 2), (0, 1, 1), (1, 0, 2)], False, "any")
def test_arcs_are_sorted_and_added_up_as_in_ram(
    tmp_path_factory, monkeypatch, edges, directed, weights
):
    monkeypatch.setattr("memohop.data.tables.sources._ROWS", 2)  # at a time
    if weights == "the same both ways":
        edges = [*edges, *((end, begin, weight) for begin, end, weight in edges)]
    ids = np.arange(np.max(edges) + 2)
    folder = tmp_path_factory.mktemp("arcs")
    names = ("source", "target", *["w"] * (weights is not None))
    columns = dict(zip(names, np.array(edges).T, strict=False))
    tables = write_parquet(folder, {"id": ids, "kind": np.array(["x", "y"])[ids % 2]}, columns)
    options = {"label": "kind", "task": "classes", "directed": directed}
    prepared, expected = compared(folder, tables, tables, **options, weight=weights and "w")
    notes = {note for note in expected.notes if "fit also tries" not in note}
    assert {note.replace(", but fit tries both", "") for note in notes} <= set(prepared.notes)


def test_columns_are_fitted_in_several_passes(tmp_path, monkeypatch):
    monkeypatch.setattr("memohop.data.prepared._columns._BYTES", 10**9)  # one column at a time
    monkeypatch.setattr("memohop.data.prepared._columns._CHUNK", 7)
    compared(tmp_path, *random_tables(tmp_path), label="kind")


def test_a_pattern_a_list_and_strings_as_ids_beside_numbers(tmp_path):
    (nodes, _), whole = random_tables(tmp_path)
    pa.csv.write_csv(pa.parquet.read_table(whole[1]), tmp_path / "edges.csv")
    tables = f"{nodes}/*.parquet", [tmp_path / "edges.csv"]
    prepared, _ = compared(tmp_path, tables, whole, label="kind")
    assert prepared.ids.type == pa.int64()


def test_a_column_with_words_in_one_file_only_is_one_of_words(tmp_path):
    nodes = tmp_path / "n"
    write(nodes, "1.csv", "id,code,k\na,1,x\nb,1,y\n")
    write(nodes, "2.csv", "id,code,k\nc,B,x\nd,B,y\n")
    edges = write(tmp_path, "e.csv", "source,target\na,b\nc,d\n")
    prepared = memohop.prepare(nodes, edges, tmp_path / "graph", label="k")
    assert prepared.encoder.feature_names == ["code=1", "code=B"]
    assert prepared.x.tolist() == [[1, 0], [1, 0], [0, 1], [0, 1]]


def test_without_labels_and_with_an_encoder_of_another_graph(tmp_path):
    known = read_graph(*whole_tables(tmp_path), label="kind")
    nodes = "id,age,city,active,about\np,40,Rome,no,red\nq,1,Bonn,yes,\n"
    tables = whole_tables(tmp_path / "later", nodes, "source,target\np,q\n")
    options = {"label": None, "encoder": known.encoder, "classes": known.classes}
    prepared, _ = compared(tmp_path, tables, tables, **options)
    assert any("'Bonn'" in note for note in prepared.notes)


def test_edges_to_unknown_nodes_may_be_dropped(tmp_path):
    tables = whole_tables(tmp_path, edges=EDGES + "a,zz\n")
    options = {"label": "kind", "drop_unknown": True, "directed": True}
    prepared, _ = compared(tmp_path, tables, tables, **options)
    assert any("1 edge(s) dropped" in note and "'zz'" in note for note in prepared.notes)


def test_the_same_files_are_not_prepared_again(tmp_path):
    files, folder = whole_tables(tmp_path), tmp_path / "graph"

    def told(**options):
        said = []
        memohop.prepare(*files, folder, progress=said.append, **options)
        return " ".join(said)

    assert "used again" not in told(label="kind")
    assert "used again" in told(label="kind")
    assert "used again" not in told(label="kind", directed=True)  # another option
    moved = files[1].stat().st_mtime_ns + 10**9
    os.utime(files[1], ns=(moved, moved))
    assert "used again" not in told(label="kind", directed=True)
    assert "used again" in told(label="kind", directed=True)
    files[1].write_text(EDGES.replace("e,a", "e,b"))  # of the same size
    os.utime(files[1], ns=(moved, moved))
    assert "used again" not in told(label="kind", directed=True)
    kept = memohop.open_prepared(folder)
    names = {path.name for path in folder.iterdir()}
    digests = {name.rpartition("-")[2].partition(".")[0] for name in names}
    assert digests == {"prepared", *(digest[:16] for digest in kept.files.values())}
    assert len(names) == len(digests)


WEIGHTED = """source,target,weight,since
a,b,2,2001
b,c,0.5,2002
c,a,1,2003
a,b,3,2004
d,d,7,2005
e,a,0,2006
"""
SETS = """id,age,part,day,team,kind
a,31,train,2024-01-01,red,x
b,,Train,2024-01-02,blue,y
c,45,valid,2024-01-03,red,x
d,22,,2024-01-04,,
e,60,test,2024-01-05,blue,y
"""


@pytest.mark.parametrize("directed", [None, True, False])
def test_weights_are_those_of_the_whole_table(tmp_path, directed):
    whole = whole_tables(tmp_path, edges=WEIGHTED)
    tables = whole[0], cut(tmp_path / "e", WEIGHTED)
    options = {"label": "kind", "directed": directed, "weight": "weight"}
    prepared, _ = compared(tmp_path, tables, whole, **options, drop=["since"])
    assert "weights of edges from 0 to 7" in prepared.notes
    assert not any("not used" in text for text in prepared.warnings)
    prepared = memohop.prepare(*tables, tmp_path / "more", **options)
    (warning,) = (text for text in prepared.warnings if "not used" in text)
    assert warning.endswith("part-0.csv and 2 more file(s): not used: column 'since'")


@pytest.mark.parametrize("how", [{"split": "part"}, {"group": "team"}])
def test_sets_are_those_of_the_whole_table(tmp_path, how):
    whole = whole_tables(tmp_path, nodes=SETS)
    tables = cut(tmp_path / "n", SETS), whole[1]
    drop = [name for name in ("part", "day", "team") if name not in how.values()]
    prepared, expected = compared(tmp_path, tables, whole, label="kind", drop=drop, **how)
    notes = {note for note in expected.notes if "fit also tries" not in note}
    assert {note.replace(", but fit tries both", "") for note in notes} <= set(prepared.notes)


def test_times_decide_the_split_of_a_prepared_graph_and_nothing_else(tmp_path):
    options = {"label": "kind", "drop": ["part", "team"]}
    whole = whole_tables(tmp_path, nodes=SETS)
    timed = read_graph(*whole, **options, time_column="day")
    prepared = memohop.prepare(*whole, tmp_path / "graph", **options, time_column="day")
    assert all(map(np.array_equal, prepared.masks, timed.masks))
    options["drop"] = [*options["drop"], "day"]
    _, expected = compared(tmp_path / "more", whole, whole, **options)
    assert np.array_equal(prepared.x, expected.x)
    assert prepared.encoder == expected.encoder.without_attributes()


@pytest.fixture(params=[True, False], ids=["directed", "undirected"])
def graph(request, tmp_path):
    options = {"label": "kind", "drop": ["about", "zip_code"], "directed": request.param}
    return memohop.prepare(*random_tables(tmp_path)[0], tmp_path / "graph", **options)


@pytest.fixture
def _large(monkeypatch):
    """Three hundred nodes are too many to be taken whole."""
    for name, value in {"_WHOLE_NODES": 100, "_CENTRES": 20, "_NEIGHBOURS": 3}.items():
        monkeypatch.setattr(_reading, name, value)


def test_a_small_graph_is_its_own_sample(graph):
    drawn, said = sample(graph)
    assert said is None
    assert drawn.data.num_nodes == 300


@pytest.mark.usefixtures("_large")
def test_arcs_and_features_of_a_sample_are_those_of_the_whole(graph):
    drawn, said = sample(graph)
    whole = graph.in_ram()
    ids = drawn.ids.tolist()
    assert 20 < len(ids) < 200
    assert f"{len(ids)} nodes and {drawn.data.num_edges} arcs" in said
    arcs = {(whole.ids[u], whole.ids[v]) for u, v in whole.data.edge_index.T.tolist()}
    inside = {(u, v) for u, v in arcs if u in ids and v in ids}
    assert {(ids[u], ids[v]) for u, v in drawn.data.edge_index.T.tolist()} == inside
    rows = [whole.ids.tolist().index(node) for node in ids]
    assert np.array_equal(drawn.x, whole.x[rows])
    assert drawn.data.y.tolist() == whole.data.y[rows].tolist()
    assert drawn.directed == graph.directed


@pytest.mark.usefixtures("_large")
def test_the_command_says_that_it_samples(graph, capsys):
    assert main(["audit", str(graph.folder), "--json"]) == 0
    said = capsys.readouterr()
    (row,) = json.loads(said.out)
    assert row["nodes"] < 200
    assert "these figures are those of a sample, 20 random nodes" in said.err
