"""How a column of strings or codes becomes features: as categories or as words."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from memohop.data.assemble import distinct
from memohop.data.tables.column_kinds import Absent, Column, Number, count, read_numbers
from memohop.data.tables.column_types import as_text
from memohop.data.tables.feature_matrix import FeatureMatrix

CATEGORIES = 10_000
"""The most values of a category that get a feature of their own."""
WORDS = 10_000
"""The most words of a text column that get a feature of their own."""
_FEW_TEXTS = 50  # up to so many different texts are a category
_ROWS = 1 << 16  # texts that are cut into words at a time


class Words(Column, frozen=True, tag="words"):
    """A bag of words: 1 for each word of ``vocabulary`` that the text has, and 0 otherwise.

    Words are runs of letters, digits and underscores, in lower case. Those in at least two texts
    are kept, the most frequent ones if there are too many.
    """

    vocabulary: tuple[str, ...]

    @classmethod
    def reads(cls, column: pa.ChunkedArray) -> bool:
        """Whether strings have many values, and two words or more on average.

        Of a long column, texts from all over it are looked at.
        """
        if pc.count_distinct(column).as_py() <= _FEW_TEXTS:
            return False
        if len(column) > _ROWS:
            column = column.take(np.linspace(0, len(column) - 1, _ROWS, dtype=np.int64))
        texts = column.drop_null()
        return sum(len(words) for _, words in _cut(texts)) >= 2 * max(len(texts), 1)

    @classmethod
    def fit(cls, name: str, column: pa.ChunkedArray, most: int) -> Self | None:
        """The fitted column of strings, None if no word occurs in two texts.

        Args:
            name: Its name.
            column: Its values, after :func:`as_text`.
            most: The most features that all rows together may have set: RAM is limited.
        """
        frequency: Counter[str] = Counter()
        for rows, words in _cut(column):
            encoded = words.dictionary_encode()
            spelled = encoded.dictionary.to_pylist()
            pairs = distinct(rows * len(spelled) + encoded.indices.to_numpy())
            found = np.bincount(pairs % max(len(spelled), 1), minlength=len(spelled))
            frequency.update(dict(zip(spelled, found.tolist(), strict=True)))
        kept = _most_frequent(frequency, WORDS)
        entries = np.cumsum([frequency[word] for word in kept])
        few = kept[: max(int(np.searchsorted(entries, most, side="right")), 1)]
        return cls(name, column.null_count > 0, few) if few else None

    @property
    def verbatim(self) -> bool:
        """Texts are read as they are."""
        return True

    def own_names(self) -> list[str]:
        """One feature for each word."""
        return [f"{self.name}: {word}" for word in self.vocabulary]

    def own_text(self) -> str:
        """How many words have a feature."""
        return f"one feature for each of {count(len(self.vocabulary), 'word')}"

    def own_fill(self, column: pa.ChunkedArray, matrix: FeatureMatrix) -> tuple[Absent, list[str]]:
        """Words outside the vocabulary leave no trace."""
        column = as_text(column)
        for rows, words in _cut(column):
            position = _position(words, self.vocabulary)
            known = position >= 0
            pairs = distinct(rows[known] * len(self.vocabulary) + position[known])
            matrix.put(*np.divmod(pairs, len(self.vocabulary)), 1)
        return column.is_null().to_numpy(), []


class Category(Column, frozen=True, tag="category"):
    """One feature for each of ``values``, and one for all others if there were some.

    Only values that occur at least twice are kept, and of those the ``CATEGORIES`` most frequent.
    A value that is not kept sets the feature for the others; if there is none, all are 0.
    """

    values: tuple[str, ...]
    other: bool

    @classmethod
    def fit(cls, name: str, column: pa.ChunkedArray) -> Self | None:
        """The fitted column of strings, None if no value occurs twice or all rows have the same."""
        counts = pc.value_counts(column.drop_null())
        frequency = dict(zip(*(part.to_pylist() for part in counts.flatten()), strict=True))
        kept = _most_frequent(frequency, CATEGORIES)
        if not kept or (len(frequency) == 1 and not column.null_count):
            return None
        return cls(name, column.null_count > 0, kept, len(kept) < len(frequency))

    @property
    def verbatim(self) -> bool:
        """Values are read as they are: 007 is not 7."""
        return True

    def own_names(self) -> list[str]:
        """One feature for each value, then the one for the others."""
        return [f"{self.name}={value}" for value in (*self.values, *["other"] * self.other)]

    def own_text(self) -> str:
        """How many values have a feature."""
        tail = " and one for all other values" if self.other else ""
        return f"one feature for each of {count(len(self.values), 'value')}{tail}"

    def own_fill(self, column: pa.ChunkedArray, matrix: FeatureMatrix) -> tuple[Absent, list[str]]:
        """Set at most one feature in each row."""
        column = as_text(column)
        absent = column.is_null().to_numpy()
        position = _position(column, self.values)
        known = np.flatnonzero(position >= 0)
        matrix.put(known, position[known], 1)
        unknown = np.flatnonzero((position < 0) & ~absent)
        if not unknown.size:
            return absent, []
        if self.other:
            matrix.put(unknown, len(self.values), 1)
        effect = "counted as other" if self.other else "all features of the column are 0 there"
        note = (
            f"column {self.name!r}: {count(unknown.size, 'row')} with a value that has no "
            f"feature, such as {column[int(unknown[0])].as_py()!r}: {effect}"
        )
        return absent, [note]


class Code(Column, frozen=True, tag="code"):
    """Whole numbers that may be names: the number, and a category of them.

    Trees split the number well, and linear models and networks learn from the category.
    """

    number: Number
    category: Category

    @property
    def verbatim(self) -> bool:
        """As its number is: words among codes."""
        return self.number.verbatim

    def own_names(self) -> list[str]:
        """The number, then the features of the category."""
        return self.number.own_names() + self.category.own_names()

    def own_text(self) -> str:
        """Both readings."""
        return f"one feature for the number, standardised, and {self.category.own_text()}"

    def own_fill(self, column: pa.ChunkedArray, matrix: FeatureMatrix) -> tuple[Absent, list[str]]:
        """Both readings; a code without a feature is not told, since the number says it."""
        absent, notes = self.number.own_fill(column, matrix)
        matrix.offset += len(self.number.own_names())
        self.category.own_fill(spelled_codes(read_numbers(self.number, column)[0]), matrix)
        matrix.offset -= len(self.number.own_names())
        return absent, notes


def spelled_codes(values: NDArray[np.float64]) -> pa.ChunkedArray:
    """Numbers as strings: 2.0 is 2, since tables with gaps store 2 as 2.0."""
    return pa.chunked_array([pa.array(values, from_pandas=True).cast(pa.string())])


def _cut(texts: pa.ChunkedArray) -> Iterator[tuple[NDArray[np.int64], pa.Array]]:
    """Some texts at a time: for each word the row of its text, and the words."""
    for start in range(0, len(texts), _ROWS):
        piece = texts.slice(start, _ROWS).cast(pa.string()).combine_chunks()
        lists = pc.split_pattern_regex(pc.utf8_lower(piece), r"[^\pL\pM\pN_]+")
        words, rows = lists.flatten(), pc.list_parent_indices(lists)
        there = pc.greater(pc.binary_length(words), 0)
        yield start + rows.filter(there).to_numpy().astype(np.int64), words.filter(there)


def _position(values: pa.ChunkedArray | pa.Array, known: tuple[str, ...]) -> NDArray[np.int32]:
    """The index of each value among the known ones, -1 for another or a missing one."""
    index = pc.index_in(values, value_set=pa.array(known, pa.string()))
    return np.asarray(pc.fill_null(index, -1).to_numpy())


def _most_frequent(frequency: Mapping[str, int], limit: int) -> tuple[str, ...]:
    """Values that occur at least twice, the most frequent first, then in alphabetical order."""
    often = [value for value, times in frequency.items() if times > 1]
    return tuple(sorted(often, key=lambda value: (-frequency[value], value))[:limit])
