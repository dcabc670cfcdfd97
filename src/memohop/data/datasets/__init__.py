"""Published datasets: what there is, where it comes from, and how its files are read.

`registry` lists them and needs no PyTorch; `fetch` brings the files here and checks them;
`geom_gcn`, `planetoid` and `platonov` read one family of files each; `latent` has Geom-GCN's
neighbours; `load` ties it together. Nothing is imported here, so that a listing starts at once.
"""
