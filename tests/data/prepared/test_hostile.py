"""Prepared folders that somebody changed, digests included, are refused or safe."""

from __future__ import annotations

import io
import json
import os
import shutil
import subprocess
import sys

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import memohop
from commands import write_parquet
from memohop.cli import main
from memohop.data.prepared._arrays import map_array
from memohop.data.prepared._folder import file_name
from memohop.errors import DataError
from memohop.folders import NO_DIGEST, sealed, sha256

NODES, ARCS = 40, 120
KINDS = ("weighted", "sparse", "numbers")


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    """A directed graph with weights, sets and groups, one with sparse features, one to regress."""
    home = tmp_path_factory.mktemp("prepared")
    generator = np.random.default_rng(0)
    labels = np.where(np.arange(NODES) % 4, np.arange(NODES) % 3, -1)
    nodes = {
        "id": [f"n{number}" for number in range(NODES)],
        "size": generator.normal(size=NODES),
        "kind": [None if label < 0 else "abc"[label] for label in labels],
        "set": np.array(["train", "val", "test"])[np.arange(NODES) % 3],
        "team": np.arange(NODES) % 7,
        "amount": generator.normal(size=NODES),
    }
    zeros = {f"z{n}": (generator.random(NODES) < 0.1).astype(int) for n in range(60)}
    source, target = generator.integers(NODES, size=(2, ARCS))
    edges = {"s": [f"n{n}" for n in source], "t": [f"n{n}" for n in target]}
    edges["w"] = generator.random(ARCS)
    (home / "with zeros").mkdir()
    tables = write_parquet(home, nodes, edges)
    with_zeros = write_parquet(home / "with zeros", nodes | zeros, edges)
    undirected = {"directed": False, "drop": ["set", "team"]}
    options = {
        "weighted": {"label": "kind", "weight": "w", "split": "set", "group": "team"},
        "sparse": {"label": "kind"} | undirected,
        "numbers": {"label": "amount"} | undirected,
    }
    graphs = {}
    for kind, more in options.items():
        files = with_zeros if kind == "sparse" else tables
        graphs[kind] = memohop.prepare(*files, home / kind, **{"directed": True} | more)
    assert graphs["sparse"].stored
    return {kind: graph.folder for kind, graph in graphs.items()}


def forged(original, folder, contents=(), change=lambda manifest: None):
    """A copy with other contents of some files, and a description with the right digests.

    Args:
        original: The folder.
        folder: Where to write.
        contents: Name and new content, an array or bytes.
        change: Called with the description.
    """
    shutil.copytree(original, folder, copy_function=os.link)
    described = folder / "prepared.json"
    manifest = json.loads(described.read_text())
    described.unlink()  # the original's
    for name, content in dict(contents).items():
        if isinstance(content, np.ndarray):
            file = io.BytesIO()
            np.save(file, content)
            content = file.getvalue()
        manifest["files"][name] = digest = sha256(content)
        (folder / file_name(name, digest)).write_bytes(content)
    change(manifest)
    described.write_bytes(sealed(json.dumps(manifest | {"sha256": NO_DIGEST})))
    return folder


def array_of(folder, name):
    return np.array(map_array(file_of(folder, name)))


def file_of(folder, name):
    manifest = json.loads((folder / "prepared.json").read_text())
    return folder / file_name(name, manifest["files"][name])


def at(place, value):
    """A change of one value."""

    def change(array):
        array[place] = value
        return array

    return change


def swapped(array):
    """Two neighbours of one node, in the wrong order."""
    array[[0, 1]] = array[[1, 0]]
    return array


