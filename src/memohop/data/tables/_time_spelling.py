"""How people spell times: decided for a column as a whole, and kept for later tables.

A time is 2024-05-31 18:30, 2024/5/31, 31.05.2024, 5/31/24 6:30 PM, 31 May 2024 or May 31, 2024,
also with a time zone, or the hour alone. Where a day and a month are both numbers, the column as a
whole says which comes first.
"""

from __future__ import annotations

from typing import ClassVar, Literal, Self

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from memohop.data.tables._patterns import column_with, fields_of

_ZONES = {"EST": -5, "EDT": -4, "CST": -6, "CDT": -5, "MST": -7, "MDT": -6, "PST": -8, "PDT": -7}
_ZONES |= {"CET": 1, "CEST": 2}
_ZONE_NAMES = pa.array(_ZONES)
_ZONE = rf"Z|UTC|GMT|{'|'.join(_ZONES)}|(?:UTC|GMT)?[+-][0-9]{{2}}(?::?[0-9]{{2}})?"
_HOUR = (
    r"(?P<hour>[0-9]{1,2}):(?P<minute>[0-9]{2})(?::(?P<second>[0-9]{2})(?:[.,][0-9]+)?)?"
    r"(?: ?(?P<half>[AaPp])\.?[Mm]\.?)?"
)
_CLOCK = rf"(?:(?:[T ]|, ?| at ){_HOUR}(?: ?(?P<zone>{_ZONE}))?)?$"
_DAY, _MONTH, _YEAR = "(?P<day>[0-9]{1,2})", "(?P<month>[0-9]{1,2})", "(?P<year>[0-9]{4})"
_ANY_YEAR = "(?P<year>[0-9]{4}|[0-9]{2})"
_FIRST, _OTHER = "(?P<first>[0-9]{1,2})", "(?P<other>[0-9]{1,2})"
_MONTHS = pa.array(
    ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"]
)
_NAME = (
    r"(?i:(?P<name>jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|"
    r"sept?(?:ember)?|oct(?:ober)?|nov(?:ember)?|dec(?:ember)?))"
)
_WEEKDAY = r"(?i:(?:mon|tues?|wed(?:nes)?|thu(?:rs)?|fri|sat(?:ur)?|sun)(?:day)?)"
_NTH = "(?:st|nd|rd|th)?"
_TWO_NUMBERS = (
    rf"^{_FIRST}[/-]{_OTHER}[/-]{_ANY_YEAR}{_CLOCK}",
    rf"^{_FIRST}\. ?{_OTHER}\. ?{_YEAR}{_CLOCK}",
    rf"^(?P<first>[0-9]{{2}})\.(?P<other>[0-9]{{2}})\.(?P<year>[0-9]{{2}}){_CLOCK}",
)
_NUMBERS = r"^[0-9]{1,2}[/.-] ?[0-9]{1,2}[/.-]"
_NAMES = "(?i:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)"
_TIMES = {  # and what their strings have, which is seen sooner
    rf"^{_YEAR}[./-]{_MONTH}[./-]{_DAY}{_CLOCK}": "^[0-9]{4}[./-]",
    rf"^(?:{_WEEKDAY},? )?{_DAY}(?:{_NTH}|\.)[ -]?{_NAME}[.,]?[ -]?{_ANY_YEAR}{_CLOCK}": _NAMES,
    rf"^(?:{_WEEKDAY},? )?{_NAME}[. -]+(?:{_DAY}{_NTH}(?:, ?| ))?{_YEAR}{_CLOCK}": _NAMES,
    rf"^{_WEEKDAY} {_NAME} +{_DAY} {_HOUR}(?: (?P<zone>{_ZONE}))? {_YEAR}$": _NAMES,
    rf"^{_HOUR}$": "^[0-9]{1,2}:",
    **dict.fromkeys(_TWO_NUMBERS, _NUMBERS),
}
_TRIED = 1000  # dates that may show the order
_HALVES = pa.array(["a", "A", "p", "P"])
_DEFAULTS = {"year": "1970", "month": "1", "day": "1", "hour": "0", "minute": "0", "second": "0"}


