"""How the letters of a text file are stored, told from its bytes."""

from __future__ import annotations

import codecs
from pathlib import Path

import pyarrow as pa

from memohop.errors import UsageError

UTF_8 = "utf-8"
WINDOWS = "cp1252"
"""What most text was written in before UTF-8; its letters are those of Latin-1, and a few more."""

_MARKS = {  # the longer ones first: they begin alike
    codecs.BOM_UTF32_LE: "utf-32",
    codecs.BOM_UTF32_BE: "utf-32",
    codecs.BOM_UTF16_LE: "utf-16",
    codecs.BOM_UTF16_BE: "utf-16",
}
_BLOCK = 1 << 20
_CONTROL = bytes(set(range(32)) - set(b"\t\n\v\f\r\x1a\x1b"))  # characters that no text has


def encoding_of(path: Path) -> str:
    """The encoding of a text file, of which every byte is looked at.

    It is that of its byte-order mark, or else UTF-8 if it can be read so, or else Windows-1252 if
    it can be read so and has no control characters. A file that is none of these is no text, and a
    :class:`UnicodeError`.

    Args:
        path: The file, which may be compressed.
    """
    with pa.input_stream(str(path), compression="detect") as stream:
        begin = stream.read(4)
    for mark, name in _MARKS.items():
        if begin.startswith(mark):
            return name
    try:
        _read_through(path, UTF_8)
    except UnicodeError as error:
        try:
            _read_through(path, WINDOWS)
        except UnicodeError:
            raise error from None
        return WINDOWS
    return UTF_8


def named_encoding(encoding: str) -> str:
    """The usual name of an encoding of text; anything else is a :class:`UsageError`."""
    try:
        "a".encode(encoding)
        return codecs.lookup(encoding).name
    except (LookupError, TypeError, ValueError) as error:
        raise UsageError(
            f"encoding={encoding!r} is no encoding of text; give one such as utf-8, cp1252 or "
            "utf-16, or leave it out"
        ) from error


def decoder_of(encoding: str) -> codecs.IncrementalDecoder:
    """A decoder that leaves out a byte-order mark."""
    return codecs.getincrementaldecoder("utf-8-sig" if encoding == UTF_8 else encoding)()


def _read_through(path: Path, encoding: str) -> None:
    decoder = decoder_of(encoding)
    with pa.input_stream(str(path), compression="detect") as stream:
        while block := stream.read(_BLOCK):
            if encoding == WINDOWS and len(block.translate(None, _CONTROL)) < len(block):
                raise UnicodeError("control characters")
            if not block.isascii() or decoder.getstate()[0]:
                decoder.decode(block)
    decoder.decode(b"", final=True)
