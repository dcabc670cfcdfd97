"""Graphs: published ones, your own, and what is done with them before a network sees them.

`datasets` lists, downloads and reads the published ones, `tables` makes a graph of your own tables,
NetworkX graph or arrays, `synthetic` makes graphs on the spot, and `audit` looks any graph over.
`splits`, `noise` and `check` are for all of these. Nothing is imported here, so that a listing of
the datasets starts at once.
"""
