"""Numbers and times as people spell them: 36,200 or 1 234 or 1'234, 12.5 % and 2024-05-31 18:30.

A separator stands between groups of three digits, after one to three digits that do not begin with
0. So 1,5 and 0,250 are not such numbers. If a column has one of them, its commas are taken for
decimal commas and the column for words, since nothing says which of the two they are.

Values such as ? or unknown say nothing of the kind of a column: they are not counted.
"""

from __future__ import annotations

from typing import NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from memohop.data.tables.placeholders import are_placeholders

NEARLY_ALL = 0.95
"""The share of the values of a column that must be numbers; the others count as missing."""
_MOST = 0.5  # share of values that look like something else than what the column is read as

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
_UNIT = rf"[{_SPACES}]?[$€£¥°][A-Z]?|[{_SPACES}][a-zA-Z]{{1,6}}[²³]?"
_WITH_UNIT = rf"^(?:[$€£¥][{_SPACES}]?)?(?:{_GROUPED}|{_PLAIN})(?:{_UNIT})?$"
_DAY = "[0-9]{1,2}"
_OTHER_DATE = (
    rf"^(?:[0-9]{{4}}[./-]{_DAY}[./-]{_DAY}|{_DAY}[./-]{_DAY}[./-](?:[0-9]{{4}}|[0-9]{{2}}))"
    r"(?:[T ][0-9:.]+)?$"
)
_FLAG = r"(?i)^(?:true|false|yes|no)$"


class Look(NamedTuple):
    """What most values of a column look like to a person, and whether each of them does.

    Attributes:
        noun: The values, in the plural.
        remedy: When they are read as that; nothing if it is enough to ask for it.
        fits: Whether each value looks so.
    """

    noun: str
    remedy: str
    fits: pa.ChunkedArray


_LOOKS = (
    ("numbers", "", _MOST, _NUMBER),
    ("times", "", _MOST, _TIME),
    ("numbers", "with a decimal point they are read as such", _MOST, _COMMA),
    ("numbers with a unit", "without it they are read as numbers", _MOST, _WITH_UNIT),
    ("dates", "as 2024-05-31 18:30 they are read as times", _MOST, _OTHER_DATE),
    ("true or false", "with nothing else in it, it is read as a flag", NEARLY_ALL, _FLAG),
)


def look_of(text: pa.ChunkedArray) -> Look | None:
    """What most strings, of which none is null, look like; None if they are words."""
    text = pc.utf8_trim_whitespace(text)
    for noun, remedy, share, pattern in _LOOKS:
        fits = pc.match_substring_regex(text, pattern)
        if (pc.sum(fits).as_py() or 0) > share * len(text):
            return Look(noun, remedy, fits)
    return None


def spelled_as_numbers(text: pa.ChunkedArray) -> bool:
    """Whether nearly all strings are times, or numbers that Arrow does not take for numbers.

    Some of the numbers must have separators or a plus sign, or all of them a per cent sign, or
    there must be a few words among them. Plain numbers alone that are stored as strings are no
    numbers: somebody decided so, and they may be codes.
    """
    if spelled_as_times(text):
        return True
    said = _without_placeholders(text)
    is_number = pc.match_substring_regex(said, _NUMBER)
    numbers, others = said.filter(is_number), said.filter(pc.invert(is_number))
    if not len(numbers) or len(numbers) < NEARLY_ALL * len(said):
        return False
    if pc.any(pc.match_substring_regex(others, _COMMA)).as_py():
        return False
    if per_cent := pc.sum(pc.ends_with(numbers, "%")).as_py():
        return bool(per_cent == len(numbers))
    return has_separators(numbers) or len(numbers) < len(text) - text.null_count


def has_separators(text: pa.ChunkedArray) -> bool:
    """Whether some numbers have a thousands separator, a plus or a per cent sign."""
    return bool(pc.any(pc.match_substring_regex(text, rf"^(?:\+|{_GROUPED})|%$")).as_py())


def spelled_as_times(text: pa.ChunkedArray) -> bool:
    """Whether nearly all strings, and at least one, are dates or times in the form of ISO 8601."""
    said = _without_placeholders(text)
    times = pc.sum(pc.match_substring_regex(said, _TIME)).as_py() or 0
    return times > 0 and times >= NEARLY_ALL * len(said)


def _without_placeholders(text: pa.ChunkedArray) -> pa.ChunkedArray:
    there = pc.utf8_trim_whitespace(text.drop_null())
    return there.filter(pc.invert(are_placeholders(there)))


def spelled_numbers(text: pa.ChunkedArray) -> pa.ChunkedArray:
    """The numbers, null where a string is none; 5 % becomes 5, and a time seconds since 1970."""
    text = pc.utf8_trim_whitespace(text)
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
