"""Published datasets: their list, where they come from, and how their files are read.

:mod:`registry` lists them and needs no PyTorch; :mod:`fetch` downloads and checks the files, and
:mod:`counts` checks what a file without a known digest holds;
:mod:`geom_gcn`, :mod:`planetoid` and :mod:`platonov` read one family of files each; :mod:`latent`
has Geom-GCN's neighbours; :mod:`load` ties it together. Nothing is imported here: a listing starts
quickly.
"""