WRONG = [
    ("weighted", "out-indices", at(5, -1), "entry 5 is -1"),
    ("weighted", "out-indices", at(5, 10**9), "entry 5 is 1000000000"),
    ("weighted", "in-indices", at(-1, NODES), "which is not from 0 to 39"),
    ("sparse", "features-indices", at(3, 10**6), "entry 3 is 1000000"),
    ("sparse", "features-indices", swapped, "row 0 are not in ascending order"),
    ("weighted", "out-indices", swapped, "row 0 are not in ascending order"),
    ("weighted", "out-indptr", at(3, -5), "row 2 ends before it begins"),
    ("weighted", "out-indptr", at(3, 10**12), "row 3 ends before it begins"),
    ("weighted", "in-indptr", at(0, 1), "rows go from 1 to"),
    ("sparse", "out-indptr", at(-1, 10**12), "rows go from 0 to 1000000000000"),
    ("sparse", "features-indptr", at(7, 0), "row 6 ends before it begins"),
    ("weighted", "out-weights", at(4, np.inf), "entry 4 is inf"),
    ("weighted", "out-weights", at(4, np.nan), "entry 4 is nan"),
    ("weighted", "in-weights", at(4, -1), "entry 4 is -1"),
    ("weighted", "in-weights", at(4, 3e38), "which is not from 0 to 1e\\+30"),
    ("weighted", "features", at((7, 1), np.inf), "entry 7, 1 is inf"),
    ("weighted", "features", at((7, 1), 3e38), "which is not from -10.0 to 10.0"),
    ("sparse", "features-data", at(7, np.nan), "entry 7 is nan"),
    ("weighted", "labels", at(3, -9), "entry 3 is -9, which is not from -1 to 2"),
    ("weighted", "labels", at(3, 3), "entry 3 is 3"),
    ("numbers", "labels", at(3, np.inf), "entry 3 is inf"),
    ("weighted", "groups", at(2, NODES), "entry 2 is 40"),
    ("weighted", "groups", at(2, -1), "entry 2 is -1"),
    ("weighted", "sets", lambda sets: sets | True, "row 0 is in two sets"),
    ("weighted", "sets", lambda sets: np.roll(sets, 1, axis=0), "has no label"),
    ("weighted", "sets", lambda sets: sets & False, "no node is for training"),
    ("weighted", "sets", lambda sets: (sets * np.uint8(7)).view(bool), "entry 1, . is 7"),
    ("weighted", "features", lambda x: x[:25], r"no array of type float32 and shape \[40, "),
    ("weighted", "features", lambda x: x.astype(np.float64), "no array of type float32"),
    ("weighted", "features", np.asfortranarray, "no array of type float32"),
    ("numbers", "labels", lambda y: y.astype(np.int64), "no array of type float64"),
    ("weighted", "out-indptr", lambda bounds: bounds[:-1], "no array of type int64"),
    ("weighted", "out-indices", lambda places: places.astype(">i4"), "no array of type int32"),
    ("weighted", "labels", lambda y: np.array([{}] * NODES), "no array of type int64"),
    ("weighted", "labels", lambda y: b"", "no array of type int64"),
    ("weighted", "labels", lambda y: b"PK\x03\x04" + bytes(900), "no array of type int64"),
]


def arrow(column, name="id"):
    sink = pa.BufferOutputStream()
    table = pa.table({name: column})
    with pa.ipc.new_file(sink, table.schema) as writer:
        writer.write_table(table)
    return sink.getvalue().to_pybytes()


IDS = [f"n{number}" for number in range(NODES)]
WRONG_IDS = [
    (arrow(IDS[1:]), "it holds 39 ids for 40 nodes"),
    (arrow([*IDS[1:], None]), "a node has no id"),
    (arrow(IDS, "name"), r"it holds columns \['name'\]"),
    (arrow(pa.array(IDS).dictionary_encode()), "it holds columns"),
    (arrow(np.arange(NODES) / 2), "it holds columns"),
    (arrow(IDS).replace(b"n1", b"\xff1", 1), "UTF8"),
    (arrow(IDS)[:-30], "prepare the graph again"),
    (b"", "prepare the graph again"),
]


