"""How people spell numbers: decided for a column as a whole, and kept for later tables.

A number is 36,200 or 1 234 or 1'234.5, has a sign or stands in brackets (then it is negative), and
may have a unit: $237,000,000, 5 €, 178 min, 36 % or 5,282 ft. 1.2k is 1200, as $3.4M and €3.4
million are 3,400,000. A separator stands between groups of three digits, after one to three digits
that do not begin with 0. So 1,5 and 0,250 have a decimal comma; a column has them if a twentieth of
its numbers can be read so alone and none with a decimal point alone, and there 1.234 is 1234.
"""

from __future__ import annotations

from functools import cache
from typing import NamedTuple, Self, TypeAlias

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from memohop.data.tables._patterns import column_with, fields_of, those_with
from memohop.data.tables._time_spelling import TimeSpelling
from memohop.data.tables.units import factor, is_converted
from memohop.outputs import first_few

_TRIED_UNITS = 20  # the most frequent ones, into which others might be converted
_ONE_CURRENCY = 0.95  # share of numbers in it, beside which others are mistakes
_RARE = 0.05  # share of numbers that can only have a decimal comma, if they are mistakes

_SPACES = " \u00a0\u2009\u202f"
_QUOTES = "'\u2019"
_MINUS = "\u2212-"  # no range in a pattern
_COINS = (
    r"(?:[A-Z]{0,3}\p{Sc}|AUD|BRL|CAD|CHF|CNY|CZK|DKK|EUR|GBP|HKD|HUF|INR|JPY|KRW|MXN|NOK|NZD|PLN|"
    r"RUB|SEK|SGD|TRY|USD|ZAR|Rs\.?|Fr\.|kr\.?)"
)
_LETTER = r"[^\s0-9\pP^=<>|~`]"  # and signs such as those of money and degrees
_WORD = rf"(?:[%‰]|{_LETTER}(?:{_LETTER}|[.%])*[23]?)"
_INCHES = '["\u2033\u2032]'
_UNIT = rf"{_WORD}(?:[ /]{_WORD})?|{_INCHES}"


def _digits(comma: str, point: str) -> str:
    """The pattern of digits in groups, or in one, with a decimal point or comma."""
    marks = [comma, f"[{_QUOTES}]", f"[{_SPACES}]"]
    groups = "|".join(f"(?:{mark}[0-9]{{3}})+" for mark in marks)
    plain = rf"[0-9]+(?:{point}[0-9]*)?|{point}[0-9]+"
    return rf"[1-9][0-9]{{0,2}}(?:{groups})(?:{point}[0-9]+)?|(?:{plain})(?:[eE][+-]?[0-9]+)?"


def _pattern(digits: str, *, units: bool) -> str:
    sign = f"[+{_MINUS}]?"
    coins, unit = (f"{_COINS}?", f"(?:[{_SPACES}]?(?:{_UNIT}))?") if units else ("", "")
    before = rf"(?P<sign>{sign})(?P<before>{coins})[{_SPACES}]?(?P<minus>{sign})"
    return rf"^(?P<open>\(?){before}(?P<digits>{digits})(?P<after>{unit})(?P<close>\)?)$"


_POINT, _COMMA = _digits(",", r"\."), _digits(r"\.", ",")
_HAS_UNIT = f"[^0-9.,(){_QUOTES}{_SPACES}-]"
PLAIN = r"^-?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?$"
"""A number as files have it."""
_WHOLE = r"^-?[0-9]+$"
_BEGINS = (
    rf"^\(?[+{_MINUS}]?(?:[A-Z]{{0,3}}\p{{Sc}}|[A-Z][A-Za-z]{{1,2}}\.?|kr\.?)?[{_SPACES}]?[+{_MINUS}]?"
    r"[.,]?[0-9]"
)
_POWERS = {"k": 1e3, "th": 1e3, "m": 1e6, "mn": 1e6, "mi": 1e6, "b": 1e9, "bn": 1e9, "bi": 1e9}
_POWERS |= {"mr": 1e9, "tr": 1e12}
_POWER_NAMES = pa.array(_POWERS)
_SPELLED_OUT = r"\s?(?i:[mb]n|thousand|million|mio|billion|mrd|trillion)s?\.?"
_MANY = r"^(?P<power>{letters}|" + _SPELLED_OUT + r")(?P<unit>(?:\s.+|[\p{{Sc}}+].*)?)$"


