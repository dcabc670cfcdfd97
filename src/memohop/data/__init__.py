"""Graphs: published ones, your own and synthetic ones, and how they are prepared for training.

:mod:`datasets` lists, downloads and reads the published ones, :mod:`tables` makes a graph from your
own tables, NetworkX graph or arrays, :mod:`prepared` from tables that do not fit in RAM,
:mod:`synthetic` makes graphs on the spot, and :mod:`audit` examines any graph. :mod:`splits`,
:mod:`noise` and :mod:`check` are for all of these. Nothing is imported here: a listing of the
datasets starts quickly.
"""
