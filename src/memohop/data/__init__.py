"""Datasets: what there is, where it comes from, and how it becomes a graph.

`registry` lists the datasets and needs no PyTorch; `fetch` brings the files here and checks
them; `geom_gcn`, `planetoid` and `platonov` read one family of files each; `synthetic` makes
graphs on the spot; `splits` and `check` are for graphs of your own too; `load` ties it together.
Nothing is imported here, so that a listing of the datasets starts at once.
"""
