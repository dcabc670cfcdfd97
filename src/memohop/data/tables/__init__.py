"""Graphs of your own, from tables, NetworkX or arrays."""

from memohop.data.read_options import ReadOptions as ReadOptions
from memohop.data.read_options import find_column as find_column
from memohop.data.tables._objects import from_arrays as from_arrays
from memohop.data.tables._objects import from_networkx as from_networkx
from memohop.data.tables.columns import ColumnEncoder as ColumnEncoder
from memohop.data.tables.labels import why_no_classes as why_no_classes
from memohop.data.tables.read import OwnGraph as OwnGraph
from memohop.data.tables.read import read_graph as read_graph
from memohop.data.tables.sources import open_table as open_table

__all__ = ["ReadOptions", "from_arrays", "from_networkx", "read_graph"]  # the public ones
