"""A model as a folder of plain files, without pickle.

=========================  ===================================================================
``model.json``             the description of the model, and name and SHA-256 of the other files
``weights-*.safetensors``  its tensors
``trees-*.txt``            its boosted trees, as LightGBM writes them, a file for each model
``graph-*.safetensors``    the graph of ``fit``: features, arcs, targets and ids
``README.md``              the model card, for people
=========================  ===================================================================

The star stands for the beginning of the file's own SHA-256. How a model replaces another one, and
what in its folder may be replaced or removed, is in :mod:`memohop.folders`; the card contains its
digest, too. Files that Memohop did not write stay.

A file with a changed byte is refused. To share a model without its data, delete the file
of the graph: the rest predicts on other graphs.

Models are written in format 4 (:mod:`memohop.fit.keep`); in format 3, classes had no shifts.
Formats 1 and 2, of networks with memory alone, can be read (:mod:`memohop.fit.earlier`); names had
no digests in format 1.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec
from safetensors import SafetensorError
from safetensors.torch import load_file
from safetensors.torch import save as save_tensors
from torch import Tensor

from memohop import folders
from memohop.errors import DataError, MemohopError, UsageError
from memohop.folders import NO_DIGEST, sha256, sha256_of
from memohop.version import __version__

NEWEST = 4
"""The newest format. A format is raised whenever an older version could not read a folder."""

_JSON, _CARD = "model.json", "README.md"
_FILE = re.compile(r"(weights|graph|trees)(?:-(?P<digest>[0-9a-f]{16}))?\.(?:safetensors|txt)")
_CARD_TITLE = "# A node classifier for "  # of a card of format 1, which has no digest
_CARD_END = "\n<!-- SHA-256 of what is above: {} -->\n"


def file_of_tensors(kind: str, tensors: Mapping[str, Tensor]) -> tuple[str, bytes]:
    """Name and content of a file of tensors."""
    content = save_tensors(dict(tensors))
    return folders.named(kind, sha256(content), ".safetensors"), content


def file_of_text(kind: str, text: str) -> tuple[str, bytes]:
    """Name and content of a file of text."""
    content = text.encode()
    return folders.named(kind, sha256(content), ".txt"), content


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
    digests = {_JSON: NO_DIGEST} | {name: sha256(content) for name, content in files.items()}
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
    is_ours = _written(folder)
    older = [path for path in folder.iterdir() if is_ours(path)] if folder.exists() else []
    signed = card + _CARD_END.format(sha256(card.encode()))
    written = {**files, _CARD: signed.encode(), _JSON: folders.sealed(text)}
    with folders.disk_errors(folder, "model", _JSON), folders.working_folder(folder) as work:
        for name, content in written.items():
            (work / name).write_bytes(content)
        folders.publish(work, folder, [name for name in written if name != _JSON], _JSON)
        for path in older:
            if path.name not in written and path.is_file():
                path.unlink()


def check_target(path: str | os.PathLike[str]) -> Path:
    """The folder for a model; a ``UsageError`` if it cannot be written or holds other files."""
    folder = Path(path).expanduser()
    return folders.check_folder(folder, "saved model", _written(folder), _JSON, _CARD)


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
        if not path.is_file() or sha256_of(path) != self._sha256[path.name]:
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
    return folders.is_sealed(content, head.sha256[_JSON])


def _damaged(path: Path) -> DataError:
    return DataError(
        f"{path} is missing, damaged or was changed after it was saved: its SHA-256 is not the one "
        "that was recorded; copy the model again, or fit it again"
    )


def _written(folder: Path) -> Callable[[Path], bool]:
    """Whether a file or folder in a folder is proven to be Memohop's."""
    json = folder / _JSON
    content = json.read_bytes() if json.is_file() else b""
    head = _head(content)
    if head is not None and not _is_intact(content, head):
        head = None
    noted = {} if head is None else head.sha256  # names had no digest in format 1
    is_old = head is not None and head.format == 1

    def is_ours(path: Path) -> bool:
        name = path.name
        if name == _JSON:
            return head is not None
        if name == _CARD:
            return path.is_file() and _is_card(path.read_bytes(), is_old=is_old)
        if name in noted and _FILE.fullmatch(name):
            return path.is_file() and sha256_of(path) == noted[name]
        return folders.is_working_folder(path) or folders.is_named_so(path, _FILE)

    return is_ours


def _is_card(content: bytes, *, is_old: bool) -> bool:
    """Whether this is a card as it was written; in format 1 it has no digest."""
    card = content[: -len(_CARD_END.format(NO_DIGEST))]
    is_signed = content == card + _CARD_END.format(sha256(card)).encode()
    return is_signed or (is_old and content.startswith(_CARD_TITLE.encode()))
