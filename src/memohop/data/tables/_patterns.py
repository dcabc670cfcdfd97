"""Patterns of strings: which strings have one, and what its groups are there."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray


def fields_of(
    text: pa.ChunkedArray, pattern: str, look: str | None = None
) -> tuple[NDArray[np.int64], dict[str, Any]]:
    """The rows of the strings with a pattern, and what its groups are there.

    Only strings that have ``look`` may have it: a long pattern takes longer to compile than to find
    that there are none.
    """
    if look is not None:
        likely, text = those_with(text, look)
        if not likely.size:
            return likely, {}
    parts = pc.extract_regex(text, pattern)
    there = parts.is_valid()
    groups = parts.filter(there).combine_chunks()
    names = [field.name for field in parts.type]
    rows = np.flatnonzero(there.to_numpy())
    return rows if look is None else likely[rows], {name: groups.field(name) for name in names}


def those_with(text: pa.ChunkedArray, pattern: str) -> tuple[NDArray[np.int64], pa.ChunkedArray]:
    """The rows of the strings that have a pattern, and these strings."""
    there = pc.fill_null(pc.match_substring_regex(text, pattern), False)
    return np.flatnonzero(there.to_numpy()), text.filter(there)


def column_with(rows: NDArray[np.int64], values: NDArray[np.float64], size: int) -> pa.ChunkedArray:
    """Numbers in these rows of a column that is null elsewhere."""
    column = np.full(size, np.nan)
    column[rows] = values
    return pa.chunked_array([pa.array(column, from_pandas=True)])
