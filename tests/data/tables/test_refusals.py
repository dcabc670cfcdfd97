"""Mistakes are named with a remedy: options, files that are no tables, and cells that are none."""

from __future__ import annotations

import gzip

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest

from commands import write_parquet
from memohop.data.tables import from_arrays, read_graph
from memohop.errors import DataError, UsageError

NODES = {"id": list("abcd"), "v": [1, 2, 3, None], "kind": list("xyxy"), "part": list("ppqq")}
EDGES = {"source": ["a", "b", "d"], "target": ["b", "c", "a"], "w": [1, 2, 3]}
TEXT, ENDS = "id,v,k\na,1,x\nb,2,y\nc,3,x\n", "s,t\na,b\n"


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        ({"label": None}, "label=None"),
        ({"label": "kint"}, "no column of nodes for label named 'kint'; did you mean kind"),
        ({"label": ["a"]}, r"no column of nodes for label named \['a'\]; known: id, v, kind"),
        ({"id": "idd"}, "for id named 'idd'"),
        ({"id": 3}, "no column of nodes for id named 3"),
        ({"source": "from"}, "for source named 'from'"),
        ({"source": {}}, "no column of edges for source named {}"),
        ({"target": True}, "no column of edges for target named True"),
        ({"weight": "x"}, "no column of edges for weight named 'x'"),
        ({"split": "prat"}, "no column of nodes for split named 'prat'; did you mean part"),
        (
            {"categorical": ["vv"]},
            "no column of either table for categorical named 'vv'; did you mean v",
        ),
        ({"text": [3]}, "no column of either table for text named 3"),
        ({"drop": "v"}, "drop='v' is no list of columns"),
        ({"label": "id"}, "column 'id' of nodes cannot be both id and label; name another one"),
        ({"id": "kind"}, "column 'kind' of nodes cannot be both id and label"),
        ({"target": "source"}, "'source' of edges cannot be both source and target"),
        ({"weight": "source"}, "'source' of edges cannot be both source and weight"),
        ({"split": "kind"}, "'kind' of nodes cannot be both label and split"),
        ({"split": "part", "group": "part"}, "'part' of nodes cannot be both split and group"),
        ({"numeric": ["v"], "text": ["v"]}, "'v' of nodes cannot be both numeric and text"),
        ({"drop": ["kind"]}, "'kind' of nodes cannot be both label and drop; .* leave it out"),
        ({"group": "v", "numeric": ["v"]}, "'v' of nodes cannot be both group and numeric"),
        ({"split": "part", "time_column": "v"}, "each say which nodes are for testing"),
        ({"directed": "no"}, "directed='no' is neither True nor False"),
        ({"drop_unknown": 1}, "drop_unknown=1 is neither"),
        ({"task": "ranking"}, "task must be one of auto, classes, numbers"),
        ({"encoder": 3}, "encoder=3 is no ColumnEncoder"),
        ({"classes": 3}, "classes=3 is no list of classes"),
        ({"classes": [None]}, r"classes=\[None\] is no list of classes"),
        ({"nodes": 3}, "nodes is of type int and no table .*give the path"),
        ({"edges": 3}, "edges is of type int and no table .*give the path"),
        ({"edges": []}, "edges is an empty list"),
    ],
)
def test_options(options, complaint):
    with pytest.raises(UsageError, match=complaint):
        read_graph(**{"nodes": NODES, "edges": EDGES, "label": "kind"} | options)


def test_an_unknown_column_does_not_list_a_thousand():
    table = NODES | {f"v{n}": [1, 2, 3, 4] for n in range(1000)}
    with pytest.raises(UsageError) as caught:
        read_graph(table, EDGES, label="?")
    assert len(str(caught.value)) < 1000


@pytest.mark.parametrize(
    ("nodes", "edges", "complaint"),
    [
        ("id,v,k\na,1,x\nb,2,y\na,3,x\nb,1,y\n", ENDS, r"2 id\(s\) in column 'id'.*'a', 'b'"),
        ("id,v,k\na,1,x\n,2,y\nc,3,x\n", ENDS, "no id in row 2"),
        ("id,v,k\na,1,x\nb,2,x\n", ENDS, "'k' has one class, 'x'"),
        ("id,v,k\na,1,x\nb,2,y\nc,3,z\n", ENDS, "3 different labels on 3 nodes"),
        ("id,v,k\na,1,\nb,2,NA\n", ENDS, "'k' is empty in every row"),
        ("id,v,k\na,1,x\nb,inf,y\nc,3,x\n", ENDS, "'v' holds inf in row 2"),
        ("id,v,k\na,1,x\nb,2,y\nc,-1e31,x\n", ENDS, r"'v' holds -1e\+31 in row 3"),
        ("id,v,k\na,1,x\nb,1e999,y\nc,3,x\n", ENDS, "'v' holds inf in row 2"),
        ("id,v,v,k\na,1,1,x\n", ENDS, "several columns named 'v'"),
        ("id,v,k\na,1,x\nb,2\n", ENDS, "line 3: Expected 3 columns, got 2"),
        (b"id,name,k\na," + b"z" * 2_000_000 + b"\xe4\x81,x\nb,b,y\n", ENDS, "not text in UTF-8"),
        (TEXT, "s,t\n", r"e\.csv has column names and no rows"),
        (TEXT, "a b\nb c\n", r"e\.csv has one column, 'a b'"),
        (TEXT, "a,b\nb,c\n", r"first line of .*e\.csv is an edge, from 'a' to 'b'"),
    ],
)
def test_text_files(nodes, edges, complaint, files):
    with pytest.raises(DataError, match=complaint):
        read_graph(*files(nodes, edges), label="k")


