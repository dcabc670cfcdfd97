"""Which kind a column is, by its values and its name, never by the labels."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Literal, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from msgspec.structs import replace
from numpy.typing import NDArray
from scipy import stats

from memohop.data.tables.column_kinds import (
    Amount,
    Flag,
    Number,
    are_flags,
    count,
    listed,
    logarithm,
    numbers,
)
from memohop.data.tables.column_types import as_text, column_kind, is_time
from memohop.data.tables.feature_matrix import MOSTLY_ZERO
from memohop.data.tables.spelled_numbers import (
    has_separators,
    look_of,
    spelled_as_numbers,
    spelled_as_times,
    spelled_numbers,
)
from memohop.data.tables.text_columns import Category, Code, Words, spelled_codes
from memohop.errors import DataError

ColumnKind: TypeAlias = Flag | Number | Amount | Code | Words | Category
"""All kinds of columns."""
Reading: TypeAlias = Literal["categorical", "numeric", "text"]
"""How a user wants a column to be read."""

SKEWED = 2.0
"""Numbers from 0 on with a greater skewness have a long tail."""
_FEWEST = 30  # numbers whose skewness means something
_SURPRISES = 5  # lines on columns that are read in an unexpected way
_FEW_CODES = 20  # so many different whole numbers may be codes if each is frequent
_ROWS_OF_A_CODE = 5  # on average
_CODES = re.compile(
    r"\b(area|branch|brand|cat|category|city|class|club|cluster|codes?|country|county|department|"
    r"dept|district|dorm|ethnicity|fips|gender|genre|group|id|industry|job|kind|lang|language|"
    r"major|municipality|nationality|occupation|postcode|province|race|region|religion|school|"
    r"sector|sex|state|status|store|team|town|type|uid|zip|zipcode)\b"
)


def fit_column(
    name: str, column: pa.ChunkedArray, reading: Reading | None, most: int | None
) -> ColumnKind | None:
    """The fitted column, or None if it carries no information.

    Args:
        name: Its name.
        column: Its values.
        reading: How the user wants it to be read; None to guess.
        most: The most features that all rows of a text may have set; None if :func:`is_text`
            says that it is none.
    """
    kind = column_kind(column.type)
    if most is not None:
        return Words.fit(name, as_text(column), most)
    if reading == "categorical":
        return Category.fit(name, as_text(column))
    if kind == "text":
        text = as_text(column)
        if reading is None and are_flags(text):
            return Flag(name, text.null_count > 0, spelled=True)
        if reading is None and not spelled_as_numbers(text):
            return Category.fit(name, text)
        found = spelled_numbers(text)
        if found.null_count == len(found) > text.null_count:
            raise DataError(
                f"column {name!r} is to be numeric and holds no number, but strings such as "
                f"{text.drop_null()[0].as_py()!r}; leave it out of the numeric columns"
            )
        time = spelled_as_times(text)
        may_be_codes = reading is None and not time and not has_separators(text)
        return _fit_numbers(name, found, reading, may_be_codes, spelled=True, time=time)
    if kind == "flag":
        return Flag(name, column.null_count > 0) if pc.count_distinct(column).as_py() > 1 else None
    time = is_time(column.type)
    return _fit_numbers(name, column, reading, reading is None and not time, time=time)


def is_text(column: pa.ChunkedArray, reading: Reading | None) -> bool:
    """Whether a column becomes a bag of words."""
    if reading is not None or column_kind(column.type) != "text":
        return reading == "text"
    text = as_text(column)
    return not spelled_as_numbers(text) and Words.reads(text)


def surprise(
    name: str, column: pa.ChunkedArray, fitted: ColumnKind | None, reading: Reading | None
) -> str | None:
    """A line on strings that are read as something other than what most of them look like.

    Args:
        name: The name of the column.
        column: Its values.
        fitted: What :func:`fit_column` made of them.
        reading: How the user wants it to be read.
    """
    if column_kind(column.type) != "text" or reading in ("categorical", "text"):
        return None
    there = as_text(column).drop_null()
    if isinstance(fitted, Number | Amount | Code):
        others = there.filter(spelled_numbers(there).is_null())
        if not len(others):
            return None
        what = "times" if isinstance(fitted, Number) and fitted.time else "numbers"
        return (
            f"column {name!r} is read as {what}, with {len(others)} of "
            f"{count(len(there), 'value')} taken for missing, such as {others[0].as_py()!r} "
            f"(categorical=[{name!r}], --categorical {name} takes all as they are spelled)"
        )
    look = None if isinstance(fitted, Flag) else look_of(there)
    if look is None:
        return None
    read = "left out" if fitted is None else "read as a category"
    read = "read as words" if isinstance(fitted, Words) else read
    alike, others = there.filter(look.fits), there.filter(pc.invert(look.fits))
    but = f", but not {others[0].as_py()!r}" if len(others) else ""
    remedy = look.remedy or f"numeric=[{name!r}], --numeric {name} reads them as such"
    return (
        f"column {name!r} is {read}: {len(alike)} of {count(len(there), 'value')} look like "
        f"{look.noun}, such as {alike[0].as_py()!r}{but} ({remedy})"
    )


def tell_first(surprises: Mapping[str, str]) -> list[str]:
    """The first few lines of :func:`surprise`, by column, and the names of the other columns."""
    names = list(surprises)
    more = names[_SURPRISES:]
    likewise = [f"so are the values of {len(more)} more: {listed(more)}"] if more else []
    return [surprises[name] for name in names[:_SURPRISES]] + likewise


def _fit_numbers(
    name: str,
    column: pa.ChunkedArray,
    reading: Reading | None,
    may_be_codes: bool,
    *,
    spelled: bool = False,
    time: bool,
) -> ColumnKind | None:
    values = numbers(name, column)
    present = values[~np.isnan(values)]
    missing = present.size < values.size
    if not present.size or present.min() == present.max():
        return None
    if present.min() == 0:
        others = present[present != 0]
        if not spelled and (others == 1).all():
            return Flag(name, missing)
        if others.size < MOSTLY_ZERO * values.size and not (reading is None and _names(name)):
            return Amount(name, missing, float(np.median(others)), spelled)
    category, scale = None, None
    if may_be_codes and _may_be_codes(name, present):
        category = Category.fit(name, spelled_codes(values))
    elif not time and _has_long_tail(present):
        scale = float(np.quantile(present[present > 0], 0.1))
        present = logarithm(present, scale)
    mean, std = float(present.mean()), float(present.std())
    if not std >= np.finfo(np.float64).tiny:  # too small to divide by
        return None
    number = Number(name, missing, mean, std, spelled, scale, time)
    if category is None:
        return number
    # Both parts leave missing values to the column.
    parts = replace(number, missing=False), replace(category, missing=False)
    return Code(name, missing, *parts)


def _has_long_tail(present: NDArray[np.float64]) -> bool:
    """Whether numbers from 0 on are skewed to the right."""
    if present.size < _FEWEST or present.min() < 0:
        return False
    return bool(stats.skew(present / present.max()) > SKEWED)


def _names(name: str) -> bool:
    """Whether the name of a column is that of codes: ``dorm``, ``schoolType`` or ``zip_code``."""
    words = re.sub("([a-z])([A-Z])", r"\1 \2", name.replace("_", " "))
    return _CODES.search(words.lower()) is not None


def _may_be_codes(name: str, present: NDArray[np.float64]) -> bool:
    """Whether numbers are whole and may be names.

    They may if the column is named so, or else if each of them comes often enough and they are few,
    or begin further from 0 than they go on (major 235 to 278), or have gaps all over (a count has
    them only among its largest values).
    """
    if (present != np.floor(present)).any() or np.abs(present).max() > 2**53:
        return False
    if _names(name):
        return True
    codes = np.unique(present)
    if codes.size < 3 or codes[0] < 0 or present.size < _ROWS_OF_A_CODE * codes.size:
        return False
    width = codes[-1] - codes[0] + 1
    has_gaps = codes.size < width / 2 and np.median(codes) - codes[0] > width / 4
    return bool(codes.size <= _FEW_CODES or codes[0] > width or has_gaps)
