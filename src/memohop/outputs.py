"""What a command shows and writes: text made safe, files written whole or not at all."""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from memohop.errors import DataError, UsageError

TEMPORARY = re.compile(r"\.memohop-\w+|\..+\.\d+\.part")
"""Names of files that are being written by this process or another, or by one that was killed."""
_UNSEEN = (
    r"\x00-\x1f\x7f-\x9f"  # control characters: they steer a terminal
    r"\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069"  # they reverse the text after them
    r"\u2028\u2029"  # line breaks to some programs
    r"\ud800-\udfff"  # half a character, which cannot be written as UTF-8
)
_ANYWHERE, _BUT_LINES = re.compile(f"[{_UNSEEN}]"), re.compile(f"(?!\n)[{_UNSEEN}]")


def printable(text: str, *, lines: bool = False) -> str:
    r"""A text of unknown origin, such as the name of a node, made safe to show.

    Invisible characters are spelled out as ``\u202e``; ``lines`` keeps line breaks.
    """
    pattern = _BUT_LINES if lines else _ANYWHERE
    return pattern.sub(lambda match: f"\\u{ord(match[0]):04x}", text)


def check_output(
    output: Path, *endings: str, flag: str = "--output", inputs: Iterable[Path | None] = ()
) -> None:
    """Refuse a file that could not be written, or must not be, before any work is done.

    Args:
        output: The file to be written.
        *endings: What its name may end in, such as ``".csv"``; by default anything.
        flag: The option that named the file, for the message.
        inputs: Files that are read, which the output must not overwrite.
    """
    if endings and output.suffix not in endings:
        raise UsageError(f"{flag} {output}: give a name that ends in {' or '.join(endings)}")
    if output.is_dir():
        raise UsageError(f"{flag} {output}: this is a folder; give the name of a file")
    if output.is_symlink() and not output.exists():
        raise UsageError(
            f"{flag} {output}: this is a link to {output.readlink()}, which does not exist; "
            "remove the link or give another name"
        )
    for source in inputs:
        if source is not None and output.exists() and source.exists() and output.samefile(source):
            raise UsageError(
                f"{flag} {output}: this is the file that is read; give the output another name"
            )
    if output.exists() and not output.is_file():
        return  # a device or a pipe, such as /dev/stdout: nothing there can be destroyed
    folder = output.resolve().parent
    if not folder.is_dir():
        raise UsageError(f"{flag} {output}: there is no folder {output.parent}; make it first")
    check_writable(folder, f"{flag} {output}")


def check_writable(folder: Path, output: str) -> None:
    """Refuse a folder that cannot be written to; ``output`` is what the user typed."""
    try:  # permissions are not enough: a file system may be mounted read-only
        with tempfile.TemporaryFile(dir=folder):  # without a name that others could meet
            pass
    except OSError as error:
        raise UsageError(
            f"{output}: nothing can be written into {folder} ({error.strerror}); "
            "choose another folder"
        ) from None


@contextmanager
def whole_file(output: Path) -> Iterator[Path]:
    """A path to write to, which replaces ``output`` when the block ends without an error.

    If the block fails or the disk is full, an older file stays as it was and nothing else is left
    behind. A device or a pipe is written to directly.
    """
    if output.exists() and not output.is_file():
        yield output
        return
    output = output.resolve()  # through a link, which stays a link
    part = output.with_name(f".{output.name[:100]}.{os.getpid()}.part")
    try:
        yield part
        move({part: output})
    except OSError as error:
        raise DataError(not_written(output, error, output.exists(), "file")) from error
    finally:
        part.unlink(missing_ok=True)


def move(files: Mapping[Path, Path]) -> None:
    """Move files, in this order, when all of them are on the disk; permissions there stay."""
    for new in files:
        with new.open("rb") as file:
            os.fsync(file.fileno())
    for new, place in files.items():
        with suppress(FileNotFoundError):
            new.chmod(place.stat().st_mode & 0o7777)  # the older file's
        new.replace(place)


def not_written(place: Path, error: Exception, is_there: bool, what: str) -> str:
    """What is said of a file or folder that the disk refuses, and of an older one."""
    said = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
    left = f"the older {what} is as it was" if is_there else "nothing was left behind"
    return f"{place} could not be written ({said.strip()}); {left}"


def write_whole(output: Path, content: str | bytes) -> None:
    """Write a file whole or not at all; text is written as UTF-8."""
    with whole_file(output) as part:
        part.write_bytes(content.encode() if isinstance(content, str) else content)


def count(number: int, noun: str) -> str:
    """A number and its noun, in the plural if needed."""
    return f"{number} {noun}{'s' * (number != 1)}"


def first_few(names: Sequence[str]) -> str:
    """The first five names, and how many more there are."""
    more = len(names) - 5
    return ", ".join(names[:5]) + (f" and {more} more" if more > 0 else "")


def listed(names: Sequence[str], noun: str = "column") -> str:
    """The noun, in the plural if needed, and the first few names."""
    return f"{noun}{'s' * (len(names) > 1)} {first_few([repr(name) for name in names])}"
