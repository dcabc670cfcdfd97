"""Datasets: what there is, where it comes from, and how it becomes a graph.

`registry` lists the datasets and needs no PyTorch; `fetch` brings the files here and checks
them; `geom_gcn`, `planetoid` and `platonov` read one family of files each; `synthetic` makes
graphs on the spot; `load` ties it together. `tables` makes a graph of your own tables, NetworkX
graph or arrays; `splits` and `check` are for these too. `audit` looks any graph over.
Nothing is imported here, so that a listing of the datasets starts at once.
"""
