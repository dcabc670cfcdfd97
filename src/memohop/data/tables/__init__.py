"""Graphs of your own, from tables, NetworkX or arrays; the readers are imported on first use."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from memohop.data.tables.options import ReadOptions as ReadOptions

if TYPE_CHECKING:
    from memohop.data.tables.objects import from_arrays as from_arrays
    from memohop.data.tables.objects import from_networkx as from_networkx
    from memohop.data.tables.read import read_graph as read_graph

__all__ = ["ReadOptions", "from_arrays", "from_networkx", "read_graph"]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from memohop.data.tables import objects, read

    return getattr(read if name == "read_graph" else objects, name)
