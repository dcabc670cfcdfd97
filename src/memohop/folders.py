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
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import msgspec
import psutil

from memohop.errors import DataError, MemohopError, UsageError
from memohop.outputs import TEMPORARY, check_writable
from memohop.version import __version__

NO_DIGEST = "0" * 64
"""What stands in a description instead of its own digest while that is computed."""

_SIGNATURE = "\n<!-- SHA-256 of what is above: {} -->\n"
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
    """

    what: str
    command: str
    described: str
    format: int
    names: re.Pattern[str]
    again: str
    anew: str
    card: str = ""

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
        return is_working_folder(path) or self.is_named_by_digest(path)

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

    def write(self, folder: Path, files: Mapping[str, bytes], described: str) -> None:
        """Write files and their description, instead of older ones of ours.

        Args:
            folder: The folder.
            files: Their content, by name.
            described: The description, with :data:`NO_DIGEST` for its digest.
        """
        older = [path for path in folder.iterdir() if self.is_ours(path)] if folder.exists() else []
        names = [*files, self.described]
        with disk_errors(folder, self.what, self.described), working_folder(folder) as work:
            for name, content in zip(names, [*files.values(), sealed(described)], strict=True):
                (work / name).write_bytes(content)
            publish(work, folder, files, self.described)
            for path in older:
                if path.name not in names and path.is_file():
                    path.unlink()

    def damaged(self, path: Path) -> DataError:
        """The error for a file that is missing or was changed."""
        return DataError(
            f"{path} is missing, damaged or was changed after memohop {self.command} wrote it: its "
            f"SHA-256 is not the one that was recorded; {self.again}"
        )

    @contextmanager
    def refused(self, path: Path, *others: type[Exception]) -> Iterator[None]:
        """Turn errors on what a file holds, inside the block, into one that names the file.

        Args:
            path: The file.
            *others: Other errors than ours, and than those of what is no JSON of the right types.
        """
        errors: tuple[type[Exception], ...] = (
            MemohopError,
            msgspec.MsgspecError,
            UnicodeDecodeError,
            RecursionError,
            *others,
        )
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
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
            return None
        digests = {self.described: head.sha256} if isinstance(head.sha256, str) else head.sha256
        claimed = digests.get(self.described, "")
        with_none = content.replace(claimed.encode(), NO_DIGEST.encode(), 1)
        return head if sha256(with_none) == claimed else None


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
