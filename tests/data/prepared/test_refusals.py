"""What can go wrong while a graph is prepared, or after it; nothing half done is left behind."""

import errno
import os
import shutil
from pathlib import Path

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import memohop
from commands import write_parquet
from memohop.data.prepared._arrays import ArrayFile
from memohop.errors import DataError, UsageError

NODES = "id,v,k\na,1,x\nb,2,y\nc,3,x\nd,5,y\n"
EDGES = "source,target\na,b\nb,c\n"


@pytest.fixture
def tables(tmp_path):
    """Writes tables, and returns the three paths of a preparation."""

    def write(nodes=NODES, edges=EDGES):
        for name, text in (("n.csv", nodes), ("e.csv", edges)):
            (tmp_path / name).write_text(text)
        return tmp_path / "n.csv", tmp_path / "e.csv", tmp_path / "graph"

    return write


@pytest.mark.parametrize(
    ("changed", "options", "words"),
    [
        ({"edges": EDGES + "a,c\n" * 5000 + "a\n" + "a,c\n" * 10}, {}, r"e\.csv.*line 5004"),
        ({"edges": EDGES + "\n\na,b,c\n"}, {}, r"e\.csv.*line 6: .*Expected 2 columns, got 3"),
        ({"nodes": NODES + '"e\ne",7,x\nf,6,x,1\n'}, {}, r"n\.csv.*line 8"),
        ({"edges": EDGES + "a,zz\n"}, {}, r"e\.csv: 1 of 3 edges.*'zz' \(row 3\).*--drop-unknown"),
        ({"nodes": NODES + "b,7,x\n"}, {}, r"n\.csv: 1 id\(s\) in column 'id'.*'b'"),
        ({"nodes": NODES + ",7,x\n"}, {}, r"n\.csv: column 'id' has no id in row 5"),
        ({"edges": "a,b\nb,c\n"}, {}, r"first line of .*e\.csv is an edge"),
        ({"edges": "source,target\n"}, {}, r"e\.csv.* no rows"),
        ({"nodes": "id,v,k\n"}, {}, r"n\.csv.* no rows"),
        ({"edges": "source\na\n"}, {}, r"e\.csv has one column"),
        ({"edges": "s,t,w\na,b,1\na,b,-3\n"}, {"weight": "w"}, "the weight '-3' in row 2; give"),
    ],
)
def test_bad_tables_are_named(tables, changed, options, words):
    *files, folder = tables(**changed)
    with pytest.raises(DataError, match=words):
        memohop.prepare(*files, folder, label="k", **options)
    assert not folder.exists()


@pytest.mark.parametrize(
    ("nodes", "edges", "words"),
    [
        (["", "id,k\ne,x\n"], [""], r"nodes/1\.csv has no column 'v', which .*nodes/0\.csv has"),
        ([""], ["", "source,target\na,b,c\n", ""], r"edges/1\.csv.*line 2: .*Expected 2 columns"),
    ],
)
def test_the_file_with_a_mistake_is_named(tmp_path, nodes, edges, words):
    for name, texts, right in (("nodes", nodes, NODES), ("edges", edges, EDGES)):
        (tmp_path / name).mkdir()
        for number, text in enumerate(texts):
            (tmp_path / name / f"{number}.csv").write_text(text or right)
    with pytest.raises(DataError, match=words):
        memohop.prepare(tmp_path / "nodes", tmp_path / "edges", tmp_path / "graph", label="k")
    assert not (tmp_path / "graph").exists()


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"label": "kk"}, "no column of .* for label named 'kk'"),
        ({"weight": "target"}, "cannot be both target and weight"),
        ({"memory": 5}, "memory=5 is too small"),
        ({"directed": "yes"}, "directed='yes'"),
    ],
)
def test_missing_columns_and_bad_options(tables, options, words):
    *files, folder = tables()
    with pytest.raises(UsageError, match=words):
        memohop.prepare(*files, folder, **options)
    assert not folder.exists()


def test_no_files(tmp_path, tables):
    nodes, edges, folder = tables()
    (tmp_path / "empty").mkdir()
    with pytest.raises(DataError, match=r"nodes: .*empty holds no tables"):
        memohop.prepare(tmp_path / "empty", edges, folder)
    with pytest.raises(DataError, match=r"edges: there is no file .*x\*\.csv"):
        memohop.prepare(nodes, tmp_path / "x*.csv", folder)


def contents(folder):
    """The content of every file in a folder."""
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


FOREIGN = (
    "labels-0123456789abcdef.npy",
    "ids-0123456789abcdef.arrow",
    ".writing-999999999/memohop.txt",
    ".writing-999999999/chapter.txt",
    ".preparing-999999999/chapter.txt",
)


@pytest.mark.parametrize(
    ("name", "text", "words"),
    [
        ("thesis.txt", "years of work", r"is no prepared graph \(it holds thesis\.txt\)"),
        *((name, "years of work", "is no prepared graph") for name in FOREIGN),
        *(
            ("prepared.json", text, r"prepared\.json would be replaced.*move it away")
            for text in ("", "{}", "[1]", '{"format": 1, "memohop": "1", "sha256": ""}')
        ),
    ],
)
def test_what_is_not_proven_to_be_ours_is_left_alone(tables, name, text, words):
    *files, folder = tables()
    (folder / name).parent.mkdir(parents=True)
    (folder / name).write_text(text)
    before = contents(folder)
    with pytest.raises(UsageError, match=words):
        memohop.prepare(*files, folder)
    assert contents(folder) == before
    with pytest.raises(
        (UsageError, DataError), match=r"no prepared graph|prepared\.json is missing|format 1"
    ):
        memohop.open_prepared(folder)


