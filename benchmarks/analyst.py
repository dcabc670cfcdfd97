"""Two tables as a careful analyst reads them in a few lines, the same for every table.

A column is numbers if nine tenths of it are (``$1,200``, ``178 min``, ``36 %``), else dates, else
categories. Dates become seconds, hour, weekday and month. A category becomes its place in
alphabetical order, so that trees split it by its first letters; one of many values also how often
its value is there, its first one to three letters, and its words. Whole numbers of few values are
categories, too.

A node meets others along the edges, whichever way they point, and along the edges of each direction
and of each kind, that is, of each value of a column of edges that has few.
"""

from __future__ import annotations

import itertools
import re
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from scipy import sparse
from sklearn.feature_extraction.text import CountVectorizer

_ENOUGH = 0.9  # share of the values that must be numbers, or dates
_LEVELS = 100  # values of a category up to which each has an indicator
_KINDS = 10  # values of a column of edges up to which each is a kind of edge
_NUMBER = re.compile(r"[$€£]?\s*([-+]?(?:\d[\d,]*\.?\d*|\.\d+)(?:e[-+]?\d+)?)(?:\s*%|\s+[a-z]+)?")
_DAYS = ("%Y-%m-%d", "%d/%m/%Y", "%m/%d/%Y", "%d.%m.%Y", "%Y/%m/%d")
_HOURS = ("", " %H:%M", " %H:%M:%S", "T%H:%M:%S", "T%H:%M:%SZ")


@dataclass(frozen=True)
class Columns:
    """Those of one table: what a tree takes, and what names the categories have."""

    numbers: np.ndarray  # [rows, numbers], NaN where missing
    codes: np.ndarray  # [rows, categories], -1 where missing
    names: list[np.ndarray]  # of each category, by its code
    texts: list[list[str]]  # those of so many values that their words may count

    def sparse(self) -> sparse.csr_array:
        """Numbers by their spread, 0 where missing; indicators of categories; words."""
        filled = np.nan_to_num(self.numbers)
        spread = filled.std(axis=0)
        blocks = [filled / np.where(spread > 0, spread, 1), self.indicators()]
        for text in self.texts:
            counted = CountVectorizer(binary=True, token_pattern=r"\w+").fit_transform(text)
            often = np.flatnonzero(np.asarray(counted.sum(axis=0)).ravel() > 1)
            blocks.append(counted[:, often].astype(float))
        return sparse.csr_array(sparse.hstack(blocks, format="csr"))

    def indicators(self) -> sparse.csr_array:
        """Of each value of the categories that have few."""
        blocks = [sparse.csr_array((len(self.codes), 0))]
        for codes, names in zip(self.codes.T, self.names, strict=True):
            if len(names) <= _LEVELS:
                rows = np.flatnonzero(codes >= 0)
                cells = (np.ones(len(rows)), (rows, codes[rows]))
                blocks.append(sparse.csr_array(cells, shape=(len(codes), len(names))))
        return sparse.csr_array(sparse.hstack(blocks, format="csr"))


@dataclass(frozen=True)
class Way:
    """Whom each node meets along some edges, and what the edges are."""

    counts: sparse.csr_array  # edges from each node to each other
    edges: np.ndarray  # [nodes, numbers], the mean over a node's edges

    @property
    def degree(self) -> np.ndarray:
        """How many edges each node has."""
        return np.asarray(self.counts.sum(axis=1)).ravel()

    def mean(self, values: np.ndarray | sparse.csr_array) -> np.ndarray | sparse.csr_array:
        """Over a node's neighbours, 0 without any."""
        return sparse.diags_array(1 / np.maximum(self.degree, 1)) @ (self.counts @ values)


