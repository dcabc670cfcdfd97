"""How a column of strings becomes features: as words, as pieces of codes or as a category."""

from __future__ import annotations

import os.path
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import ClassVar, Self, TypeAlias
from unicodedata import normalize

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from msgspec.structs import replace
from numpy.typing import NDArray
from scipy import stats

from memohop.data.arcs import distinct
from memohop.data.tables.cells import NEARLY_ALL, Cells, Reading, RejectColumn, SaysNothing
from memohop.data.tables.column import Absent, Column, FeatureMatrix
from memohop.outputs import count

CATEGORIES = 10_000
"""The most values of a category that get a feature of their own."""
WORDS = 10_000
"""The most words of a text column that get a feature of their own."""
PIECES = 3_000
"""The most pieces of codes that get a feature of their own."""
_STRINGS_OF_A_PIECE = 5  # in the column, so that a small table has few
_FEW_TEXTS = 50  # up to so many different texts are a category
_ROWS = 1 << 16  # texts that are cut at a time, and that are looked at to decide
SHORT = 64
"""Characters that strings have on average at most to be cut into pieces."""
_CODE = r"^(?:[^\s\p{Ll}\p{Lo}]+|\S*\pN\S*)$"
_BY_CHANCE = 0.01  # how probable a spread is at least that is taken for an even one

Parts: TypeAlias = Iterator[tuple[NDArray[np.int64], pa.Array]]
"""For each thing in some strings the row of its string, and the thing."""