def refused(folder, words):
    with pytest.raises(DataError, match=words) as caught:
        memohop.open_prepared(folder)
    assert "\n" not in str(caught.value)
    assert str(caught.value).endswith("; prepare the graph again")


@pytest.mark.parametrize(("kind", "name", "change", "words"), WRONG)
def test_a_wrong_array_is_refused(folders, tmp_path, kind, name, change, words):
    content = change(array_of(folders[kind], name))
    folder = forged(folders[kind], tmp_path / "forged", {name: content})
    refused(folder, rf"{name}-[0-9a-f]{{16}}\.npy is not as .*{words}")


@pytest.mark.parametrize(("content", "words"), WRONG_IDS)
def test_wrong_ids_are_refused(folders, tmp_path, content, words):
    folder = forged(folders["weighted"], tmp_path / "forged", {"ids": content})
    refused(folder, rf"ids-[0-9a-f]{{16}}\.arrow is not as .*{words}")


def taken(name, **named):
    def change(manifest):
        info = manifest["files"].pop(name)
        manifest["files"] |= dict.fromkeys(named, info)

    return change


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda manifest: manifest.update(nodes=0), "counts 0 nodes"),
        (lambda manifest: manifest.update(nodes=2**40), "counts 1099511627776 nodes"),
        (lambda manifest: manifest.update(arcs=-1), "and -1 arcs"),
        (lambda manifest: manifest.update(arcs="many"), "Expected `int`"),
        (lambda manifest: manifest.update(features=9), "do not make 9 features"),
        (lambda manifest: manifest.update(encoder={"columns": 3}), "Expected `array`"),
        (lambda manifest: manifest.update(classes=["a", "a", "b"]), "it has classes="),
        (lambda manifest: manifest.update(classes=["a", 1, "b"]), "it has classes="),
        (lambda manifest: manifest.update(classes=[1, 10**30]), "it has classes=|out of range"),
        (lambda manifest: manifest.update(task="numbers"), "task='numbers'"),
        (lambda manifest: manifest.update(options={}), "missing required field `id`"),
        (lambda manifest: manifest.update(stored=7), "it lists "),
        (lambda manifest: manifest.update(directed=False), "it lists "),
        (taken("labels"), "it lists "),
        (taken("in-weights"), "it lists "),
        (taken("features", **{"features-data": 1}), "it lists "),
        (lambda manifest: manifest["files"].update(labels="../" * 21 + "0"), "`str` matching"),
    ],
)
def test_a_description_that_contradicts_itself_is_refused(folders, tmp_path, change, words):
    folder = forged(folders["weighted"], tmp_path / "forged", change=change)
    refused(folder, rf"prepared\.json is not as .*({words})")


def test_what_the_commands_say(folders, tmp_path, capsys):
    places = at(5, -1)(array_of(folders["weighted"], "out-indices"))
    folder = str(forged(folders["weighted"], tmp_path / "forged", {"out-indices": places}))
    output = str(tmp_path / "p.parquet")
    for command in (["predict", folder, folder, "-o", output], ["audit", folder], ["fit", folder]):
        assert main(command) == 1
        (said,) = capsys.readouterr().err.strip().splitlines()
        assert "entry 5 is -1" in said


@pytest.mark.parametrize("kind", KINDS)
def test_what_was_prepared_is_accepted(folders, tmp_path, kind, monkeypatch):
    graph = memohop.open_prepared(folders[kind])
    folder = forged(folders[kind], tmp_path / "same", {"labels": np.array(graph.y)})
    monkeypatch.setattr("memohop.data.prepared._checking._CHUNK", 3)
    assert memohop.open_prepared(folder).arcs == graph.arcs


