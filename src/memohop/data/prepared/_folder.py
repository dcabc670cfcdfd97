"""The folder of a prepared graph: plain arrays, and a description with their digests.

========================  ======================================================================
``prepared.json``         what the graph is, from which files it was made, the SHA-256 of each
                          other file, and its own
``out-indptr-*.npy``      rows of the adjacency matrix: node ``u`` points to
``out-indices-*.npy``     ``indices[indptr[u]:indptr[u + 1]]``, in ascending order
``out-weights-*.npy``     the weights of these arcs, ``float32``, if edges have weights
``in-*.npy``              all of these for the nodes that point to ``u``, if the graph is directed
``features-*.npy``        ``float32``, dense or the three arrays of a sparse matrix
``labels-*.npy``          class numbers, -1 without a label; or numbers, NaN without one
``sets-*.npy``            whether a node is for training, validation or test, if a column says so
``groups-*.npy``          the number of each node's group, if a column has groups
``ids-*.arrow``           the ids, whole numbers or strings
========================  ======================================================================

The star stands for the beginning of the file's SHA-256. How the folder is written, and what in it
may be replaced or removed, is in :mod:`memohop.folders`; how it is checked, in :mod:`_checking`.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Annotated, Any

import msgspec
import pyarrow as pa

import memohop.folders as folders
from memohop.data.read_options import Class, Task
from memohop.data.tables.columns import ColumnEncoder
from memohop.errors import DataError

MANIFEST = "prepared.json"
FORMAT = 2
GRAPH_FOLDER = folders.Layout(
    what="prepared graph",
    command="prepare",
    described=MANIFEST,
    format=FORMAT,
    names=re.compile(
        r"(out|in|features|labels|sets|groups|ids)(-[a-z]+)?-(?P<digest>[0-9a-f]{16})\.(npy|arrow)"
    ),
    again="prepare the graph again",
    anew="prepare it again",
)
_ENDS = 1 << 20  # bytes at either end of an input that its digest is of


class Manifest(msgspec.Struct, frozen=True, kw_only=True, eq=False, dict=True):
    """The content of ``prepared.json``.

    Attributes:
        format: How the folder is laid out.
        sha256: That of this description, and so of the whole graph.
        memohop: The version that wrote it.
        nodes: The number of nodes.
        arcs: The number of arcs, of which an edge without a direction has two.
        directed: Whether an edge is one arc, or one each way.
        features: The number of features.
        stored: How many of their values are stored, if they are mostly zeros; otherwise None.
        task: Whether the labels are classes or numbers.
        classes: What each class number stands for; empty if numbers are to be predicted.
        label: The column of the labels, or None.
        encoder: How columns became features.
        notes: What was done to the tables, in plain words.
        warnings: The notes on likely mistakes and on anything left out.
        options: How the tables were read.
        inputs: What identifies the files of the tables.
        files: The SHA-256 of each file of the folder, by name.
    """

    format: int
    sha256: str
    memohop: str
    nodes: int
    arcs: int
    directed: bool
    features: int
    stored: int | None
    task: Task
    classes: list[Class]
    label: str | None
    encoder: ColumnEncoder
    notes: list[str]
    warnings: list[str]
    options: dict[str, Any]
    inputs: list[str]
    files: dict[str, Annotated[str, msgspec.Meta(pattern=r"\A[0-9a-f]{64}\Z")]]


def identify(path: Path) -> str:
    """Path, size, time of change and the SHA-256 of the first and the last mebibyte of a file.

    A file for which these are what they were counts as unchanged.
    """
    status, digest = path.stat(), hashlib.sha256()
    with path.open("rb") as file:
        digest.update(file.read(_ENDS))
        file.seek(max(0, status.st_size - _ENDS))
        digest.update(file.read(_ENDS))
    return f"{path.resolve()} {status.st_size} {status.st_mtime_ns} {digest.hexdigest()}"


def file_name(name: str, digest: str) -> str:
    """How the file of an array, or of the ids, is called in the folder."""
    return folders.named(name, digest, ".arrow" if name == "ids" else ".npy")


@contextmanager
def working_folder(folder: Path) -> Iterator[Path]:
    """A folder to work in, unless another process has one."""
    for path in folder.iterdir() if folder.exists() else ():
        if folders.is_working_folder(path) and (process := folders.writer(path)) is not None:
            raise DataError(
                f"process {process} is preparing {folder} already; wait for it, give another "
                f"name, or remove {path} if it is something else"
            )
    with folders.working_folder(folder) as work:
        yield work


def keep(folder: Path, work: Path, files: Sequence[Path], described: dict[str, Any]) -> None:
    """Move finished files from the working folder, and describe them.

    Args:
        folder: The folder of the prepared graph.
        work: Its working folder.
        files: The files, named as they are known.
        described: The rest of the manifest.
    """
    digests = {path.stem: folders.sha256_of(path) for path in files}
    for path in files:
        path.rename(work / file_name(path.stem, digests[path.stem]))
    manifest = Manifest(format=FORMAT, sha256=folders.NO_DIGEST, files=digests, **described)
    text = msgspec.json.format(msgspec.json.encode(manifest), indent=1)
    (work / MANIFEST).write_bytes(folders.sealed(text.decode()))
    names = {file_name(name, digest) for name, digest in digests.items()}
    folders.publish(work, folder, names, MANIFEST)
    for path in folder.iterdir():  # of an older preparation, or of one that was killed
        if path.name not in names and GRAPH_FOLDER.is_named_by_digest(path):
            path.unlink()


def read_manifest(folder: Path) -> Manifest:
    """The description of a prepared graph; one that was changed is a :class:`DataError`."""
    content = GRAPH_FOLDER.read(folder)
    with refused(folder / MANIFEST):
        return msgspec.json.decode(content, type=Manifest)


def refused(path: Path) -> AbstractContextManager[None]:
    """Turn errors inside the block into a :class:`DataError` that names the file."""
    return GRAPH_FOLDER.refused(path, pa.ArrowException, OSError)
