"""A model as a folder of plain files, without pickle.

=========================  ===================================================================
``model.json``             the description of the model, and name and SHA-256 of the other files
``weights-*.safetensors``  its tensors
``trees-*.txt``            its boosted trees, as LightGBM writes them, a file for each model
``graph-*.safetensors``    the graph of ``fit``: features, arcs, targets and ids
``README.md``              the model card, for people
=========================  ===================================================================

The star stands for the beginning of the file's own SHA-256. To replace a model, files with other
names are written beside the older ones, and then a new ``model.json`` is renamed over the older
one: a process that is killed at any point leaves either the older model or the newer one, whole.
A file is replaced or removed only if a digest proves that Memohop wrote it and nobody changed it:
the digest in its name, or the one inside (``model.json`` and ``README.md``). Other files stay.

A file with a changed byte is refused. To share a model without its data, delete the file
of the graph: the rest predicts on other graphs.

Models are written in format 4 (:mod:`memohop.own.keep`); in format 3, classes had no shifts.
Formats 1 and 2, of networks with memory alone, can be read (:mod:`memohop.own.earlier`); names had
no digests in format 1.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec
from safetensors import SafetensorError
from safetensors.torch import load_file
from safetensors.torch import save as save_tensors
from torch import Tensor

from memohop.errors import DataError, MemohopError, UsageError
from memohop.outputs import check_writable, whole_file, write_whole
from memohop.version import __version__

NEWEST = 4
"""The newest format. A format is raised whenever an older version could not read a folder."""

_JSON, _CARD = "model.json", "README.md"
_FILE = re.compile(r"(weights|graph|trees)(?:-([0-9a-f]{16}))?\.(?:safetensors|txt)")
_PART = re.compile(rf"\.({_FILE.pattern}|{_JSON}|{_CARD})\.\d+\.part")  # of a killed save
_CARD_TITLE = "# A node classifier for "  # of a card of format 1, which has no digest
_CARD_END = "\n<!-- SHA-256 of what is above: {} -->\n"
_NO_DIGEST = "0" * 64


def file_of_tensors(kind: str, tensors: Mapping[str, Tensor]) -> tuple[str, bytes]:
    """Name and content of a file of tensors."""
    content = save_tensors(dict(tensors))
    return f"{kind}-{sha256(content)[:16]}.safetensors", content


def file_of_text(kind: str, text: str) -> tuple[str, bytes]:
    """Name and content of a file of text."""
    content = text.encode()
    return f"{kind}-{sha256(content)[:16]}.txt", content


def write_folder(
    folder: Path, files: Mapping[str, bytes], described: Mapping[str, Any], card: str
) -> None:
    """Write a model, replacing an older one if there is one.

    Args:
        folder: As :func:`check_target` returns it.
        files: The content of each file, by name.
        described: The rest of ``model.json``; its own digest is that of the text with zeros
            instead of the digest.
        card: The model card.
    """
    digests = {_JSON: _NO_DIGEST} | {name: sha256(content) for name, content in files.items()}
    try:
        text = json.dumps(
            {"format": described["format"], "sha256": digests, "memohop": __version__, **described},
            indent=1,
            ensure_ascii=False,
            allow_nan=False,
        )
    except (TypeError, ValueError) as error:
        raise UsageError(
            f"this model cannot be saved ({error}); use labels that are strings or numbers"
        ) from error
    older = _written(folder) - {_JSON, _CARD} - files.keys()
    folder.mkdir(parents=True, exist_ok=True)
    new = files.keys() - _names(folder)
    text = text.replace(_NO_DIGEST, sha256(text.encode()), 1)
    try:
        for name, content in files.items():
            write_whole(folder / name, content)
        with whole_file(folder / _JSON) as part:  # when it ends, it is the newer model
            part.write_bytes(text.encode())
            write_whole(folder / _CARD, card + _CARD_END.format(sha256(card.encode())))
    except BaseException:  # a full disk, or Ctrl-C
        json_file = folder / _JSON
        if not (json_file.exists() and json_file.read_bytes() == text.encode()):
            for name in new:
                (folder / name).unlink(missing_ok=True)
        raise
    for name in older:
        (folder / name).unlink(missing_ok=True)


def check_target(path: str | os.PathLike[str]) -> Path:
    """The folder for a model; a ``UsageError`` if it cannot be written or holds other files."""
    folder = Path(path).expanduser()
    if folder.is_symlink() and not folder.exists():
        raise UsageError(
            f"{folder} is a link to {folder.readlink()}, which does not exist; remove the link or "
            "give another name"
        )
    if folder.exists() and not folder.is_dir():
        raise UsageError(f"{folder} is a file; give the name of a folder")
    there = _names(folder)
    foreign = sorted(there - _written(folder))
    if foreign and _JSON not in there:
        raise UsageError(
            f"{folder} exists and is no saved model (it holds {foreign[0]}); give another name"
        )
    if changed := [name for name in foreign if name in (_JSON, _CARD)]:
        raise UsageError(
            f"{folder / changed[0]} would be replaced, and is not as memohop wrote it; move it "
            "away, or give the model another name"
        )
    nearest = next(one for one in (folder.absolute(), *folder.absolute().parents) if one.exists())
    check_writable(nearest, f"{folder}")
    return folder


class SavedModel:
    """The files of a saved model; a damaged or too new model is refused.

    Args:
        path: The folder.

    Attributes:
        folder: The folder.
        format: The format of the folder.
        json: The path of ``model.json``.
        content: Its bytes.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.folder = Path(path).expanduser()
        self.json = self.folder / _JSON
        if not self.json.is_file():
            raise UsageError(f"there is no saved model in {self.folder}; memohop fit makes one")
        self.content = self.json.read_bytes()
        head = _head(self.content)
        if head is not None and head.format not in range(1, NEWEST + 1):
            raise DataError(
                f"{self.folder} was made by memohop {head.memohop} in format {head.format}, and "
                f"memohop {__version__} reads formats up to {NEWEST}; update memohop, or fit the "
                "model again"
            )
        if head is None or not _is_intact(self.content, head):
            raise _damaged(self.json)
        self.format, self._sha256 = head.format, head.sha256

    def is_replaced(self) -> bool:
        """Whether the folder holds another model by now."""
        return not self.json.is_file() or self.json.read_bytes() != self.content

    def names(self, kind: str) -> list[str]:
        """The names of the files of a kind."""
        found = ((name, _FILE.fullmatch(name)) for name in self._sha256)
        return [name for name, match in found if match and match[1] == kind]

    def tensors(self, kind: str, *, optional: bool = False) -> dict[str, Tensor] | None:
        """The tensors of a kind; None if the file is missing and may be."""
        names = self.names(kind)
        if len(names) != 1:
            with refused(self.json):
                raise UsageError(f"its files are {', '.join(self._sha256)}")
        path = self.folder / names[0]
        if optional and not path.exists():
            return None
        self._check(path)
        try:
            return load_file(path)
        except (SafetensorError, KeyError, ValueError, RuntimeError) as error:
            raise _damaged(path) from error

    def text(self, name: str) -> str:
        """The content of one of its text files."""
        path = self.folder / name
        self._check(path)
        with refused(path):
            return path.read_bytes().decode()

    def _check(self, path: Path) -> None:
        if not path.is_file() or _digest(path) != self._sha256[path.name]:
            raise _damaged(path)


