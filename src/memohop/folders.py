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
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import msgspec
import psutil

from memohop.errors import DataError, MemohopError, UsageError
from memohop.outputs import TEMPORARY, check_writable, move, not_written
from memohop.version import __version__

NO_DIGEST = "0" * 64
"""What stands in a description instead of its own digest while that is computed."""

_SIGNATURE = "\n<!-- SHA-256 of what is above: {} -->\n"
_WORKING = re.compile(r"\.writing-(\d{1,9})")
_NOTE = "memohop.txt"
_NOTED = b"Memohop writes the files of the folder above in here; when next it writes, this goes.\n"
_NO_JSON = (msgspec.MsgspecError, UnicodeDecodeError, RecursionError)


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


def sealed(text: str) -> bytes:
    """A description with its digest in place of the first :data:`NO_DIGEST`."""
    return text.replace(NO_DIGEST, sha256(text.encode()), 1).encode()


def signed(text: bytes) -> bytes:
    """A text with its digest below."""
    return text + _SIGNATURE.format(sha256(text)).encode()


class _Head(msgspec.Struct):
    """What every description has, in every format."""

    format: int
    memohop: str
    sha256: str | dict[str, str]  # its own, in older models one of several


@dataclass(frozen=True)
class Layout:
    """A kind of folder that we write.

    Attributes:
        what: What it holds, for messages.
        command: The command that writes it.
        described: The name of its description.
        format: Of the description; an older one is refused.
        names: The names of its other files, with the beginning of their digest as the group
            ``digest``.
        again: How to get it again, for messages about a file that is damaged.
        anew: How to make it again in this format; braces stand for the folder.
        card: The name of a text for people that is :func:`signed`, if there is one.
        errors: What reading its files may raise, beside our errors and those of what is no JSON.
    """

    what: str
    command: str
    described: str
    format: int
    names: re.Pattern[str]
    again: str
    anew: str
    card: str = ""
    errors: tuple[type[Exception], ...] = ()

    def check_target(self, path: str | os.PathLike[str]) -> Path:
        """The folder to write; a :class:`UsageError` if something there would be lost."""
        folder = Path(path).expanduser()
        for part in (folder, *folder.parents):
            if part.is_symlink() and not part.exists():
                raise UsageError(
                    f"{part} is a link to {part.readlink()}, which does not exist; remove the "
                    "link or give another name"
                )
        if folder.exists() and not folder.is_dir():
            raise UsageError(f"{folder} is a file; give the name of a folder")
        inside = {path.name: path for path in folder.iterdir()} if folder.exists() else {}
        if self.described not in inside:
            for name in sorted(inside, key=lambda name: (name.startswith("."), name)):
                if not self.is_ours(inside[name]) and not TEMPORARY.fullmatch(name):
                    raise UsageError(
                        f"{folder} exists and is no {self.what} (it holds {name}); give another "
                        "name"
                    )
        for name in (self.described, self.card):
            if name in inside and not self.is_ours(inside[name]):
                raise UsageError(
                    f"{folder / name} would be replaced, and is not as memohop wrote it; move it "
                    f"away, or give the {self.what} another name"
                )
        nearest = next(
            path for path in (folder.absolute(), *folder.absolute().parents) if path.exists()
        )
        check_writable(nearest, f"{folder}")
        return folder

    def is_ours(self, path: Path) -> bool:
        """Whether a file or folder in such a folder is proven to be ours."""
        content = path.read_bytes() if path.is_file() else b""
        if path.name == self.described:
            return self._head(content) is not None
        if path.name == self.card:
            return content == signed(content[: -len(_SIGNATURE.format(NO_DIGEST))])
        return _is_working_folder(path) or self.is_named_by_digest(path)

    def is_named_by_digest(self, path: Path) -> bool:
        """Whether the name of a file is one of :attr:`names`, with its own digest."""
        match = self.names.fullmatch(path.name)
        start = match["digest"] if match else None
        return start is not None and path.is_file() and sha256_of(path).startswith(start)

    def read(self, folder: Path) -> bytes:
        """The description; an error if it is not there, was changed or has another format."""
        path = folder / self.described
        if not path.is_file():
            raise UsageError(
                f"there is no {self.what} in {folder}; memohop {self.command} makes one"
            )
        content = path.read_bytes()
        head = self._head(content)
        if head is None:
            raise self.damaged(path)
        if head.format != self.format:
            update = "update memohop, or " if head.format > self.format else ""
            raise DataError(
                f"{folder} was made by memohop {head.memohop} in format {head.format}, and memohop "
                f"{__version__} reads format {self.format} alone; {update}"
                f"{self.anew.format(folder)}"
            )
        return content

    @contextmanager
    def replaced(self, folder: Path, *others: type[Exception]) -> Iterator[Path]:
        """A working folder; what is in it at the end of the block replaces older files of ours.

        What the disk refuses is a :class:`DataError` that says what is left, and what to do.

        Args:
            folder: The folder.
            *others: Errors, beside those of the system, by which a library says so.
        """
        errors: tuple[type[Exception], ...] = (OSError, *others)
        try:
            with _working_folder(folder) as work:
                yield work
                self._publish(work, folder)
        except errors as error:
            said = not_written(folder, error, (folder / self.described).exists(), self.what)
            raise DataError(f"{said}: make room there, or name a folder on another disk") from error

    def _publish(self, work: Path, folder: Path) -> None:
        """Move files from the working folder, the description last, and remove older ones."""
        names = {path.name for path in work.iterdir() if path.is_file()} - {_NOTE}
        in_order = sorted(names, key=lambda name: (name == self.described, name))
        move({work / name: folder / name for name in in_order})
        for path in folder.iterdir():
            if path.name not in names and self.is_named_by_digest(path):
                path.unlink()

    def damaged(self, path: Path) -> DataError:
        """The error for a file that is missing or was changed."""
        return DataError(
            f"{path} is missing, damaged or was changed after memohop {self.command} wrote it: its "
            f"SHA-256 is not the one that was recorded; {self.again}"
        )

    @contextmanager
    def refused(self, path: Path) -> Iterator[None]:
        """Turn errors on what a file holds, inside the block, into one that names the file."""
        errors: tuple[type[Exception], ...] = (MemohopError, *_NO_JSON, *self.errors)
        try:
            yield
        except errors as error:
            raise DataError(
                f"{path} is not as memohop {self.command} writes it: {error}; {self.again}"
            ) from error

    def _head(self, content: bytes) -> _Head | None:
        """The head of a description in any format; None if it is none, or was changed."""
        try:
            head = msgspec.json.decode(content, type=_Head)
        except _NO_JSON:
            return None
        digests = {self.described: head.sha256} if isinstance(head.sha256, str) else head.sha256
        claimed = digests.get(self.described, "")
        with_none = content.replace(claimed.encode(), NO_DIGEST.encode(), 1)
        return head if sha256(with_none) == claimed else None


@contextmanager
def _working_folder(folder: Path) -> Iterator[Path]:
    """A folder to work in, removed at the end whatever happens, with those of killed processes."""
    folder.mkdir(parents=True, exist_ok=True)
    for path, process in working_folders(folder).items():
        if process is None:
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


def _is_working_folder(path: Path) -> bool:
    """Whether this is a working folder: the note in it says so, or there is nothing to lose."""
    if not _WORKING.fullmatch(path.name) or path.is_symlink() or not path.is_dir():
        return False
    note = path / _NOTE
    noted = note.read_bytes() if note.is_file() else b""
    alone = {inside.name for inside in path.iterdir()} <= {_NOTE}
    return noted == _NOTED or (alone and _NOTED.startswith(noted))  # killed while it was written


def working_folders(folder: Path) -> dict[Path, int | None]:
    """The working folders inside, and the other process that works in each; None if it is gone."""
    paths = [path for path in folder.glob(".writing-*") if _is_working_folder(path)]
    processes = [int(path.name.rpartition("-")[2]) for path in paths]
    return {
        path: process if process != os.getpid() and psutil.pid_exists(process) else None
        for path, process in zip(paths, processes, strict=True)
    }
