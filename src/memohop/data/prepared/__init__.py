"""Graphs that do not fit in RAM: prepared once, out of core, and then read from the disk.

:mod:`_preparing` goes from tables to a folder of arrays; :mod:`_reading` opens it, and takes a part
of the graph for a look. In between, :mod:`_many_files` reads many files as one table, :mod:`_links`
has DuckDB number the nodes and sort the arcs, and :mod:`_columns` encodes the features.
:mod:`_folder` says what is in the folder, and :mod:`_checking` checks it.
"""

from memohop.data.prepared._preparing import prepare as prepare
from memohop.data.prepared._reading import GIVE_WORKERS as GIVE_WORKERS
from memohop.data.prepared._reading import Neighbours as Neighbours
from memohop.data.prepared._reading import Prepared as Prepared
from memohop.data.prepared._reading import open_prepared as open_prepared
from memohop.data.prepared._reading import sample as sample
