"""Pairs of columns that are longitude and latitude, by their names and values."""

from __future__ import annotations

import re
from collections.abc import Mapping

from memohop.data.tables._number_columns import Number
from memohop.data.tables.cells import Cells
from memohop.data.tables.column import Column

_NAMES = {
    **dict.fromkeys(("longitude", "long", "lon", "lng"), "longitude"),
    **dict.fromkeys(("latitude", "lat"), "latitude"),
}
_LARGEST = {"longitude": 180.0, "latitude": 90.0}
_WORD = re.compile(r"[A-Z]?[a-z]+|[A-Z]+|[0-9]+")


def coordinate(column: Column, cells: Cells) -> tuple[str, ...] | None:
    """The words in the name of a longitude or latitude, which one of them says; else None.

    Values are degrees, from -180 to 180 and from -90 to 90.
    """
    words = [word.lower() for word in _WORD.findall(column.name)]
    words = [_NAMES.get(word, word) for word in words]
    which = [word for word in words if word in _LARGEST]
    if len(which) != 1 or type(column) is not Number or column.log_scale is not None:
        return None
    return tuple(words) if abs(cells.present).max() <= _LARGEST[which[0]] else None


def pairs_of(coordinates: Mapping[tuple[str, ...], str]) -> tuple[tuple[str, str], ...]:
    """Columns whose names differ by longitude and latitude alone: ``home_lon`` and ``home_lat``."""
    pairs = []
    for words, name in coordinates.items():
        other = tuple("latitude" if word == "longitude" else word for word in words)
        if other != words and other in coordinates:
            pairs.append((name, coordinates[other]))
    return tuple(pairs)
