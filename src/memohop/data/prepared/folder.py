"""The folder of a prepared graph: plain arrays, and a description with their digests.

========================  ======================================================================
``prepared.json``         what the graph is, from which files it was made, name, size and SHA-256
                          of each other file, and its own SHA-256
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

The star stands for the beginning of the file's SHA-256. Everything is written in a folder inside,
``.preparing-PID``, then renamed, and ``prepared.json`` comes last and at once: a process that is
killed leaves the older graph or none. The next preparation removes what a killed one left behind.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Literal

import msgspec
import psutil

from memohop.errors import DataError, UsageError
from memohop.outputs import check_folder, write_whole

MANIFEST = "prepared.json"
FORMAT = 1
_OURS = re.compile(r"(out|in|features|labels|sets|groups|ids)(-[a-z]+)?-[0-9a-f]{16}\.(npy|arrow)")
_WORKING = re.compile(r"\.preparing-(\d+)")
_PART = re.compile(rf"\.{MANIFEST}\.(\d+)\.part")
_NO_DIGEST = "0" * 64
_ENDS = 1 << 20  # bytes at either end of an input that its digest is of


class InputFile(msgspec.Struct, frozen=True):
    """A file that a graph was made from.

    It counts as unchanged if its size, its time of change and the SHA-256 of its first and last
    mebibyte are what they were.
    """

    path: str
    size: int
    changed: int
    sha256_of_ends: str


class ArrayInfo(msgspec.Struct, frozen=True):
    """A file of the folder."""

    file: str
    size: int
    sha256: str


class Manifest(msgspec.Struct, frozen=True, kw_only=True):
    """The content of ``prepared.json``; most attributes are those of ``Prepared``."""

    format: int
    sha256: str
    memohop: str
    nodes: int
    arcs: int
    directed: bool
    features: int
    sparse: bool
    task: Literal["classes", "numbers"]
    classes: list[str | int]
    label: str | None
    encoder: dict[str, Any]
    notes: list[str]
    warnings: list[str]
    options: dict[str, Any]
    inputs: list[InputFile]
    files: dict[str, ArrayInfo]


def known_input(path: Path) -> InputFile:
    """What identifies a file."""
    found = path.stat()
    digest = hashlib.sha256()
    with path.open("rb") as file:
        digest.update(file.read(_ENDS))
        file.seek(max(0, found.st_size - _ENDS))
        digest.update(file.read(_ENDS))
    return InputFile(str(path.resolve()), found.st_size, found.st_mtime_ns, digest.hexdigest())


def check_target(folder: Path) -> None:
    """Refuse a folder that cannot be written, or that holds something else."""
    check_folder(folder)
    if folder.is_dir() and not (folder / MANIFEST).exists():
        foreign = sorted(path.name for path in folder.iterdir() if not _is_ours(path.name))
        if foreign:
            raise UsageError(
                f"{folder} exists and is no prepared graph (it holds {foreign[0]}); give another "
                "name"
            )


@contextmanager
def working_folder(folder: Path) -> Iterator[Path]:
    """A folder to work in, removed at the end whatever happens, with those of killed processes."""
    folder.mkdir(parents=True, exist_ok=True)
    for path in folder.iterdir():
        found = _WORKING.fullmatch(path.name)
        if found and int(found[1]) != os.getpid() and psutil.pid_exists(int(found[1])):
            raise DataError(
                f"process {found[1]} is preparing {folder} already; wait for it, give another "
                f"name, or remove {path} if it is something else"
            )
    with suppress(DataError):  # a damaged manifest, which will be replaced
        _clean(folder)
    work = folder / f".preparing-{os.getpid()}"
    work.mkdir()
    try:
        yield work
    finally:
        shutil.rmtree(work, ignore_errors=True)
        with suppress(OSError):
            folder.rmdir()  # if it is empty: nothing was prepared


def keep(folder: Path, work: Path, files: Sequence[Path], described: dict[str, Any]) -> None:
    """Move finished files from the working folder, and describe them.

    Args:
        folder: The folder of the prepared graph.
        work: Its working folder.
        files: The files, named as they are known.
        described: The rest of the manifest.
    """
    known = {}
    for path in files:
        sha256 = _digest(path)
        name = f"{path.stem}-{sha256[:16]}{path.suffix}"
        known[path.stem] = ArrayInfo(name, path.stat().st_size, sha256)
        with path.open("rb") as file:
            os.fsync(file.fileno())
        path.replace(folder / name)
    manifest = Manifest(format=FORMAT, sha256=_NO_DIGEST, files=known, **described)
    text = msgspec.json.format(msgspec.json.encode(manifest), indent=1)
    write_whole(folder / MANIFEST, text.replace(_NO_DIGEST.encode(), _sha256(text).encode(), 1))
    _clean(folder)


def read_manifest(folder: Path) -> Manifest:
    """The description of a prepared graph; one that was changed is a :class:`DataError`."""
    path = folder / MANIFEST
    if not path.is_file():
        raise UsageError(f"there is no prepared graph in {folder}; memohop prepare makes one")
    content = path.read_bytes()
    try:
        head = msgspec.json.decode(content, type=_Head)
        if head.format != FORMAT:
            raise DataError(
                f"{folder} was made by memohop {head.memohop} in format {head.format}, and this "
                f"version reads format {FORMAT}; prepare it again"
            )
        manifest = msgspec.json.decode(content, type=Manifest)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise _damaged(path) from error
    if (
        _sha256(content.replace(manifest.sha256.encode(), _NO_DIGEST.encode(), 1))
        != manifest.sha256
    ):
        raise _damaged(path)
    return manifest


def check_files(folder: Path, manifest: Manifest, *, digests: bool) -> None:
    """Refuse a folder of which a file is missing or was changed.

    Args:
        folder: The folder.
        manifest: Its description.
        digests: Whether to read all files and compare their SHA-256, or their sizes alone.
    """
    for info in manifest.files.values():
        path = folder / info.file
        if not path.is_file() or path.stat().st_size != info.size:
            raise _damaged(path)
        if digests and _digest(path) != info.sha256:
            raise _damaged(path)


class _Head(msgspec.Struct):
    """The part of the manifest that every version has."""

    format: int
    memohop: str


def _clean(folder: Path) -> None:
    """Remove what a killed preparation left, and files that the manifest does not name."""
    named = set()
    with suppress(UsageError):  # there is no manifest
        named = {info.file for info in read_manifest(folder).files.values()}
    for path in folder.iterdir():
        if path.is_dir() and _WORKING.fullmatch(path.name):
            shutil.rmtree(path)
        elif _PART.fullmatch(path.name) or (_OURS.fullmatch(path.name) and path.name not in named):
            path.unlink()


def _is_ours(name: str) -> bool:
    return any(pattern.fullmatch(name) for pattern in (_OURS, _WORKING, _PART))


def _damaged(path: Path) -> DataError:
    return DataError(
        f"{path} is missing, damaged or was changed after it was prepared: its SHA-256 is not the "
        "one that was recorded; prepare the graph again"
    )


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()
