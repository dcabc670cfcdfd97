"""Numbers as people spell them: 36,200 or 1 234 or 1'234, and 12.5 %.

A separator stands between groups of three digits, after one to three digits that do not begin with
0. So 1,5 and 0,250 are no such numbers, and where one of them is in a column, its commas are taken
for decimal ones and the column for words, as it is nowhere said which they are.
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
    """Whether nearly all strings are numbers, and it takes this module to see it.

    Some must have separators, or all of the numbers a per cent sign.
    """
    there = text.drop_null()
    numbers = there.filter(_is_number(there))
    if not len(numbers) or len(numbers) < NEARLY_ALL * len(there):
        return False
    others = there.filter(pc.invert(_is_number(there)))
    if pc.any(pc.match_substring_regex(others, _COMMA)).as_py():
        return False
    per_cent = pc.sum(pc.ends_with(numbers, "%")).as_py()
    grouped = pc.any(pc.match_substring_regex(numbers, f"^{_GROUPED}")).as_py()
    return per_cent == len(numbers) or (grouped and not per_cent)


def spelled_numbers(text: pa.ChunkedArray) -> pa.ChunkedArray:
    """The numbers, null where a string is none; of a per cent sign nothing is made."""
    bare = pc.replace_substring_regex(text, f"[%,{_QUOTES}{_SPACES}]", "")
    return pc.if_else(_is_number(text), bare, pa.scalar(None, pa.string())).cast(pa.float64())


def _is_number(text: pa.ChunkedArray) -> pa.ChunkedArray:
    return pc.match_substring_regex(text, _NUMBER)
