"""How a column of numbers or flags becomes features."""

from __future__ import annotations

import math
import re
from typing import Annotated, ClassVar, Self, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from msgspec import Meta
from msgspec.structs import asdict
from numpy.typing import NDArray
from scipy import stats

from memohop.data.tables._text_columns import Category
from memohop.data.tables.cells import (
    Cells,
    Reading,
    RejectColumn,
    SaysNothing,
)
from memohop.data.tables.column import CLIP, MOSTLY_ZERO, Absent, Column, FeatureMatrix
from memohop.data.tables.spelling import NumberSpelling, Spelling, currencies_in
from memohop.outputs import count

SKEWED = 2.0
"""Numbers from 0 on with a greater skewness have a long tail."""
_FEWEST = 30  # numbers whose skewness means something
_TRUE, _FALSE = ("true", "yes", "t", "y", "1"), ("false", "no", "f", "n", "0")
_FEW_CODES = 20  # so many different whole numbers may be codes if each is frequent
_ROWS_OF_A_CODE = 5  # on average
_CODES = re.compile(
    r"\b(area|branch|brand|cat|category|city|class|club|cluster|codes?|country|county|department|"
    r"dept|district|dorm|ethnicity|fips|gender|genre|group|id|industry|job|kind|lang|language|"
    r"major|municipality|nationality|occupation|postcode|province|race|region|religion|school|"
    r"sector|sex|state|status|store|team|town|type|uid|zip|zipcode)\b"
)


Positive: TypeAlias = Annotated[float, Meta(gt=0)]


class Flag(Column, frozen=True, tag="flag"):
    """True is 1; false and missing are 0.

    Flags are booleans, the numbers 0 and 1, and pairs of words: yes and no, true and false, y and
    n, t and f.
    """

    asked_for: ClassVar[Reading] = "numeric"

    @classmethod
    def fit(cls, cells: Cells) -> Self:
        """Any flags."""
        if cells.stored == "text":
            pairs = map(set, zip(_TRUE[:-1], _FALSE[:-1], strict=True))  # 1 and 0 may be codes
            words = _lower(cells.text.drop_null()).unique().to_pylist()
            if cells.reading is None and set(words) in pairs:
                return cls(cells.name, cells.text.null_count > 0, verbatim=True)
        elif np.isin(cells.present, (0, 1)).all():
            return cls(cells.name, cells.present.size < cells.numbers.size, verbatim=False)
        raise RejectColumn("its values are not just true and false, or 1 and 0")

    def describe(self) -> str:
        """One feature."""
        return "one feature, 1 for true and 0 for false"

    def fill(self, cells: Cells, matrix: FeatureMatrix) -> tuple[Absent, list[str]]:
        """Numbers are flags too: 0 is false."""
        column = cells.column
        if cells.stored == "text":
            position = pc.index_in(_lower(cells.text), value_set=pa.array(_TRUE + _FALSE))
            if position.null_count > cells.text.null_count:
                raise cells.not_as_fitted("true or false")
            column = pc.less(position, len(_TRUE))
        try:
            values = np.asarray(column.cast(pa.float64(), safe=False).to_numpy())
        except pa.ArrowException as error:
            raise cells.not_as_fitted("true or false") from error
        absent = np.isnan(values)
        matrix.put(np.flatnonzero((values != 0) & ~absent), 0, 1)
        return absent, []