@pytest.mark.parametrize(
    ("name", "content", "complaint"),
    [
        ("t.csv", b"", r"t\.csv is empty; give"),
        ("t.csv", b"\n\n", r"t\.csv is empty; give"),
        ("t.csv", b"\xef\xbb\xbf", r"t\.csv is empty; give"),
        ("t.csv", b"\xef\xbb\xbf\n", r"t\.csv is empty; give"),
        ("t.csv", b"\xef\xbb", r"t\.csv"),
        ("t.csv", b"\xc3\0", r"t\.csv is not text in UTF-8; save"),
        ("t.csv", b"id,kind\na,x\nb,\xc3\0", r"t\.csv is not text in UTF-8; save"),
        ("t.csv", b"id,kind,\xc3\x81!\x81", r"t\.csv is not text in UTF-8; save"),
        ("t.csv", "id,kind\na,x\n".encode("utf-16-le"), r"t\.csv is not text in UTF-8; save"),
        ("t.csv", b"id,kind", r"t\.csv has column names and no rows; give"),
        ("t.csv.gz", b"id,kind\na,x\n", r"t\.csv\.gz is not compressed as its name says"),
        ("t.csv.gz", gzip.compress(b"", mtime=0), r"t\.csv\.gz is empty; give"),
        ("t.parquet", b"PAR1PAR1", r"t\.parquet cannot be read"),
        ("t.parquet", b"", r"t\.parquet cannot be read"),
        ("t.csv", None, r"there is no file .*t\.csv"),
        ("t.parquet", None, r"there is no file .*t\.parquet"),
        ("", None, "is a folder; give the file"),
    ],
)
@pytest.mark.parametrize("argument", ["nodes", "edges"])
def test_files_that_are_no_tables(name, content, complaint, argument, tmp_path):
    path = tmp_path / name
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(DataError, match=complaint):
        read_graph(**{"nodes": NODES, "edges": EDGES, "label": "kind"} | {argument: path})


@pytest.mark.parametrize("left", [0.5, 0.999])
def test_a_gzip_that_ends_early(left, files):
    nodes = "id,k\n" + "".join(f"n{n},{n % 3}\n" for n in range(100_000))
    paths = files(nodes, suffix=".csv.gz")
    whole = paths[0].read_bytes()
    paths[0].write_bytes(whole[: int(left * len(whole))])
    with pytest.raises(DataError, match=r"n\.csv\.gz ends early"):
        read_graph(*paths, label="k")


@pytest.mark.parametrize("argument", ["nodes", "edges"])
def test_tables_without_columns_or_rows(argument, tmp_path):
    tables = {"nodes": NODES, "edges": EDGES, "label": "kind"}
    for table in ({}, pa.table({})):
        with pytest.raises(DataError, match=f"{argument} has no columns; give"):
            read_graph(**tables | {argument: table})
    for complaint, table in {"no columns": {}, "no rows": {"id": [], "kind": []}}.items():
        pa.parquet.write_table(pa.table(table), tmp_path / "t.parquet")
        with pytest.raises(DataError, match=rf"t\.parquet has .*{complaint}"):
            read_graph(**tables | {argument: tmp_path / "t.parquet"})


@pytest.mark.parametrize("column", ["id", "v", "kind", "source", "target"])
@pytest.mark.parametrize(
    "cells",
    [
        [[1], [2], [3], None],
        [{"a": 1}] * 4,
        [b"a", b"\xff", b"c", b"d"],
        pa.array([[("k", 1)]] * 4, pa.map_(pa.string(), pa.int64())),
        pa.array([1, 2, 3, 4], pa.duration("s")),
    ],
    ids=["list", "struct", "binary", "map", "duration"],
)
def test_columns_that_are_no_number_flag_or_string(column, cells, tmp_path):
    tables = {"nodes": NODES, "edges": {"source": list("abda"), "target": list("bcac")}}
    name = "nodes" if column in NODES else "edges"
    tables[name] = tables[name] | {column: cells}
    complaint = rf"{name}\.parquet: column '{column}' is of type .*convert"
    with pytest.raises(DataError, match=complaint):
        read_graph(*write_parquet(tmp_path, **tables), label="kind")


@pytest.mark.parametrize("column", ["id", "v", "kind"])
def test_strings_whose_bytes_are_no_letters(column):
    letters = pa.array([b"a", b"\xff", b"c", b"d"])
    strings = pa.Array.from_buffers(pa.string(), 4, letters.buffers())
    with pytest.raises(DataError, match=f"nodes: column '{column}' holds strings that are not"):
        read_graph(NODES | {column: strings}, EDGES, label="kind")


@pytest.mark.parametrize("labels", [[[1], [2], [1]], [{}, {}, {}], [b"x", b"y", b"x"]])
def test_labels_of_arrays_that_are_no_labels(labels):
    with pytest.raises((UsageError, DataError), match="labels"):
        from_arrays(np.zeros((3, 3)), np.eye(3), labels)