class Bag(Column, frozen=True):
    """1 for each of the things in ``vocabulary`` that a string has, and 0 otherwise.

    Attributes:
        vocabulary: What has a feature, the most frequent first.
        texts: In how many strings each of them was.
    """

    vocabulary: tuple[str, ...]
    texts: tuple[int, ...]

    @staticmethod
    def cut(texts: pa.ChunkedArray) -> Parts:
        """Some strings at a time: for each thing in them the row of its string, and the thing."""
        raise NotImplementedError

    @classmethod
    def count(cls, texts: pa.ChunkedArray) -> Counter[str]:
        """In how many strings each thing is."""
        frequency: Counter[str] = Counter()
        for rows, parts in cls.cut(texts):
            encoded = parts.dictionary_encode()
            spelled = encoded.dictionary.to_pylist()
            pairs = distinct(rows * len(spelled) + encoded.indices.to_numpy())
            number = np.bincount(pairs % max(len(spelled), 1), minlength=len(spelled))
            frequency.update(dict(zip(spelled, number.tolist(), strict=True)))
        return frequency

    @classmethod
    def of_pieces(cls, cells: Cells, some: pa.ChunkedArray) -> Self:
        """Those that some of the strings have, the most frequent ones, but none that all have."""
        number = len(cells.text) - cells.text.null_count
        frequency = {piece: times for piece, times in cls.count(some).items() if times < len(some)}
        kept = _most_frequent(frequency, min(PIECES, number // _STRINGS_OF_A_PIECE))
        if not kept:
            raise SaysNothing
        texts = tuple(frequency[piece] * number // len(some) for piece in kept)
        return cls(cells.name, number < len(cells.text), True, kept, texts)

    def within(self, most: int) -> Self:
        """The same with fewer features, at least one, if all rows together set more."""
        kept = max(int(np.searchsorted(np.cumsum(self.texts), most, side="right")), 1)
        return replace(self, vocabulary=self.vocabulary[:kept], texts=self.texts[:kept])

    def fill(self, cells: Cells, matrix: FeatureMatrix) -> tuple[Absent, list[str]]:
        """What is not in the vocabulary leaves no trace."""
        for rows, parts in self.cut(cells.text):
            position = _position(parts, self.vocabulary)
            known = position >= 0
            pairs = distinct(rows[known] * len(self.vocabulary) + position[known])
            matrix.put(*np.divmod(pairs, len(self.vocabulary)), 1)
        return cells.text.is_null().to_numpy(), []


class Words(Bag, frozen=True, tag="words"):
    """A bag of words: 1 for each word of ``vocabulary`` that the text has, and 0 otherwise.

    Words are runs of letters, digits and underscores, in lower case. Those in at least two texts
    are kept, the most frequent ones if there are too many.

    Attributes:
        repeated: Whether most texts are those of several rows, as names of people are. Rows with
            the same words then have the same text, but for a few.
    """

    asked_for: ClassVar[Reading] = "text"
    read_as: ClassVar[str | None] = "words"

    repeated: bool = False

    @classmethod
    def fit(cls, cells: Cells) -> Self:
        """Strings with many values, and two words or more on average."""
        text = cells.text
        if cells.reading is None and not (cells.stored == "text" and _are_texts(text)):
            raise RejectColumn("its strings are few, or single words")
        if cells.reading is None and are_arbitrary(_some(text.drop_null())):
            raise RejectColumn("its strings are drawn at random, as UUIDs are")
        frequency = cls.count(text)
        kept = _most_frequent(frequency, WORDS)
        if not kept:
            raise SaysNothing
        texts_of_words = tuple(frequency[word] for word in kept)
        times = pc.value_counts(text.drop_null()).field("counts").to_numpy()
        repeated = bool(2 * times[times > 1].sum() > times.sum())
        return cls(cells.name, text.null_count > 0, True, kept, texts_of_words, repeated)

    @staticmethod
    def cut(texts: pa.ChunkedArray) -> Parts:
        """Words, in lower case."""
        for start, piece in slices(texts):
            lists = pc.split_pattern_regex(piece, r"[^\pL\pM\pN_]+")
            words, rows = lists.flatten(), pc.list_parent_indices(lists)
            there = pc.greater(pc.binary_length(words), 0)
            yield start + rows.filter(there).to_numpy().astype(np.int64), words.filter(there)

    def names(self) -> list[str]:
        """One feature for each word."""
        return [f"{self.name}: {word}" for word in self.vocabulary]

    @property
    def of_value(self) -> range:
        """All of them, of texts that are names."""
        return range(len(self.vocabulary) if self.repeated else 0)

    @property
    def guess(self) -> str | None:
        """That they are texts."""
        return f"{self.read_as} (--categorical {{}} takes each text as a whole)"

    def describe(self) -> str:
        """How many words have a feature."""
        return f"one feature for each of {count(len(self.vocabulary), 'word')}"


class Pieces(Bag, frozen=True, tag="pieces"):
    """1 for each piece of ``vocabulary`` that a code has; codes are mostly all different.

    Pieces are the first one, two and three characters and the last ones, the number of characters,
    the code with all letters as ``a`` and all digits as ``0``, and the code itself, in lower case.
    Those of at least two codes, but not of all, are kept: the most frequent ones, up to ``PIECES``
    and to a fifth of the number of codes. A code that comes later still has its beginning.

    Running numbers, and numbers and characters drawn at random, have no pieces that say anything.
    Names are no codes: their pieces say little each, and would drown the other columns.
    """

    asked_for: ClassVar[Reading] = "text"
    read_as: ClassVar[str | None] = "pieces of codes"

    @classmethod
    def fit(cls, cells: Cells) -> Self:
        """Short codes, more than half of which occur once, and that are not drawn at random."""
        some = different(cells)
        if not _are_codes(some) or are_arbitrary(some):
            raise RejectColumn("its strings are names, long, or without structure")
        return cls.of_pieces(cells, some)

    @staticmethod
    def cut(texts: pa.ChunkedArray) -> Parts:
        """Pieces, in lower case, each named for what it says."""
        for start, whole in slices(texts):
            length = pc.utf8_length(whole)
            alike = pc.replace_substring_regex(whole, r"[\pL\pM]+", "a")
            alike = pc.replace_substring_regex(alike, r"\pN+", "0")
            pieces = [
                ("is", whole),
                ("has the length", length.cast(pa.string())),
                ("has the form", alike),
            ]
            for size in (1, 2, 3):
                pieces.append(("begins with", _from(whole, 0, size)))
                end = pc.utf8_slice_codeunits(whole, -size)
                pieces.append(("ends with", pc.if_else(pc.greater_equal(length, size), end, None)))
            rows = [np.flatnonzero(part.is_valid()) for _, part in pieces]
            named = [
                pc.binary_join_element_wise(what, part.drop_null(), " ") for what, part in pieces
            ]
            yield start + np.concatenate(rows), pa.concat_arrays(named)

    def names(self) -> list[str]:
        """One feature for each piece."""
        return [f"{self.name} {piece}" for piece in self.vocabulary]

    def describe(self) -> str:
        """How many pieces have a feature."""
        number = count(len(self.vocabulary), "piece")
        return f"one feature for each of {number}: first and last characters, length, form"

    def surprise(self, cells: Cells) -> str | None:
        """A line in any case: a second column of ids, for example, had better be left out."""
        return super().surprise(cells) or mostly_different(cells, "pieces of codes")


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

    @property
    def of_value(self) -> range:
        """Those of single values."""
        return range(len(self.values))

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
    texts = _some(column).drop_null()
    return sum(len(words) for _, words in Words.cut(texts)) >= 2 * max(len(texts), 1)


def different(cells: Cells) -> pa.ChunkedArray:
    """Strings from all over a column, if there are enough of them and more than half occur once."""
    there = cells.text.drop_null()
    once = pc.sum(pc.equal(pc.value_counts(there).field("counts"), 1)).as_py() or 0
    if len(there) <= _FEW_TEXTS or 2 * once <= len(there):
        raise RejectColumn("its strings are few, or repeated")
    return _some(there)


def mostly_different(cells: Cells, read_as: str) -> str:
    """The line on a column that is read so."""
    return (
        f"column {cells.name!r} is read as {read_as}, since most of its values are different, such "
        f"as {cells.text.drop_null()[0].as_py()!r} (drop=[{cells.name!r}], --drop {cells.name} "
        "leaves it out)"
    )


def _some(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Of a long column, strings from all over it."""
    if len(column) <= _ROWS:
        return column
    return column.take(np.linspace(0, len(column) - 1, _ROWS, dtype=np.int64))


def slices(texts: pa.ChunkedArray) -> Iterator[tuple[int, pa.Array]]:
    """Some strings at a time, in lower case, and the row of the first of them."""
    for start in range(0, len(texts), _ROWS):
        # Versions of Arrow differ in how they normalise letters with accents.
        normal = [
            text and normalize("NFKC", text) for text in texts.slice(start, _ROWS).to_pylist()
        ]
        yield start, pc.utf8_lower(pa.array(normal, pa.string()))


def _from(texts: pa.Array, start: int, size: int) -> pa.Array:
    """So many characters of each string, null where it has fewer."""
    there = pc.greater_equal(pc.utf8_length(texts), start + size)
    return pc.if_else(there, pc.utf8_slice_codeunits(texts, start, start + size), None)


def _are_codes(texts: pa.ChunkedArray) -> bool:
    """Whether strings are short, and of one length, or nearly all without spaces and spelled as
    names are not: with a digit, or without letters other than capitals.
    """
    length = pc.utf8_length(texts)
    if pc.mean(length).as_py() > SHORT:
        return False
    spelled = pc.match_substring_regex(texts, _CODE)
    return pc.count_distinct(length).as_py() == 1 or pc.mean(spelled).as_py() >= NEARLY_ALL


def are_arbitrary(texts: pa.ChunkedArray) -> bool:
    """Whether strings are running numbers, or numbers or characters drawn at random.

    Numbers, also behind what all have in common, are spread evenly from the smallest to the largest
    by the test of Kolmogorov and Smirnov. Strings of one length are drawn if nearly all positions
    where they differ have each character of one alphabet equally often, by a chi-squared test.
    """
    values = texts.to_pylist()
    common = len(os.path.commonprefix(values))  # noqa: RUF071 - they are no paths
    tails = [value[common:] for value in values]
    if all(re.fullmatch("[0-9]{1,18}", tail) for tail in tails):
        numbers = np.array(tails, dtype=np.float64)
        low, high = numbers.min(), numbers.max()
        return bool(stats.kstest(numbers, "uniform", args=(low, high - low)).pvalue > _BY_CHANCE)
    if max(map(len, values)) > min(SHORT, min(map(len, values))):
        return False
    characters = np.array(values).view(np.uint32).reshape(len(values), -1)
    differ = characters[:, (characters != characters[0]).any(axis=0)]
    alphabet, spelled = np.unique(differ, return_inverse=True)
    spelled = spelled.reshape(differ.shape)
    times = [np.bincount(position, minlength=len(alphabet)) for position in spelled.T]
    even = stats.chisquare(times, axis=1).pvalue > _BY_CHANCE / len(times)
    return bool(even.mean() >= NEARLY_ALL)


def _position(values: pa.ChunkedArray | pa.Array, known: tuple[str, ...]) -> NDArray[np.int32]:
    """The index of each value among the known ones, -1 for another or a missing one."""
    if isinstance(values, pa.DictionaryArray):
        return _position(values.dictionary, known)[values.indices.to_numpy()]
    index = pc.index_in(values, value_set=pa.array(known, pa.string()))
    return np.asarray(pc.fill_null(index, -1).to_numpy())


def _most_frequent(frequency: Mapping[str, int], limit: int) -> tuple[str, ...]:
    """Values that occur at least twice, the most frequent first, then in alphabetical order."""
    often = [value for value, times in frequency.items() if times > 1]
    return tuple(sorted(often, key=lambda value: (-frequency[value], value))[:limit])
