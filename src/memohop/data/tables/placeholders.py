"""What people write into a cell of which nothing is known."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

_OBVIOUS = pa.array(
    [
        *("?", "??", "???", "-", "--", "---", "\N{EN DASH}", "\N{EM DASH}", ".", "..", "..."),
        *("None", "<NA>", "n.a.", "N.A.", "Null", "<null>", "(null)", "NaT", "\\N", "#N/A N/A"),
    ]
)
_AMBIGUOUS = pa.array(
    [
        *("none", "na", "nil", "unknown", "unk", "missing", "undefined", "unspecified", "tbd"),
        *("unlabelled", "unlabeled", "no label", "no value", "no data", "not known"),
        *("not available", "not applicable"),
    ]
)


def are_obvious(text: pa.ChunkedArray) -> pa.ChunkedArray:
    """Whether each string stands for nothing, whatever the column; False for null."""
    return pc.is_in(pc.utf8_trim_whitespace(text), value_set=_OBVIOUS)


def are_placeholders(text: pa.ChunkedArray) -> pa.ChunkedArray:
    """Whether each string stands for nothing in a column of numbers, though it may be a class."""
    words = pc.utf8_lower(pc.utf8_trim_whitespace(text))
    return pc.or_(are_obvious(text), pc.is_in(words, value_set=_AMBIGUOUS))