@pytest.mark.parametrize("chunk", [1, 2, 3, 7, 1000])
def test_every_chunk_is_looked_at(folders, tmp_path, chunk, monkeypatch):
    monkeypatch.setattr("memohop.data.prepared._checking._CHUNK", chunk)
    bounds = array_of(folders["sparse"], "out-indptr")
    places = array_of(folders["sparse"], "out-indices")
    long = [row for row in range(NODES) if bounds[row + 1] - bounds[row] > 1]
    for row in (long[0], long[len(long) // 2], long[-1]):
        wrong = places.copy()
        last = slice(bounds[row + 1] - 2, bounds[row + 1])
        wrong[last] = wrong[last][::-1]
        folder = forged(folders["sparse"], tmp_path / f"{row}", {"out-indices": wrong})
        refused(folder, f"the entries of row {row} are not in ascending order")


NUMBERS = st.sampled_from([-(2**31), -9, -1, 0, 1, 2, 39, 40, 41, 10**6, 10**9, 2**31 - 1])
REALS = st.sampled_from([-np.inf, np.inf, np.nan, -1.0, 0.0, 1e30, 3e38, 1.0])


@st.composite
def changes(draw, folders):
    """A folder, and other contents of some of its files."""
    kind = draw(st.sampled_from(KINDS))
    files = json.loads((folders[kind] / "prepared.json").read_text())["files"]
    contents = {}
    for name in draw(st.sets(st.sampled_from(sorted(files)), min_size=1, max_size=2)):
        if name == "ids":
            content = bytearray(file_of(folders[kind], name).read_bytes())
            for place in draw(st.lists(st.integers(0, len(content) - 1), min_size=1, max_size=4)):
                content[place] = draw(st.integers(0, 255))
            contents[name] = bytes(content)
            continue
        array = array_of(folders[kind], name)
        values = {"b": st.booleans(), "i": NUMBERS, "f": REALS}[array.dtype.kind]
        how = draw(st.sampled_from(["values", "values", "values", "order", "length", "type"]))
        if how == "values":
            for _ in range(draw(st.integers(1, 3))):
                place = tuple(draw(st.integers(0, size - 1)) for size in array.shape)
                array[place] = draw(values)
        elif how == "order":
            first, second = (draw(st.integers(0, len(array) - 1)) for _ in range(2))
            array[[first, second]] = array[[second, first]]
        elif how == "length":
            array = array[: draw(st.integers(0, len(array)))]
        else:
            array = array.astype(draw(st.sampled_from(["<i4", "<i8", "<f4", "<f8", "?", "S3"])))
        contents[name] = array
    return kind, contents


USE = """
import sys
from pathlib import Path
import memohop
from memohop.data.prepared import sample
from memohop.networks import build
from memohop.parts.folder import matrix_rows, read_block
from memohop.parts.halo import Group

for folder in map(Path, sys.stdin.read().split()):
    graph = memohop.open_prepared(folder)
    graph.in_ram(), sample(graph), graph.ids.to_pylist(), graph.groups
    for start in range(0, graph.nodes, 7):
        rows = slice(start, min(start + 7, graph.nodes))
        near = matrix_rows(graph, rows, direction="undirected", self_loops="remove")
        near @ graph.x, graph.features_of(rows), graph.x[near.indices]
    read_block(graph, build("h2gcn", graph.features, 2), Group())
print("done")
"""


@pytest.mark.fuzz
def test_hostile_folders_are_refused_or_safe(folders, tmp_path):
    """What is accepted is used in a process of its own, which a wrong index might end."""
    accepted, number = list(folders.values()), iter(range(10**9))

    @given(changes(folders))
    def try_one(changed):
        kind, contents = changed
        folder = forged(folders[kind], tmp_path / f"{next(number)}", contents)
        try:
            memohop.open_prepared(folder)
        except DataError as error:
            assert str(error).endswith("prepare the graph again")  # noqa: PT017
        else:
            accepted.append(folder)

    try_one()
    given_paths = "\n".join(map(str, accepted))
    command = [sys.executable, "-W", "ignore", "-c", USE]
    ended = subprocess.run(command, input=given_paths, capture_output=True, text=True)
    assert (ended.returncode, ended.stdout) == (0, "done\n"), ended.stderr
