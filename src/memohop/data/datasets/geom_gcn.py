"""Reads the text files of Geom-GCN (Texas, Wisconsin, Cornell, Actor) and its splits."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from memohop.data.assemble import Masks, graph_data, mask_columns, merge_arcs
from memohop.data.datasets.npz import as_masks, read_npz
from memohop.errors import DataError
from memohop.pyg import Data


def read_geom_gcn(folder: Path, splits: Sequence[Path], *, words: int | None = None) -> Data:
    """The graph in ``folder``: directed, with the self-loops of the file, duplicates merged.

    Args:
        folder: Holds ``out1_graph_edges.txt`` and ``out1_node_feature_label.txt``.
        splits: One archive of three masks for each split.
        words: Length of the vocabulary, if the file lists the words of each node by number (as
            Actor's does). Otherwise it has a zero or one for every word.
    """
    x, y = _read_nodes(folder / "out1_node_feature_label.txt", words=words)
    arcs = _read_arcs(folder / "out1_graph_edges.txt", nodes=len(y))
    return graph_data(x, y, arcs, read_geom_gcn_splits(splits, nodes=len(y)))


def read_geom_gcn_splits(paths: Sequence[Path], *, nodes: int) -> Masks:
    """The splits in these archives, in that order."""
    rows = []
    for path in paths:
        arrays = read_npz(path, ("train_mask", "val_mask", "test_mask"))
        rows.append(as_masks(path, arrays, shape=(nodes,)))
    train, val, test = (mask_columns(np.stack(part)) for part in zip(*rows, strict=True))
    return train, val, test


def _read_nodes(path: Path, *, words: int | None) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
    """Features and labels, each in the row of its node: Actor's file is in another order."""
    rows: dict[int, tuple[str, int]] = {}
    for where, (identity, features, label) in _lines(path, columns=3):
        node = _number(identity, where)
        if node in rows:
            raise DataError(f"{where}: node {node} comes a second time; fetch the file again")
        rows[node] = (features, _number(label, where))
    if not rows or max(rows) != len(rows) - 1:
        raise DataError(f"{path}: its {len(rows)} nodes are not numbered from 0; fetch it again")
    in_order = [rows[node] for node in range(len(rows))]
    width = in_order[0][0].count(",") + 1 if words is None else words
    x = np.zeros((len(rows), width), dtype=np.float32)
    for node, (features, _) in enumerate(in_order):
        where = f"{path}: node {node}"
        x[node, _word_numbers(features, where, width, listed=words is not None)] = 1
    return x, np.array([label for _, label in in_order], dtype=np.int64)


def _word_numbers(features: str, where: str, width: int, *, listed: bool) -> list[int]:
    """The words of a node, from a list of their numbers or from a zero or one per word."""
    values = features.split(",")
    if listed:
        numbers = [_number(value, where) for value in values]
        if max(numbers) >= width:
            raise DataError(f"{where} has word {max(numbers)} of {width}; fetch the file again")
        return numbers
    if len(values) != width or not {"0", "1"}.issuperset(values):
        raise DataError(f"{where} has not {width} features of 0 or 1; fetch the file again")
    return [number for number, value in enumerate(values) if value == "1"]


def _read_arcs(path: Path, *, nodes: int) -> NDArray[np.int64]:
    pairs = [[_number(end, where) for end in ends] for where, ends in _lines(path, columns=2)]
    source, target = np.array(pairs, dtype=np.int64).reshape(-1, 2).T
    return merge_arcs(source, target, nodes=nodes, origin=path)


def _lines(path: Path, *, columns: int) -> Iterator[tuple[str, list[str]]]:
    """File and line, and the fields, for every line except the header."""
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise DataError(f"{path} cannot be read as text: {error}; fetch it again") from error
    if not text.startswith("node_id\t"):
        raise DataError(
            f"{path} does not begin with the header of Geom-GCN's files; fetch it again"
        )
    for number, line in enumerate(text.splitlines()[1:], start=2):
        fields = line.split("\t")
        where = f"{path}, line {number}"
        if len(fields) != columns:
            raise DataError(f"{where}: {len(fields)} columns and not {columns}; fetch it again")
        yield where, fields


def _number(text: str, where: str) -> int:
    """A number of at most nine digits, which fits an ``int64`` even as part of a product."""
    if not (text.isascii() and text.isdigit() and len(text) < 10):
        raise DataError(f"{where}: {text[:40]!r} is not a number from 0 on; fetch the file again")
    return int(text)
