"""How a column of names becomes features: as n-grams of characters, in any script."""

from __future__ import annotations

from typing import ClassVar, Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from memohop.data.tables._text_columns import (
    SHORT,
    Bag,
    Parts,
    are_arbitrary,
    different,
    mostly_different,
    slices,
)
from memohop.data.tables.cells import NEARLY_ALL, Cells, Reading, RejectColumn
from memohop.outputs import count

_LONGEST = 3  # characters of an n-gram: so many code points fit into 63 bits
_CODE_POINT = 21  # bits
_LOOKED_AT = 256  # characters at the beginning of a string
_UNSPACED = r"[\p{Han}\p{Hiragana}\p{Katakana}\p{Thai}\p{Lao}\p{Khmer}\p{Myanmar}]{2}"


class Ngrams(Bag, frozen=True, tag="n-grams"):
    """1 for each n-gram of ``vocabulary`` that a name has; names are mostly all different.

    N-grams are up to three characters that follow each other, in lower case and with a space before
    the first and after the last of a name: ``ki `` is an ending. Those of at least two names, but
    not of all, are kept, the most frequent ones: up to 3,000 and to a fifth of the number of names.
    Characters are those of Unicode's form NFKC, which has an accent and its letter in one.

    Texts in scripts without spaces between words are read so too, by their first 256 characters.
    """

    asked_for: ClassVar[Reading] = "text"
    read_as: ClassVar[str | None] = "n-grams of characters"

    @classmethod
    def fit(cls, cells: Cells) -> Self:
        """Names, more than half of which occur once, that are not long nor drawn at random."""
        some = different(cells)
        is_long = pc.mean(pc.utf8_length(some)).as_py() > SHORT
        if is_long and pc.mean(pc.match_substring_regex(some, _UNSPACED)).as_py() < NEARLY_ALL:
            raise RejectColumn("its strings are long, and no texts without spaces")
        if are_arbitrary(some):
            raise RejectColumn("its strings are without structure")
        return cls.of_pieces(cells, some)

    @staticmethod
    def cut(texts: pa.ChunkedArray) -> Parts:
        """N-grams, each of which is a number until all are found."""
        for start, whole in slices(texts):
            there = np.flatnonzero(whole.is_valid())
            names = pc.utf8_slice_codeunits(whole.drop_null(), 0, _LOOKED_AT).to_pylist()
            spaced = [f" {name.strip()} " for name in names]
            points = np.frombuffer("".join(spaced).encode("utf-32-le"), dtype="<u4")
            row = np.repeat(start + there, [len(name) for name in spaced])
            grams, rows = [points.astype(np.int64)], [row]
            for size in range(2, _LONGEST + 1):
                longer = grams[-1][:-1] << _CODE_POINT | points[size - 1 :]
                grams.append(longer)
                rows.append(np.where(row[: len(longer)] == row[size - 1 :], row[: len(longer)], -1))
            number, of_row = np.concatenate(grams), np.concatenate(rows)
            inside = of_row >= 0
            different_ones, index = np.unique(number[inside], return_inverse=True)
            spelled = pa.array(map(_spelled, different_ones.tolist()), pa.string())
            yield of_row[inside], pa.DictionaryArray.from_arrays(index, spelled)

    def names(self) -> list[str]:
        """One feature for each n-gram."""
        return [f"{self.name} has {gram!r}" for gram in self.vocabulary]

    def describe(self) -> str:
        """How many n-grams have a feature."""
        return f"one feature for each of {count(len(self.vocabulary), 'n-gram')} of characters"

    def surprise(self, cells: Cells) -> str | None:
        """A line in any case, as on codes."""
        return super().surprise(cells) or mostly_different(cells, "n-grams of characters")


def _spelled(gram: int) -> str:
    """The characters of which the number is made."""
    points = [gram >> shift * _CODE_POINT & (1 << _CODE_POINT) - 1 for shift in range(_LONGEST)]
    return "".join(map(chr, filter(None, reversed(points))))