def test_what_someone_put_beside_a_graph_stays(tables):
    *files, folder = tables()
    folder.mkdir()
    (folder / ".predictions.csv.99.part").write_text("another command is writing this")
    memohop.prepare(*files, folder)
    changed = next(folder.glob("labels-*"))
    for path in (changed, *(folder / name for name in FOREIGN)):
        path.parent.mkdir(exist_ok=True)
        path.write_text("years of work")
    memohop.prepare(*files, folder, label="k", directed=True)
    kept = {digest[:16] for digest in memohop.open_prepared(folder).files.values()}
    beside = {path for path in contents(folder) if path.stem.rpartition("-")[2] not in kept}
    names = ("prepared.json", ".predictions.csv.99.part", changed.name, *FOREIGN)
    assert beside == {folder / name for name in names}


def test_a_full_disk_leaves_the_older_graph(tables, monkeypatch):
    *files, folder = tables()
    older = memohop.prepare(*files, folder, label="k").digest
    written = ArrayFile.append

    def fills(self, values):
        if self._file.name.endswith("out-indices.npy"):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        written(self, values)

    monkeypatch.setattr(ArrayFile, "append", fills)
    with pytest.raises(DataError, match=r"No space left on .*; the older prepared graph is as it"):
        memohop.prepare(*files, folder, label="k", directed=True)
    assert memohop.open_prepared(folder).digest == older
    assert not list(folder.glob(".*"))


@pytest.mark.parametrize("limit", [100_000, 700_000], ids=["the database's", "ours"])
def test_files_that_may_not_grow(tmp_path, limit):
    resource = pytest.importorskip("resource", reason="files cannot be limited here")
    count = 120_000
    ids = np.arange(count)
    edges = {"source": ids, "target": (ids * 7) % count}
    tables = write_parquet(tmp_path, {"id": ids, "v": ids % 7}, edges)
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, before[1]))
    try:
        with pytest.raises(DataError, match=r"could not be written .*nothing was left behind"):
            memohop.prepare(*tables, tmp_path / "graph")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert not (tmp_path / "graph").exists()


def test_a_killed_preparation_leaves_nothing_that_looks_finished(tables, tmp_path, monkeypatch):
    """What is on the disk at some points is what a process that is killed there would leave."""
    *files, folder = tables()
    left = []

    def look():
        copy = tmp_path / f"left-{len(left)}"
        shutil.copytree(folder, copy)
        working = copy / f".writing-{os.getpid()}"
        working.rename(copy / ".writing-999999999")  # no process has this number
        left.append(copy)

    def look_and_move(path, target):
        look()
        return move(path, target)

    move = Path.replace
    monkeypatch.setattr(Path, "replace", look_and_move)
    memohop.prepare(*files, folder, progress=lambda doing: look())
    monkeypatch.undo()
    assert len(left) > 8
    assert (folder / "prepared.json").exists()
    for copy in left:
        assert list(copy.iterdir())
        with pytest.raises(UsageError, match="no prepared graph"):
            memohop.open_prepared(copy)
    for copy in (left[2], left[-2], left[-1]):
        memohop.prepare(*files, copy)
        assert {path.name for path in copy.iterdir()} == {path.name for path in folder.iterdir()}


def test_two_preparations_of_one_folder(tables):
    *files, folder = tables()
    (folder / f".writing-{os.getppid()}").mkdir(parents=True)
    with pytest.raises(DataError, match=f"process {os.getppid()} is preparing"):
        memohop.prepare(*files, folder)


def test_any_changed_byte_is_refused_and_prepared_again(tables):
    *files, folder = tables()
    memohop.prepare(*files, folder, label="k")
    for path in sorted(folder.iterdir()):
        content = bytearray(path.read_bytes())
        content[len(content) // 2] ^= 1
        path.write_bytes(content)
        with pytest.raises(DataError, match=f"{path.name} is missing, damaged or was changed"):
            memohop.open_prepared(folder)
        content[len(content) // 2] ^= 1
        path.write_bytes(content)
    assert memohop.open_prepared(folder).arcs == 4
    path = next(folder.glob("labels-*"))
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(DataError, match=r"labels-.* is no array of type int64 and shape \[4\]"):
        memohop.open_prepared(folder, check=False)
    memohop.prepare(*files, folder, label="k")
    assert memohop.open_prepared(folder).arcs == 4


@pytest.mark.fuzz
def test_any_other_manifest_is_refused(tables):
    *files, folder = tables()
    memohop.prepare(*files, folder, label="k")
    manifest = folder / "prepared.json"
    whole = manifest.read_bytes()

    @given(st.integers(0, len(whole) - 1), st.integers(0, 40), st.binary(max_size=40))
    def try_one(start, length, inserted):
        changed = whole[:start] + inserted + whole[start + length :]
        assume(changed != whole)
        manifest.write_bytes(changed)
        with pytest.raises(DataError):
            memohop.open_prepared(folder)

    try_one()
