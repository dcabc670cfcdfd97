"""Graphs of your own, from tables, NetworkX or arrays.

Only :class:`ReadOptions` is imported here, for a command line to start quickly; the other names of
this room are imported on first use.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from memohop.data.tables.options import ReadOptions as ReadOptions

if TYPE_CHECKING:
    from memohop.data.tables._objects import from_arrays as from_arrays
    from memohop.data.tables._objects import from_networkx as from_networkx
    from memohop.data.tables.column import Matrix as Matrix
    from memohop.data.tables.columns import ColumnEncoder as ColumnEncoder
    from memohop.data.tables.labels import why_no_classes as why_no_classes
    from memohop.data.tables.links import id_array as id_array
    from memohop.data.tables.options import find_column as find_column
    from memohop.data.tables.read import OwnGraph as OwnGraph
    from memohop.data.tables.read import read_graph as read_graph
    from memohop.data.tables.sources import open_table as open_table

__all__ = ["ReadOptions", "from_arrays", "from_networkx", "read_graph"]  # the public ones
_HOMES = {
    "column": ("Matrix",),
    "columns": ("ColumnEncoder",),
    "labels": ("why_no_classes",),
    "links": ("id_array",),
    "options": ("find_column",),
    "_objects": ("from_arrays", "from_networkx"),
    "read": ("OwnGraph", "read_graph"),
    "sources": ("open_table",),
}


def __getattr__(name: str) -> Any:
    for home, names in _HOMES.items():
        if name in names:
            return getattr(import_module(f"{__name__}.{home}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