@contextmanager
def refused(path: Path) -> Iterator[None]:
    """Turn errors inside the block into a ``DataError`` that names the file."""
    try:
        yield
    except (MemohopError, msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise DataError(
            f"{path} has the right digest but does not describe a model: {error}; "
            "fit the model again, or copy it again from where it was fitted"
        ) from error


class _Head(msgspec.Struct):
    """The part of ``model.json`` that every version has."""

    format: int
    memohop: str
    sha256: dict[str, str]


def _head(content: bytes) -> _Head | None:
    """The head of a ``model.json``; None if it is not one of any version."""
    try:
        found = msgspec.json.decode(content, type=_Head)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return None
    return found if _JSON in found.sha256 else None


def _is_intact(content: bytes, head: _Head) -> bool:
    """Whether a ``model.json`` matches the digest that it contains."""
    claimed = head.sha256[_JSON]
    return sha256(content.replace(claimed.encode(), _NO_DIGEST.encode(), 1)) == claimed


def _damaged(path: Path) -> DataError:
    return DataError(
        f"{path} is missing, damaged or was changed after it was saved: its SHA-256 is not the one "
        "that was recorded; copy the model again, or fit it again"
    )


def _names(folder: Path) -> set[str]:
    return {file.name for file in folder.iterdir()} if folder.exists() else set()


def _written(folder: Path) -> set[str]:
    """The names of the files in a folder that Memohop wrote and nobody changed."""
    there = {name for name in _names(folder) if (folder / name).is_file()}
    ours = {name for name in there if _PART.fullmatch(name)}
    noted, is_old = dict[str, str](), False
    if _JSON in there:
        content = (folder / _JSON).read_bytes()
        head = _head(content)
        if head is not None and _is_intact(content, head):
            ours.add(_JSON)
            noted, is_old = head.sha256, head.format == 1
    for name in there:
        if found := _FILE.fullmatch(name):
            digest = _digest(folder / name)
            if digest == noted.get(name) or (found[2] and digest.startswith(found[2])):
                ours.add(name)
    if _CARD in there:
        content = (folder / _CARD).read_bytes()
        card = content[: -len(_CARD_END.format(_NO_DIGEST))]
        is_signed = content == card + _CARD_END.format(sha256(card)).encode()
        if is_signed or (is_old and content.startswith(_CARD_TITLE.encode())):
            ours.add(_CARD)
    return ours


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def sha256(content: bytes) -> str:
    """The digest, as hexadecimal digits."""
    return hashlib.sha256(content).hexdigest()
