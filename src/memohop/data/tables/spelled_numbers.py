"""Numbers as people spell them: 36,200 or 1 234 or 1'234, and 12.5 %.

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
_PLAIN = r"[+-]?[0-9]+(?:\.[0-9]+)?"
_PER_CENT = f"[{_SPACES}]?%"
_NUMBER = f"^(?:{_GROUPED}|{_PLAIN})(?:{_PER_CENT})?$"
_COMMA = f"^[+-]?[0-9]+,[0-9]+(?:{_PER_CENT})?$"


def spelled_as_numbers(text: pa.ChunkedArray) -> bool:
    """Whether nearly all strings are numbers that only this module can read.

    Some must have separators, or all of the numbers a per cent sign.
    """
    there = text.drop_null()
    is_number = pc.match_substring_regex(there, _NUMBER)
    numbers, others = there.filter(is_number), there.filter(pc.invert(is_number))
    if not len(numbers) or len(numbers) < NEARLY_ALL * len(there):
        return False
    if pc.any(pc.match_substring_regex(others, _COMMA)).as_py():
        return False
    per_cent = pc.sum(pc.ends_with(numbers, "%")).as_py()
    grouped = pc.any(pc.match_substring_regex(numbers, f"^{_GROUPED}")).as_py()
    return per_cent == len(numbers) or (grouped and not per_cent)


def spelled_numbers(text: pa.ChunkedArray) -> pa.ChunkedArray:
    """The numbers, null where a string is not one; 5 % becomes 5."""
    bare = pc.replace_substring_regex(text, f"[%,{_QUOTES}{_SPACES}]", "")
    is_number = pc.match_substring_regex(text, _NUMBER)
    return pc.if_else(is_number, bare, pa.scalar(None, pa.string())).cast(pa.float64())
