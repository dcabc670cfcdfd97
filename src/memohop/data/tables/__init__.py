"""Graphs of your own, from tables, NetworkX or arrays."""

from memohop.data.tables.read import from_arrays as from_arrays
from memohop.data.tables.read import from_networkx as from_networkx
from memohop.data.tables.read import read_graph as read_graph
