"""Published datasets: their list, where they come from, and how their files are read.

:mod:`registry` lists them and needs no PyTorch; :mod:`fetch` downloads and checks the files,
:mod:`readers` reads them, :mod:`latent` has Geom-GCN's neighbours, and :mod:`load` ties it
together. Nothing is imported here: a listing starts quickly.
"""
