"""How a column of strings becomes features: as categories or as words."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from memohop.data.assemble import distinct
from memohop.data.tables.column_kinds import Block, Column, count
from memohop.data.tables.column_types import as_text

CATEGORIES = 50
"""The most values of a category that get a feature of their own."""
_ROWS = 1 << 16  # texts that are cut into words at a time


class Category(Column, frozen=True, tag="category"):
    """One feature for each of `values`, and one for all others if there were some.

    Only values that occur at least twice are kept, and of those the `CATEGORIES` most frequent.
    A value that is not kept sets the feature for the others; if there is none, all are 0.
    """

    values: tuple[str, ...]
    other: bool

    @classmethod
    def fit(cls, name: str, column: pa.ChunkedArray) -> Category | None:
        """None where no value occurs twice, or one is everywhere."""
        counts = pc.value_counts(column.drop_null())
        frequency = dict(
            zip(counts.field("values").to_pylist(), counts.field("counts").to_pylist(), strict=True)
        )
        kept = _most_frequent(frequency, CATEGORIES)
        if not kept or (len(frequency) == 1 and not column.null_count):
            return None
        return cls(name, column.null_count > 0, tuple(kept), len(kept) < len(frequency))

    def own_names(self) -> list[str]:
        """One feature for each value, then the others."""
        return [f"{self.name}={value}" for value in self.values] + [
            f"{self.name}=other"
        ] * self.other

    def describe(self) -> str:
        """How it becomes features."""
        tail = " and one for all other values" if self.other else ""
        return self._with_missing(
            f"one feature for each of {count(len(self.values), 'value')}{tail}"
        )

    def fill(self, column: pa.ChunkedArray, block: Block) -> list[str]:
        """Sets one feature of each row."""
        column = as_text(column)
        place = pc.index_in(column, value_set=pa.array(self.values, pa.string()))
        position = pc.fill_null(place, -1).to_numpy()
        known = np.flatnonzero(position >= 0)
        block[known, position[known]] = 1
        absent = column.is_null().to_numpy()
        strange = np.flatnonzero((position < 0) & ~absent)
        if self.other:
            block[strange, len(self.values)] = 1
        notes = self._fill_missing(absent, block)
        if strange.size:
            example = column[int(strange[0])].as_py()
            where = "counted as other" if self.other else "all features of the column are 0 there"
            notes.append(
                f"column {self.name!r}: {count(strange.size, 'row')} with a value that has no "
                f"feature, such as {example!r}: {where}"
            )
        return notes


class Words(Column, frozen=True, tag="words"):
    """A bag of words: 1 for each word of `vocabulary` that the text has, and 0 otherwise.

    Words are runs of letters, digits and underscores, in lower case. Those in at least two texts
    are kept, the most frequent ones if there are too many.
    """

    vocabulary: tuple[str, ...]

    @classmethod
    def fit(cls, name: str, column: pa.ChunkedArray, *, limit: int) -> Words | None:
        """None where no word occurs in two texts."""
        frequency: Counter[str] = Counter()
        for start in range(0, len(column), _ROWS):
            texts, words = _cut(column.slice(start, _ROWS))
            encoded = words.dictionary_encode()
            spelled = encoded.dictionary.to_pylist()
            pairs = distinct(texts * len(spelled) + encoded.indices.to_numpy())
            found = np.bincount(pairs % max(len(spelled), 1), minlength=len(spelled))
            frequency.update(dict(zip(spelled, found.tolist(), strict=True)))
        kept = _most_frequent(frequency, limit)
        return cls(name, column.null_count > 0, tuple(kept)) if kept else None

    def own_names(self) -> list[str]:
        """One feature for each word."""
        return [f"{self.name}: {word}" for word in self.vocabulary]

    def describe(self) -> str:
        """How it becomes features."""
        return self._with_missing(f"one feature for each of {count(len(self.vocabulary), 'word')}")

    def fill(self, column: pa.ChunkedArray, block: Block) -> list[str]:
        """Sets the features of the words that are in the vocabulary."""
        column = as_text(column)
        vocabulary = pa.array(self.vocabulary, pa.string())
        for start in range(0, len(column), _ROWS):
            texts, words = _cut(column.slice(start, _ROWS))
            position = pc.fill_null(pc.index_in(words, value_set=vocabulary), -1).to_numpy()
            known = position >= 0
            block[start + texts[known], position[known]] = 1
        return self._fill_missing(column.is_null().to_numpy(), block)


def words_per_text(column: pa.ChunkedArray) -> float:
    """The mean number of words of the first texts that are there."""
    texts = column.slice(0, _ROWS).drop_null()
    return len(_cut(texts)[1]) / max(len(texts), 1)


def _cut(texts: pa.ChunkedArray) -> tuple[NDArray[np.int64], pa.Array]:
    """The words of all texts in a row, and the position of the text that each is from."""
    whole = pc.utf8_lower(
        pa.concat_arrays(texts.cast(pa.string()).chunks or [pa.array([], pa.string())])
    )
    lists = pc.split_pattern_regex(whole, r"[^\pL\pM\pN_]+")
    words, origin = lists.flatten(), pc.list_parent_indices(lists)
    there = pc.greater(pc.binary_length(words), 0)
    return origin.filter(there).to_numpy().astype(np.int64), words.filter(there)


def _most_frequent(frequency: Mapping[str, int], limit: int) -> list[str]:
    """What occurs at least twice, the most frequent first and in the order of the alphabet."""
    often = [item for item in frequency.items() if item[1] > 1]
    often.sort(key=lambda item: (-item[1], item[0]))
    return [value for value, _ in often[:limit]]