def read_columns(table: pa.Table) -> Columns:
    """Read columns of strings, null where nothing is written."""
    numbers: list[np.ndarray] = []
    categories: list[tuple[np.ndarray, np.ndarray]] = []
    texts: list[list[str]] = []
    for column in table.columns:
        names, codes = _categories(column)
        shares = np.bincount(codes[codes >= 0], minlength=len(names)) / max((codes >= 0).sum(), 1)
        values = np.array([_number(name) for name in names])
        if shares[~np.isnan(values)].sum() >= _ENOUGH or not len(names):
            numbers.append(np.append(values, np.nan)[codes])
            whole = len(names) > 2 and (values == np.floor(values)).all()
            if whole and len(names) <= min(_LEVELS, len(codes) / 10):
                categories.append((names, codes))
        elif dates := _dates(column):
            numbers += dates
        else:
            categories.append((names, codes))
            if len(names) > _LEVELS:
                numbers.append(np.append(shares, 0)[codes])
                texts.append([value or "" for value in column.to_pylist()])
                first = (
                    _categories(pc.utf8_slice_codeunits(column, 0, size)) for size in (1, 2, 3)
                )
                categories += [pair for pair in first if 1 < len(pair[0]) < len(names) / 2]
    codes = np.array([codes for _, codes in categories], dtype=int).reshape(-1, len(table)).T
    stacked = np.array(numbers, dtype=float).reshape(-1, len(table)).T
    return Columns(stacked, codes, [names for names, _ in categories], texts)


def read_ways(ends: np.ndarray, table: pa.Table, nodes: int) -> list[Way]:
    """All edges, whichever way they point; those of each direction; those of each kind and
    direction. Edges of a node to itself are left out.

    Args:
        ends: ``[2, edges]``, rows of the node table.
        table: The other columns of the edges.
        nodes: How many there are.
    """
    columns = read_columns(table)
    every = ends[0] != ends[1]
    kinds = [every]
    for codes, names in zip(columns.codes.T, columns.names, strict=True):
        values = np.unique(codes)
        if 1 < len(values) <= _KINDS and len(names) <= _KINDS:
            kinds += [every & (codes == value) for value in values]
    pairs = [(0, 1), (1, 0)]
    ways = [_way(np.hstack([ends, ends[::-1]]), np.tile(every, 2), columns.numbers, nodes)]
    for kind, pair in itertools.product(kinds, pairs):
        ways.append(_way(ends[list(pair)], kind, columns.numbers, nodes))
    return ways


def _way(ends: np.ndarray, taken: np.ndarray, numbers: np.ndarray, nodes: int) -> Way:
    numbers = np.tile(numbers, (ends.shape[1] // len(numbers), 1))[taken]
    near, far = ends[:, taken]
    counts = sparse.csr_array((np.ones(len(near)), (near, far)), shape=(nodes, nodes))
    of_node = sparse.csr_array(
        (np.ones(len(near)), (near, np.arange(len(near)))), (nodes, len(near))
    )
    with np.errstate(invalid="ignore"):
        means = of_node @ np.nan_to_num(numbers) / (of_node @ ~np.isnan(numbers))
    return Way(counts, means)


def _categories(column: pa.ChunkedArray) -> tuple[np.ndarray, np.ndarray]:
    """The values in alphabetical order, and the place of each row's value, -1 where missing."""
    names = np.array(sorted(pc.unique(column.drop_null()).to_pylist()), dtype=object)
    codes = pc.index_in(column, pa.array(names, pa.string()))
    return names, pc.fill_null(codes, -1).to_numpy()


def _number(text: str) -> float:
    """What a text says, NaN if it is no number."""
    number = _NUMBER.fullmatch(text.strip().lower())
    return float(number[1].replace(",", "")) if number else np.nan


def _dates(column: pa.ChunkedArray) -> list[np.ndarray]:
    """Seconds, hour, weekday and month, those that move; nothing if these are no dates."""
    known = len(column) - column.null_count
    for day, hour in itertools.product(_DAYS, _HOURS):
        read = pc.strptime(column, format=day + hour, unit="s", error_is_null=True)
        if len(read) - read.null_count >= _ENOUGH * known:
            parts = [read.cast(pa.int64()), pc.hour(read), pc.day_of_week(read), pc.month(read)]
            moving = [part for part in parts if len(pc.unique(part.drop_null())) > 1]
            return [part.cast(pa.float64()).to_numpy() for part in moving]
    return []