class NumberSpelling(msgspec.Struct, frozen=True, tag="number"):
    """How the numbers of a column are spelled.

    Attributes:
        unit: What stands beside them; 0 needs no unit, units of the same dimension are converted,
            and others are not read.
        decimal_comma: Whether their fractions come after a comma.
        currencies: Whether they are amounts in several currencies, which nothing converts.
        bare: Whether numbers without a unit are in this one.
    """

    unit: str = ""
    decimal_comma: bool = False
    currencies: bool = False
    bare: bool = False

    @property
    def noun(self) -> str:
        """What the strings are, for messages."""
        if self.currencies:
            return "amounts in several currencies"
        return f"numbers in {self.unit}" if self.unit else "numbers"

    def guesses(self, text: pa.ChunkedArray) -> list[str]:
        """What the column as a whole decided, and what is converted, for a message."""
        told = ["with decimal commas"] if self.decimal_comma else []
        return told + self.conversions(text)

    def conversions(self, text: pa.ChunkedArray) -> list[str]:
        """How many numbers are converted from which units, for a message."""
        if not (self.currencies or self.bare or is_converted(self.unit)):
            return []
        numbers = numbers_in(text, decimal_comma=self.decimal_comma)
        numbers = numbers.those(~np.isnan(self._factors(numbers)))
        units = [unit for unit in numbers.frequent_units() if unit or self.bare]  # 0 needs none
        if len(units) < 2:
            return []
        sizes = [pc.sum(pc.equal(numbers.units, unit)).as_py() for unit in units]
        parts = [
            f"{size} {f'in {unit}' if unit else 'without a unit'}"
            for size, unit in zip(sizes, units, strict=True)
        ]
        if self.currencies:
            return [f"{first_few(parts)}: each number as it is, and its currency as a category"]
        return [f"{first_few(parts)}: all in {self.unit}"]

    @classmethod
    def of(cls, text: pa.ChunkedArray) -> Self:
        """The spelling of most numbers among strings without spaces around them."""
        return cls.and_numbers(text)[0]

    @classmethod
    def and_numbers(cls, text: pa.ChunkedArray) -> tuple[Self, int]:
        """The same, and how many numbers are spelled so."""
        numbers, decimal_comma = numbers_in(text, decimal_comma=False), False
        if numbers.rows.size < len(text) and pc.any(pc.match_substring_regex(text, "[.,]")).as_py():
            comma = numbers_in(text, decimal_comma=True)
            only_point = np.setdiff1d(numbers.rows, comma.rows).size
            only_comma = np.setdiff1d(comma.rows, numbers.rows).size
            if decimal_comma := not only_point and only_comma > _RARE * comma.rows.size:
                numbers = comma
        units = numbers.frequent_units()
        several = sum(map(_is_money, units)) > 1
        some = [cls(unit, decimal_comma) for unit in units[:_TRIED_UNITS]] or [cls()]
        read = [spelling._fitting(numbers) for spelling in some]
        if several and max(read) < _ONE_CURRENCY * numbers.rows.size:
            some.append(cls("", decimal_comma, currencies=True))
            read.append(some[-1]._fitting(numbers))
        best = int(np.argmax(read))
        return some[best], read[best]

    def read(self, text: pa.ChunkedArray) -> pa.ChunkedArray:
        """The numbers in the unit, null where a string is none or has a unit of another kind."""
        there = numbers_in(text, decimal_comma=self.decimal_comma)
        factors = self._factors(there)
        alike = ~np.isnan(factors)
        return column_with(there.rows[alike], (there.values * factors)[alike], len(text))

    def _fitting(self, numbers: Numbers) -> int:
        return int((~np.isnan(self._factors(numbers))).sum())

    def _factors(self, numbers: Numbers) -> NDArray[np.float64]:
        """What converts each number into the unit; NaN where nothing does."""
        units = numbers.units.dictionary_encode()
        factors = [
            (1.0 if _is_money(unit) else None) if self.currencies else factor(unit, self.unit)
            for unit in units.dictionary.to_pylist()
        ]
        of_each = np.array(factors, dtype=np.float64)[units.indices.to_numpy()]
        bare = pc.equal(numbers.units, "").to_numpy(zero_copy_only=False)
        return np.where(bare & (self.bare | (numbers.values == 0)), 1.0, of_each)


def currencies_in(text: pa.ChunkedArray, spelling: NumberSpelling) -> pa.ChunkedArray:
    """The currency of each amount, null where a string is none."""
    there = numbers_in(text, decimal_comma=spelling.decimal_comma)
    money = ~np.isnan(spelling._factors(there))
    rows = np.full(len(text), -1)
    rows[there.rows[money]] = np.flatnonzero(money)
    return pa.chunked_array([there.units.take(pa.array(rows, mask=rows < 0))])


@cache
def _is_money(unit: str) -> bool:
    return bool(pc.match_substring_regex(pa.scalar(unit), f"^{_COINS}$").as_py())


class Numbers(NamedTuple):
    """The rows of strings that are numbers, with these."""

    rows: NDArray[np.int64]
    values: NDArray[np.float64]
    units: pa.Array

    def those(self, chosen: NDArray[np.bool_]) -> Numbers:
        """Some of them."""
        units = self.units.filter(pa.array(chosen))
        return Numbers(self.rows[chosen], self.values[chosen], units)

    def frequent_units(self) -> list[str]:
        """The units, the most frequent first."""
        names, sizes = pc.value_counts(self.units).flatten()
        return list(names.take(pa.array(np.argsort(-sizes.to_numpy(), kind="stable"))).to_pylist())