class TimeSpelling(msgspec.Struct, frozen=True, tag="time"):
    """How the times of a column are spelled.

    Attributes:
        first: What comes first where day and month are numbers; None if they never are.
        proof: A date that can be read in this way alone; None if the order is a guess.
    """

    first: Literal["day", "month"] | None = None
    proof: str | None = None
    noun: ClassVar[str] = "times"
    decimal_comma: ClassVar[bool] = False

    def guesses(self, text: pa.ChunkedArray) -> list[str]:
        """What the column as a whole decided, for a message."""
        if self.first is None:
            return []
        if self.proof is not None:
            return [f"the {self.first} first, as {self.proof!r} shows"]
        return [f"the {self.first} first, which is a guess: 2024-05-31 would leave no doubt"]

    @classmethod
    def of(cls, text: pa.ChunkedArray) -> Self:
        """The order that fits more dates of these strings.

        If all dates fit both, the first number is the day if it is always 1, as in dates of months,
        or if there are points between the numbers; and otherwise the month.
        """
        proofs: dict[str, list[int]] = {"day": [], "month": []}
        first, other = [np.empty(0, dtype=np.int64)], [np.empty(0, dtype=np.int64)]
        with_points = False
        for index, pattern in enumerate(_TWO_NUMBERS):
            rows, field = fields_of(text, pattern, _TIMES[pattern])
            if not rows.size:
                continue
            left, right = (field[name].cast(pa.int64()).to_numpy() for name in ("first", "other"))
            proofs["day"] += rows[(left > 12) & (right <= 12)].tolist()
            proofs["month"] += rows[(left <= 12) & (right > 12)].tolist()
            first.append(left)
            other.append(right)
            with_points |= index > 0
        left, right = map(np.concatenate, (first, other))
        if not left.size:
            return cls()
        order: Literal["day", "month"] = "month"
        if len(proofs["day"]) != len(proofs["month"]):
            order = max(("day", "month"), key=lambda name: len(proofs[name]))
        elif with_points or ((left == 1).all() and not (right == 1).all()):
            order = "day"
        shown = text.take(pa.array(sorted(proofs[order])[:_TRIED], pa.int64()))
        dates = shown.filter(cls(order).read(shown).is_valid())  # without a 31 February
        return cls(order, dates[0].as_py() if len(dates) else None)

    def read(self, text: pa.ChunkedArray) -> pa.ChunkedArray:
        """The seconds since 1970 began, null where a string is no time; those of UTC, if zoned."""
        seconds = np.full(len(text), np.nan)
        for pattern, look in _TIMES.items():
            if self.first is None and pattern in _TWO_NUMBERS:
                continue
            rows, field = fields_of(text, pattern, look)
            if "first" in field:
                second = "month" if self.first == "day" else "day"
                field |= {str(self.first): field["first"], second: field["other"]}
            if rows.size:
                seconds[rows] = _seconds(field, len(rows))
        there = np.flatnonzero(~np.isnan(seconds))
        return column_with(there, seconds[there], len(text))


def _seconds(field: dict[str, pa.Array], size: int) -> NDArray[np.float64]:
    """The seconds since 1970 began, NaN for what is in no calendar and on no clock."""

    def whole(name: str) -> NDArray[np.int64]:
        if name not in field:
            return np.full(size, int(_DEFAULTS[name]))
        part = pc.if_else(pc.equal(field[name], ""), _DEFAULTS[name], field[name])
        return np.asarray(part.cast(pa.int64()).to_numpy())

    year, month, day, hour, minute, second = map(whole, _DEFAULTS)
    if "name" in field:
        name = pc.utf8_slice_codeunits(pc.utf8_lower(field["name"]), 0, 3)
        month = 1 + pc.index_in(name, value_set=_MONTHS).to_numpy()
    if "year" in field:  # of two digits: from 1969 to 2068, as POSIX has it
        short = pc.equal(pc.utf8_length(field["year"]), 2).to_numpy(zero_copy_only=False)
        year = np.where(short, year + np.where(year < 69, 2000, 1900), year)
    begin = ((year - 1970) * 12 + month - 1).astype("datetime64[M]")
    date = begin.astype("datetime64[D]") + (day - 1)
    right = (month >= 1) & (month <= 12) & (date.astype("datetime64[M]") == begin)
    right &= (hour < 24) & (minute < 60) & (second <= 60)
    if "half" in field:
        half = np.asarray(pc.fill_null(pc.index_in(field["half"], value_set=_HALVES), -1))
        of_twelve, late = half >= 0, half >= 2
        right &= ~of_twelve | ((hour >= 1) & (hour <= 12))
        hour = np.where(of_twelve, hour % 12 + 12 * late, hour)
    seconds = date.astype(np.int64) * 86400 + hour * 3600 + minute * 60 + second
    if "zone" in field and not pc.all(pc.equal(field["zone"], "")).as_py():
        seconds = seconds - _ahead(field["zone"])
    return np.where(right, seconds, np.nan)


def _ahead(zone: pa.Array) -> NDArray[np.int64]:
    """By how many seconds clocks are ahead of UTC."""
    known = pc.index_in(zone, value_set=_ZONE_NAMES)
    hours = np.array([*_ZONES.values(), 0])[pc.fill_null(known, len(_ZONES)).to_numpy()]
    rows, field = fields_of(
        pa.chunked_array([zone]), "(?P<sign>[+-])(?P<hours>[0-9]{2}):?(?P<minutes>(?:[0-9]{2})?)$"
    )
    minutes = pc.if_else(pc.equal(field["minutes"], ""), "0", field["minutes"]).cast(pa.int64())
    ahead = field["hours"].cast(pa.int64()).to_numpy() * 3600 + minutes.to_numpy() * 60
    seconds = hours * 3600
    seconds[rows] = np.where(pc.equal(field["sign"], "-"), -ahead, ahead)
    return seconds
