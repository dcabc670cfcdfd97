"""How a column of strings becomes features: as words or as a category."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import ClassVar, Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from msgspec.structs import replace
from numpy.typing import NDArray

from memohop.data.arcs import distinct
from memohop.data.tables.cells import Cells, Reading, RejectColumn, SaysNothing
from memohop.data.tables.column import Absent, Column, FeatureMatrix
from memohop.outputs import count

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

    Attributes:
        vocabulary: The words.
        texts: In how many texts each of them was.
    """

    asked_for: ClassVar[Reading] = "text"
    read_as: ClassVar[str | None] = "words"

    vocabulary: tuple[str, ...]
    texts: tuple[int, ...]

    @classmethod
    def fit(cls, cells: Cells) -> Self:
        """Strings with many values, and two words or more on average."""
        text = cells.text
        if cells.reading is None and not (cells.stored == "text" and _are_texts(text)):
            raise RejectColumn("its strings are few, or single words")
        frequency: Counter[str] = Counter()
        for rows, words in _cut(text):
            encoded = words.dictionary_encode()
            spelled = encoded.dictionary.to_pylist()
            pairs = distinct(rows * len(spelled) + encoded.indices.to_numpy())
            texts = np.bincount(pairs % max(len(spelled), 1), minlength=len(spelled))
            frequency.update(dict(zip(spelled, texts.tolist(), strict=True)))
        kept = _most_frequent(frequency, WORDS)
        if not kept:
            raise SaysNothing
        texts_of_words = tuple(frequency[word] for word in kept)
        return cls(cells.name, text.null_count > 0, True, kept, texts_of_words)

    def within(self, most: int) -> Self:
        """The same with fewer words, at least one, if all rows together set more features."""
        kept = max(int(np.searchsorted(np.cumsum(self.texts), most, side="right")), 1)
        return replace(self, vocabulary=self.vocabulary[:kept], texts=self.texts[:kept])

    def names(self) -> list[str]:
        """One feature for each word."""
        return [f"{self.name}: {word}" for word in self.vocabulary]

    def describe(self) -> str:
        """How many words have a feature."""
        return f"one feature for each of {count(len(self.vocabulary), 'word')}"

    def fill(self, cells: Cells, matrix: FeatureMatrix) -> tuple[Absent, list[str]]:
        """Words outside the vocabulary leave no trace."""
        for rows, words in _cut(cells.text):
            position = _position(words, self.vocabulary)
            known = position >= 0
            pairs = distinct(rows[known] * len(self.vocabulary) + position[known])
            matrix.put(*np.divmod(pairs, len(self.vocabulary)), 1)
        return cells.text.is_null().to_numpy(), []


class Category(Column, frozen=True, tag="category"):
    """One feature for each of ``values``, and one for all others if there were some.

    Only values that occur at least twice are kept, and of those the ``CATEGORIES`` most frequent.
    A value that is not kept sets the feature for the others; if there is none, all are 0.
    """

    asked_for: ClassVar[Reading] = "categorical"
    read_as: ClassVar[str | None] = "a category"

    values: tuple[str, ...]
    other: bool

    @classmethod
    def fit(cls, cells: Cells) -> Self:
        """Any strings, read as they are (007 is not 7), if some value occurs twice."""
        counts = pc.value_counts(cells.text.drop_null())
        frequency = dict(zip(*(part.to_pylist() for part in counts.flatten()), strict=True))
        kept, missing = _most_frequent(frequency, CATEGORIES), cells.text.null_count > 0
        if not kept or (len(frequency) == 1 and not missing):
            raise RejectColumn("all values are different, or all are the same")
        return cls(cells.name, missing, True, kept, len(kept) < len(frequency))

    def names(self) -> list[str]:
        """One feature for each value, then the one for the others."""
        return [f"{self.name}={value}" for value in (*self.values, *["other"] * self.other)]

    def describe(self) -> str:
        """How many values have a feature."""
        tail = " and one for all other values" if self.other else ""
        return f"one feature for each of {count(len(self.values), 'value')}{tail}"

    def fill(self, cells: Cells, matrix: FeatureMatrix) -> tuple[Absent, list[str]]:
        """Set at most one feature in each row."""
        absent = cells.text.is_null().to_numpy()
        position = _position(cells.text, self.values)
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
            f"feature, such as {cells.text[int(unknown[0])].as_py()!r}: {effect}"
        )
        return absent, [note]


def _are_texts(column: pa.ChunkedArray) -> bool:
    """Whether strings have many values, and two words or more on average.

    Of a long column, texts from all over it are looked at.
    """
    if pc.count_distinct(column).as_py() <= _FEW_TEXTS:
        return False
    if len(column) > _ROWS:
        column = column.take(np.linspace(0, len(column) - 1, _ROWS, dtype=np.int64))
    texts = column.drop_null()
    return sum(len(words) for _, words in _cut(texts)) >= 2 * max(len(texts), 1)


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