def numbers_in(text: pa.ChunkedArray, *, decimal_comma: bool) -> Numbers:
    """All numbers among strings, in whatever unit.

    The whole pattern takes longer to compile than a small column to read: it is for strings that
    begin like a number and are none as files have it.
    """
    rows, some = those_with(text, _BEGINS)
    plain = pc.match_substring_regex(some, _WHOLE if decimal_comma else PLAIN)
    plain = plain.to_numpy().astype(bool)
    simple = some.filter(pa.array(plain)).cast(pa.float64()).to_numpy()
    if plain.all():
        return Numbers(rows, simple, pa.array([""] * len(rows), pa.string()))
    numbers = _any_numbers_in(some.filter(pa.array(~plain)), decimal_comma)
    at = np.concatenate((rows[plain], rows[~plain][numbers.rows]))
    order = np.argsort(at)
    units = pa.concat_arrays([pa.array([""] * len(simple), pa.string()), numbers.units])
    values = np.concatenate((simple, numbers.values))
    return Numbers(at[order], values[order], units.take(pa.array(order)))


def _any_numbers_in(text: pa.ChunkedArray, decimal_comma: bool) -> Numbers:
    units = pc.any(pc.match_substring_regex(text, _HAS_UNIT)).as_py()
    rows, field = fields_of(text, _pattern(_COMMA if decimal_comma else _POINT, units=units))
    opened = pc.equal(field["open"], "(").to_numpy(zero_copy_only=False)
    closed = pc.equal(field["close"], ")").to_numpy(zero_copy_only=False)
    digits = pc.replace_substring_regex(
        field["digits"], f"[{'.' if decimal_comma else ','}{_QUOTES}{_SPACES}]", ""
    )
    values = pc.replace_substring(digits, ",", ".").cast(pa.float64()).to_numpy()
    power, unit = _power_and_unit(field["before"], field["after"])
    signs = pc.binary_join_element_wise(field["sign"], field["minus"], "")
    negative = pc.match_substring_regex(signs, f"[{_MINUS}]").to_numpy(zero_copy_only=False)
    values = np.where(negative | opened, -values, values) * power
    code = pc.and_(  # 007AB
        pc.match_substring_regex(digits, "^0[0-9]"),
        pc.match_substring_regex(field["after"], r"^\S"),
    ).to_numpy(zero_copy_only=False)
    kept = (opened == closed) & (pc.utf8_length(signs).to_numpy() <= 1) & ~code
    return Numbers(rows[kept], values[kept], unit.filter(pa.array(kept)))


def _power_and_unit(before: pa.Array, after: pa.Array) -> tuple[NDArray[np.float64], pa.Array]:
    """What multiplies numbers (k, million), and the units without it.

    A letter for many follows its number at once; after money, also with a space, as m and b.
    """
    power, unit = np.ones(len(after)), after
    if pc.all(pc.equal(pc.binary_join_element_wise(before, after, ""), "")).as_py():
        return power, unit
    if pc.any(pc.match_substring_regex(after, r"^\s?[kKmMbBtT]")).as_py():
        power, unit = _power(before, after)
    unit = pc.replace_substring_regex(pc.utf8_trim_whitespace(unit), r"(\p{L})\.$", r"\1")
    unit = pc.replace_substring_regex(unit, r"(\p{L}[a-rtv-z])s$", r"\1")  # 1 hour, 2 hours
    unit = pc.binary_join_element_wise(pc.utf8_trim_whitespace(before), unit, " ")
    return power, pc.utf8_trim_whitespace(unit)


def _power(before: pa.Array, after: pa.Array) -> tuple[NDArray[np.float64], pa.Array]:
    money = pc.or_(
        pc.not_equal(before, ""), pc.match_substring_regex(after, rf"(?:\s|^|[kKmMbB]){_COINS}$")
    )
    power, unit = pa.nulls(len(after), pa.string()), after
    for letters, where in (("[kKMB]", pc.invert(money)), (r"\s?[kKmMbB]", money)):
        parts = pc.extract_regex(after, _MANY.format(letters=letters))
        has_power = pc.and_(where, parts.is_valid())
        power = pc.if_else(has_power, pc.struct_field(parts, "power"), power)
        unit = pc.if_else(has_power, pc.struct_field(parts, "unit"), unit)
    key = pc.utf8_slice_codeunits(pc.utf8_lower(pc.utf8_trim_whitespace(power)), 0, 2)
    index = pc.fill_null(pc.index_in(key, value_set=_POWER_NAMES), len(_POWERS)).to_numpy()
    return np.array([*_POWERS.values(), 1.0])[index], unit


Spelling: TypeAlias = NumberSpelling | TimeSpelling


def spelling_of(text: pa.ChunkedArray) -> Spelling:
    """How most of these strings, without spaces around them, are spelled as times or numbers."""
    text = text.filter(pc.match_substring_regex(text, "[0-9]"))
    if not len(text):
        return NumberSpelling()
    number, read = NumberSpelling.and_numbers(text)
    if not (others := len(text) - read):
        return number
    time = TimeSpelling.of(text)
    return time if time.read(text).null_count < others else number
