"""From the name of a dataset to its graph."""

from __future__ import annotations

import os
from collections.abc import Callable
from inspect import signature
from pathlib import Path
from typing import Any

import torch

from memohop.data import synthetic
from memohop.data.datasets._readers import read_geom_gcn, read_planetoid, read_platonov
from memohop.data.datasets.fetch import locate
from memohop.data.datasets.latent import PublishedNeighbours
from memohop.data.datasets.registry import DatasetInfo, describe
from memohop.data.splits import SPLITS, make_splits
from memohop.errors import UsageError, unknown_name
from memohop.pyg import Data

_MAKERS: dict[str, Callable[..., Data]] = {"csbm": synthetic.csbm, "digits": synthetic.digits}
_FEATURES = ("raw", "row", "scaled")
_SPLIT_OPTIONS = ("splits", "fractions", "seed")


def load(
    name: str,
    *,
    root: str | os.PathLike[str] | None = None,
    features: str = "raw",
    split: str | None = None,
    progress: bool = False,
    **options: Any,
) -> Data:
    """The graph ``name``, as published.

    Args:
        name: One of :func:`memohop.datasets`.
        root: A local folder with the files, instead of a download; see
            :func:`memohop.data.datasets.fetch.locate`.
        features: ``raw`` as published; ``row`` with each row divided by its sum (the sum of the
            absolute values, if some are negative; a row of zeros stays as it is); or ``scaled``
            with all of them divided by the root mean square of those that are not 0.
        split: None for the published splits; ``public`` for Planetoid's split with 20 training
            nodes of each class; ``random`` or ``class-wise`` for new ones.
        progress: Show a progress bar on standard error while downloading.
        **options: For new splits ``splits=10``, ``fractions=(0.48, 0.32, 0.20)`` and ``seed=0``;
            for ``csbm`` and ``digits`` also the arguments of the function in
            :mod:`memohop.data.synthetic`.

    Returns:
        ``x`` (``float32``), ``y`` (``int64``), ``edge_index`` (arcs with the published direction),
        ``train_mask``, ``val_mask`` and ``test_mask`` (boolean, ``[nodes, splits]``), and the
        attributes ``name``, ``metric`` and, if Geom-GCN's authors published them, ``latent``: the
        neighbours in a latent space, which are read when ``geom-gcn`` asks for them.

    Example:
        >>> import memohop
        >>> data = memohop.load("csbm", nodes=100, homophily=0.1, splits=3)  # no files needed
        >>> data.num_nodes, tuple(data.train_mask.shape)
        (100, (100, 3))
    """
    info = describe(name)
    if features not in _FEATURES:
        raise unknown_name("form of features", features, _FEATURES)
    _check(info, split, options)
    if name in _MAKERS:
        data = _MAKERS[name](split=split or "class-wise", **options)
    else:
        folder = locate(info.files, root=root, progress=progress)
        data = _read(info, folder, public=split == "public")
        if split in SPLITS:
            sets = make_splits(split, data.y.numpy(), **options)
            data.train_mask, data.val_mask, data.test_mask = map(torch.from_numpy, sets)
    if features == "row":
        total = data.x.abs().sum(dim=1, keepdim=True)
        data.x = data.x / total.masked_fill(total == 0, 1)
    elif features == "scaled":
        values = data.x[data.x != 0]
        data.x = data.x / values.square().mean(dtype=torch.float64).sqrt().to(data.x.dtype)
    data.name, data.metric = info.id, info.metric
    if info.neighbours:
        data.latent = PublishedNeighbours(name, root)
    return data


def _read(info: DatasetInfo, folder: Path, *, public: bool) -> Data:
    first = folder / info.files[0]
    splits = [folder / path for path in info.files if path.startswith("geom-gcn/splits/")]
    if info.family == "geom-gcn":
        # Actor's file lists the numbers of the words, the others have a column for each word.
        words = info.features if info.id == "actor" else None
        return read_geom_gcn(first.parent, splits, words=words)
    if info.family == "planetoid":
        return read_planetoid(first.parent, info.id, splits=None if public else splits)
    return read_platonov(first, directed=info.directed)


def _check(info: DatasetInfo, split: str | None, options: dict[str, Any]) -> None:
    """Refuse a split that the dataset cannot have, and options that do not go with it."""
    if split not in (None, "public", *SPLITS):
        raise unknown_name("split", split, (*SPLITS, "public"))
    if split == "public" and info.family != "planetoid":
        raise UsageError(
            f"split='public' is for cora, citeseer and pubmed, not for {info.id}; leave it out for "
            "the default splits, or give 'random' or 'class-wise'"
        )
    accepted = list(_SPLIT_OPTIONS) if split in SPLITS else []
    if info.id in _MAKERS:
        accepted = [name for name in signature(_MAKERS[info.id]).parameters if name != "split"]
    for option in options:
        if option not in accepted:
            remedy = f"accepted: {', '.join(accepted) or 'none'}"
            if option in _SPLIT_OPTIONS:
                remedy = "it goes with split='random' or split='class-wise'"
            raise UsageError(
                f"the dataset {info.id} with split={split!r} has no option {option!r}; {remedy}"
            )
