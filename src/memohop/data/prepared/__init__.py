"""Graphs that do not fit in RAM: prepared once, out of core, and then read from the disk.

:mod:`preparing` goes from tables to a folder of arrays; :mod:`reading` opens it. In between,
:mod:`many_files` reads many files as one table, :mod:`ids`
has DuckDB number the nodes, :mod:`rows` sorts the arcs, and :mod:`columns` encodes the features.
:mod:`folder` keeps the files, :mod:`checking` checks what is in them, and :mod:`sample` takes a
part of the graph for a look.
"""

from memohop.data.prepared.preparing import prepare as prepare
from memohop.data.prepared.reading import GIVE_WORKERS as GIVE_WORKERS
from memohop.data.prepared.reading import Prepared as Prepared
from memohop.data.prepared.reading import Rows as Rows
from memohop.data.prepared.reading import open_prepared as open_prepared