class Number(Column, frozen=True, tag="number"):
    r"""A number: minus ``mean``, divided by ``std``, cut off at ± ``CLIP``.

    With ``log_scale``, :math:`s`, it is :math:`\operatorname{sign}(v) \log(1 + |v| / s)` that is
    standardised so: numbers with a long tail, from 0 on with a skewness above 2, differ by their
    size, not by their distance.

    Numbers that are mostly 0 and never negative, as counts of words are, become
    :math:`\log_2(1 + v / s)`: a typical one is 1, and 0 stays 0, so that the column can be stored
    sparse. They may be spelled as strings, with some words among them, which count as missing.

    Attributes:
        mean: The mean of the values when it was fitted; 0 if they are mostly 0.
        std: Their standard deviation.
        log_scale: For a long tail, the lowest tenth of the values that are not 0; their median, if
            the values are mostly 0.
        spelling: How strings spell them, and later ones alike; None if they are stored as numbers.
    """

    asked_for: ClassVar[Reading] = "numeric"

    mean: float
    std: Positive
    log_scale: Positive | None
    spelling: Spelling | None

    @classmethod
    def fit(cls, cells: Cells) -> Self:
        """Any numbers."""
        values, scale = cells.present, None
        if _are_mostly_zero(cells):
            mean, std = 0.0, math.log(2)
            scale = float(np.median(values[values != 0]))
        else:
            tailed = values.size >= _FEWEST and values.min() >= 0 and not cells.are_times
            tailed = tailed and stats.skew(values / values.max()) > SKEWED
            if tailed and not _may_be_codes(cells):
                scale = float(np.quantile(values[values > 0], 0.1))
                values = _logarithm(values, scale)
            mean, std = float(values.mean()), float(values.std())
        if not std >= np.finfo(np.float64).tiny:  # too small to divide by
            raise SaysNothing
        missing, spelled = values.size < cells.numbers.size, cells.stored == "text"
        return cls(cells.name, missing, spelled, mean, std, scale, cells.spelling)

    @property
    def _is_mostly_zero(self) -> bool:
        return self.mean == 0 and self.log_scale is not None

    def describe(self) -> str:
        """One feature."""
        if self._is_mostly_zero:
            return "one feature, the number, mostly 0, on a logarithmic scale"
        what = "the number"
        if isinstance(self.spelling, NumberSpelling) and not self.spelling.currencies:
            unit = self.spelling.unit
            what += f" in {unit}" if unit else " without thousands separators"
        if self.log_scale is not None:
            what += ", on a logarithmic scale for its long tail"
        return f"one feature, {what}, standardised"

    def values(self, cells: Cells) -> tuple[NDArray[np.float64], list[str]]:
        """The cells as numbers, NaN where missing, and a note on strings that are no numbers."""
        if self.spelling is None:
            return cells.as_numbers(cells.column), []
        cells = cells.spelled_as(self.spelling)
        notes = [f"column {self.name!r}: {told}" for told in cells.converted]
        if not (words := cells.words.size):
            return cells.numbers, notes
        if cells.spelled.null_count == len(cells.spelled):
            raise cells.not_as_fitted(self.spelling.noun)
        return cells.numbers, [
            *notes,
            f"column {self.name!r}: {count(words, 'value')} that are not {self.spelling.noun}, "
            f"such as {cells.column[int(cells.words[0])].as_py()!r}, count as missing",
        ]

    def fill(self, cells: Cells, matrix: FeatureMatrix) -> tuple[Absent, list[str]]:
        """The mean becomes 0, and a missing value is 0 too."""
        values, notes = self.values(cells)
        absent = np.isnan(values)
        rows = np.flatnonzero(~absent & ((values != 0) | (self.mean != 0)))
        values = values[rows]
        if self.log_scale is not None:
            values = _logarithm(values, self.log_scale)
        values = (values - self.mean) / self.std
        kept = values != 0
        matrix.put(rows[kept], 0, np.clip(values[kept], -CLIP, CLIP))
        beyond = int((np.abs(values) > CLIP).sum())
        if beyond and not self._is_mostly_zero:
            notes.append(
                f"column {self.name!r}: {count(beyond, 'value')} more than {CLIP:g} standard "
                "deviations from the mean, cut off there"
            )
        return absent, notes

    @property
    def guess(self) -> str | None:
        """What strings are read as."""
        if self.spelling is None:
            return None
        noun = self.spelling.noun + " with separators or signs" * (
            self.spelling == NumberSpelling()
        )
        return f"{noun} (--categorical {{}} takes all as they are spelled)"

    def surprise(self, cells: Cells) -> str | None:
        """A line on words among the numbers, and on what was guessed from the whole column."""
        told = cells.guesses
        if cells.words.size:
            there = len(cells.text) - cells.text.null_count
            told.append(
                f"with {cells.words.size} of {count(there, 'value')} taken for missing, such as "
                f"{cells.text[int(cells.words[0])].as_py()!r}"
            )
        if not told:
            return None
        assert cells.spelling is not None
        return (
            f"column {self.name!r} is read as {cells.spelling.noun}, {' and '.join(told)} "
            f"(categorical=[{self.name!r}], --categorical {self.name} takes all as they are "
            "spelled)"
        )


