"""Numbers and times as people spell them: 36,200 or 1 234 or 1'234, 12.5 % and 2024-05-31 18:30.

A separator stands between groups of three digits, after one to three digits that do not begin with
0. So 1,5 and 0,250 are not such numbers. If a column has one of them, its commas are taken for
decimal commas and the column for words, since nothing says which of the two they are.
"""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

NEARLY_ALL = 0.95
"""The share of the values of a column that must be numbers; the others count as missing."""

_SPACES = " \u00a0\u2009\u202f"
_QUOTES = "'\u2019"
_FIRST, _THREE = "[1-9][0-9]{0,2}", "[0-9]{3}"
_GROUPS = "|".join(f"(?:{mark}{_THREE})+" for mark in (",", f"[{_QUOTES}]", f"[{_SPACES}]"))
_GROUPED = rf"[+-]?{_FIRST}(?:{_GROUPS})(?:\.[0-9]+)?"
_PLAIN = r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?"
_PER_CENT = f"[{_SPACES}]?%"
_NUMBER = f"^(?:{_GROUPED}|{_PLAIN})(?:{_PER_CENT})?$"
_COMMA = f"^[+-]?[0-9]+,[0-9]+(?:{_PER_CENT})?$"
_TIME = (
    r"^(?P<day>[0-9]{4}-[0-9]{2}-[0-9]{2})"
    r"(?:[T ](?P<minute>[0-9]{2}:[0-9]{2})(?P<second>:[0-9]{2})?(?:\.[0-9]+)?"
    r"(?:Z|(?P<sign>[+-])(?P<hours>[0-9]{2}):?(?P<minutes>[0-9]{2}))?)?$"
)


def spelled_as_numbers(text: pa.ChunkedArray) -> bool:
    """Whether nearly all strings are times, or numbers that only this module can read.

    Some of the numbers must have separators, or all of them a per cent sign.
    """
    there = text.drop_null()
    if spelled_as_times(there):
        return True
    is_number = pc.match_substring_regex(there, _NUMBER)
    numbers, others = there.filter(is_number), there.filter(pc.invert(is_number))
    if not len(numbers) or len(numbers) < NEARLY_ALL * len(there):
        return False
    if pc.any(pc.match_substring_regex(others, _COMMA)).as_py():
        return False
    per_cent = pc.sum(pc.ends_with(numbers, "%")).as_py()
    grouped = pc.any(pc.match_substring_regex(numbers, f"^{_GROUPED}")).as_py()
    return per_cent == len(numbers) or (grouped and not per_cent)


def spelled_as_times(text: pa.ChunkedArray) -> bool:
    """Whether nearly all strings, and at least one, are dates or times in the form of ISO 8601."""
    there = text.drop_null()
    times = pc.sum(pc.match_substring_regex(there, _TIME)).as_py() or 0
    return times > 0 and times >= NEARLY_ALL * len(there)


def spelled_numbers(text: pa.ChunkedArray) -> pa.ChunkedArray:
    """The numbers, null where a string is none; 5 % becomes 5, and a time seconds since 1970."""
    bare = pc.replace_substring_regex(text, f"[%,{_QUOTES}{_SPACES}]", "")
    is_number = pc.match_substring_regex(text, _NUMBER)
    numbers = pc.if_else(is_number, bare, pa.scalar(None, pa.string())).cast(pa.float64())
    if not pc.any(pc.match_substring_regex(text, _TIME)).as_py():
        return numbers
    return pc.coalesce(numbers, _seconds(text))


def _seconds(text: pa.ChunkedArray) -> pa.ChunkedArray:
    parts = pc.extract_regex(text, _TIME)
    field = {name: pc.struct_field(parts, name) for name in ("day", "minute", "second")}
    clock = pc.binary_join_element_wise(
        field["day"], _or(field["minute"], "00:00"), _or(field["second"], ":00"), ""
    )
    moments = pc.strptime(clock, format="%Y-%m-%d%H:%M:%S", unit="s", error_is_null=True)
    sign, hours, minutes = (pc.struct_field(parts, name) for name in ("sign", "hours", "minutes"))
    ahead = pc.add(
        pc.multiply(_or(hours, "0").cast(pa.int64()), 3600),
        pc.multiply(_or(minutes, "0").cast(pa.int64()), 60),
    )
    ahead = pc.if_else(pc.equal(sign, "-"), pc.negate(ahead), ahead)
    return pc.subtract(moments.cast(pa.int64()), ahead).cast(pa.float64())


def _or(part: pa.ChunkedArray, default: str) -> pa.ChunkedArray:
    """The part, or the default where it is not there; null stays null."""
    return pc.if_else(pc.equal(part, ""), default, part)
