"""Folders that we write: nothing in them is replaced or removed unless it is proven to be ours.

Such a folder has a description that contains its own SHA-256, and other files, whose names end in
the beginning of theirs. These digests are the proof that we wrote a file and nobody changed it; a
name alone proves nothing, and what is not proven stays as it is.

New files are made in a folder inside, ``.writing-PID``, and moved when all of them are whole, the
description last and at once: a process that is killed, or meets a full disk, leaves the older
content or none. The working folder holds a note by which the next process knows that it is ours.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import psutil

from memohop.errors import DataError, UsageError
from memohop.outputs import TEMPORARY, check_writable

NO_DIGEST = "0" * 64
"""What stands in a description instead of its own digest while that is computed."""

_WORKING = re.compile(r"\.writing-(\d{1,9})")
_NOTE = "memohop.txt"
_NOTED = b"Memohop writes the files of the folder above in here; when next it writes, this goes.\n"


def sha256(content: bytes) -> str:
    """The digest, as hexadecimal digits."""
    return hashlib.sha256(content).hexdigest()


def sha256_of(path: Path) -> str:
    """The digest of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def named(stem: str, digest: str, ending: str) -> str:
    """The name of a file with this digest."""
    return f"{stem}-{digest[:16]}{ending}"


def is_named_so(path: Path, names: re.Pattern[str]) -> bool:
    """Whether the name of a file matches, with its own digest as the group ``digest``."""
    match = names.fullmatch(path.name)
    start = match["digest"] if match else None
    return start is not None and path.is_file() and sha256_of(path).startswith(start)


def sealed(text: str) -> bytes:
    """A description with its digest in place of the first :data:`NO_DIGEST`."""
    return text.replace(NO_DIGEST, sha256(text.encode()), 1).encode()


def is_sealed(content: bytes, claimed: str) -> bool:
    """Whether a description has the digest that it claims."""
    return sha256(content.replace(claimed.encode(), NO_DIGEST.encode(), 1)) == claimed


def check_folder(
    path: str | os.PathLike[str],
    what: str,
    is_ours: Callable[[Path], bool],
    described: str,
    *replaced: str,
) -> Path:
    """The folder to write; a :class:`UsageError` if something there would be lost.

    Args:
        path: The folder that the user named.
        what: What is to be written, for messages.
        is_ours: Whether a file or folder in it is proven to be ours.
        described: The name of the description, without which nothing else may be there.
        *replaced: The names of other files that would be replaced.
    """
    folder = Path(path).expanduser()
    for part in (folder, *folder.parents):
        if part.is_symlink() and not part.exists():
            raise UsageError(
                f"{part} is a link to {part.readlink()}, which does not exist; remove the link or "
                "give another name"
            )
    if folder.exists() and not folder.is_dir():
        raise UsageError(f"{folder} is a file; give the name of a folder")
    inside = {path.name: path for path in folder.iterdir()} if folder.exists() else {}
    if described not in inside:
        for name in sorted(inside, key=lambda name: (name.startswith("."), name)):
            if not is_ours(inside[name]) and not TEMPORARY.fullmatch(name):
                raise UsageError(
                    f"{folder} exists and is no {what} (it holds {name}); give another name"
                )
    for name in (described, *replaced):
        if name in inside and not is_ours(inside[name]):
            raise UsageError(
                f"{folder / name} would be replaced, and is not as memohop wrote it; move it "
                f"away, or give the {what} another name"
            )
    nearest = next(
        path for path in (folder.absolute(), *folder.absolute().parents) if path.exists()
    )
    check_writable(nearest, f"{folder}")
    return folder


@contextmanager
def working_folder(folder: Path) -> Iterator[Path]:
    """A folder to work in, removed at the end whatever happens, with those of killed processes."""
    folder.mkdir(parents=True, exist_ok=True)
    for path in folder.iterdir():
        if is_working_folder(path) and writer(path) is None:
            shutil.rmtree(path)
    work = folder / f".writing-{os.getpid()}"
    work.mkdir()
    try:
        (work / _NOTE).write_bytes(_NOTED)
        yield work
    finally:
        shutil.rmtree(work, ignore_errors=True)
        with suppress(OSError):
            folder.rmdir()  # if it is empty: nothing was written


def is_working_folder(path: Path) -> bool:
    """Whether this is a working folder: the note in it says so, or there is nothing to lose."""
    if not _WORKING.fullmatch(path.name) or path.is_symlink() or not path.is_dir():
        return False
    note = path / _NOTE
    noted = note.read_bytes() if note.is_file() else b""
    alone = {inside.name for inside in path.iterdir()} <= {_NOTE}
    return noted == _NOTED or (alone and _NOTED.startswith(noted))  # killed while it was written


def writer(path: Path) -> int | None:
    """The other process that works in a working folder; None if it is gone."""
    process = int(path.name.rpartition("-")[2])
    return process if process != os.getpid() and psutil.pid_exists(process) else None


def publish(work: Path, folder: Path, files: Collection[str], described: str) -> None:
    """Move files from the working folder, the description last.

    Args:
        work: The working folder.
        folder: The folder.
        files: The names of the other files.
        described: The name of the description.
    """
    names = (*files, described)
    for name in names:
        with (work / name).open("rb") as file:
            os.fsync(file.fileno())
    for name in names:
        with suppress(FileNotFoundError):
            (work / name).chmod((folder / name).stat().st_mode & 0o7777)  # the older file's
        (work / name).replace(folder / name)


@contextmanager
def disk_errors(
    folder: Path, what: str, described: str, other: type[Exception] = OSError
) -> Iterator[None]:
    """What the disk refuses as a :class:`DataError` that says what is left, and what to do.

    Args:
        folder: The folder that is written.
        what: What is written into it, for the message.
        described: The name of the description.
        other: A kind of errors beside those of the system.
    """
    try:
        yield
    except (OSError, other) as error:
        said = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        is_there = (folder / described).exists()
        older = f"the older {what} is as it was" if is_there else "nothing was left behind"
        raise DataError(
            f"{folder} could not be written ({said.strip()}); {older}: make room there, or name "
            "a folder on another disk"
        ) from error