class Code(Number, frozen=True, tag="code"):
    """Whole numbers that may be names: the number, and a category of them.

    Trees split the number well, and linear models and networks learn from the category.
    """

    category: Category

    @classmethod
    def fit(cls, cells: Cells) -> Self:
        """Whole numbers that may be names, some of which come twice."""
        if not _may_be_codes(cells):
            raise RejectColumn("its numbers measure something")
        category = Category.fit(spelled_codes(cells))
        return cls(**asdict(Number.fit(cells)), category=category)

    def names(self) -> list[str]:
        """The number, then the features of the category."""
        return super().names() + self.category.names()

    @property
    def of_value(self) -> range:
        """Those of the category."""
        return range(1, 1 + len(self.category.values))

    @property
    def guess(self) -> str | None:
        """That they may be codes."""
        return (
            "numbers and as categories, as codes are (--numeric {0} or --categorical {0} decides)"
        )

    def describe(self) -> str:
        """Both readings."""
        return f"one feature for the number, standardised, and {self.category.describe()}"

    def fill(self, cells: Cells, matrix: FeatureMatrix) -> tuple[Absent, list[str]]:
        """Both readings; a code without a feature is not told, since the number says it."""
        absent, notes = super().fill(cells, matrix)
        matrix.offset += 1
        self.category.fill(spelled_codes(cells.spelled_as(self.spelling)), matrix)
        matrix.offset -= 1
        return absent, notes


class Amount(Number, frozen=True, tag="amount"):
    """Money in several currencies: the number, whatever its currency, and a category of these."""

    category: Category

    @classmethod
    def fit(cls, cells: Cells) -> Self:
        """Amounts of which no currency has nearly all."""
        if not cells.has_currencies:
            raise RejectColumn("its amounts are in one currency, or none")
        number = Number.fit(cells)
        return cls(**asdict(number), category=Category.fit(_currencies(cells)))

    def names(self) -> list[str]:
        """The number, then the features of the category."""
        return super().names() + self.category.names()

    def describe(self) -> str:
        """Both."""
        return f"{super().describe()}, and {self.category.describe()}, which are currencies"

    def fill(self, cells: Cells, matrix: FeatureMatrix) -> tuple[Absent, list[str]]:
        """The number and its currency."""
        absent, notes = super().fill(cells, matrix)
        matrix.offset += 1
        notes += self.category.fill(_currencies(cells.spelled_as(self.spelling)), matrix)[1]
        matrix.offset -= 1
        return absent, notes


def _currencies(cells: Cells) -> Cells:
    """The currency of each amount."""
    assert isinstance(cells.spelling, NumberSpelling)
    return Cells(cells.name, currencies_in(cells.text, cells.spelling))


def _logarithm(values: NDArray[np.float64], scale: float) -> NDArray[np.float64]:
    """The logarithm of 1 plus the values in units of the scale, odd in the values."""
    return np.asarray(np.sign(values) * np.log1p(np.abs(values) / scale))


def _are_mostly_zero(cells: Cells) -> bool:
    """Whether no number is negative and fewer than a fifth are more than 0, but for codes."""
    if cells.reading is None and _names_codes(cells.name):
        return False
    present = cells.present
    most = MOSTLY_ZERO * cells.numbers.size
    return bool(present.min() == 0 and np.count_nonzero(present) < most)


def spelled_codes(cells: Cells) -> Cells:
    """Numbers as strings: 2.0 is 2, since tables with gaps store 2 as 2.0."""
    spelled = pa.array(cells.numbers, from_pandas=True).cast(pa.string())
    return Cells(cells.name, pa.chunked_array([spelled]))


def _lower(text: pa.ChunkedArray) -> pa.ChunkedArray:
    """Strings in lower case, without spaces around them."""
    return pc.utf8_lower(pc.utf8_trim_whitespace(text))


def _names_codes(name: str) -> bool:
    """Whether the name of a column is that of codes: ``dorm``, ``schoolType`` or ``zip_code``."""
    words = re.sub("([a-z])([A-Z])", r"\1 \2", name.replace("_", " "))
    return _CODES.search(words.lower()) is not None


def _may_be_codes(cells: Cells) -> bool:
    """Whether numbers are whole and may be names, and nobody says that they are not.

    They may if the column is named so, or else if each of them comes often enough and they are few,
    or begin further from 0 than they go on (major 235 to 278), or have gaps all over (a count has
    them only among its largest values).
    """
    present = cells.present
    if cells.reading is not None or cells.are_times:
        return False
    if cells.stored == "text" and not cells.are_plain:
        return False
    if (present != np.floor(present)).any() or np.abs(present).max() > 2**53:
        return False
    if _names_codes(cells.name):
        return True
    if _are_mostly_zero(cells):
        return False
    codes = np.unique(present)
    if codes.size < 3 or codes[0] < 0 or present.size < _ROWS_OF_A_CODE * codes.size:
        return False
    width = codes[-1] - codes[0] + 1
    has_gaps = codes.size < width / 2 and np.median(codes) - codes[0] > width / 4
    return bool(codes.size <= _FEW_CODES or codes[0] > width or has_gaps)
