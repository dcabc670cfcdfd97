"""A prepared graph of the user's own, in place of a dataset."""

from __future__ import annotations

from copy import copy
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import torch

from memohop.data.check import MASKS
from memohop.data.folds import make_masks
from memohop.data.prepared import GIVE_WORKERS, open_prepared
from memohop.errors import LARGEST_SEED, UsageError, check_choice, whole_number
from memohop.pyg import Data
from memohop.training.metrics import METRICS, metrics_for

_SPLITS = 5
_OPTIONS = ("splits", "seed", "metric")


def load_folder(folder: str, options: dict[str, Any]) -> Data:
    """Targets of a prepared graph, and masks: those of its own split, or those that ``fit`` deals.

    Features and arcs stay in the folder, see :func:`in_ram`. Options are ``splits``, 5 by default,
    ``seed`` and ``metric``.
    """
    for name, value in options.items():
        if name not in _OPTIONS:
            raise UsageError(
                f"{name}={value}: a prepared graph has no such option; give splits, seed or metric"
            )
    graph = open_prepared(folder)
    graph.check_labelled()
    splits = whole_number("splits", options.get("splits", _SPLITS), least=1)
    seed = whole_number("seed", options.get("seed", 0), least=0, most=LARGEST_SEED)
    fitting = metrics_for(regression=graph.task == "numbers")
    metric = options.get("metric", fitting[0])
    check_choice("metric", metric, fitting)
    y = np.array(graph.y)
    masks = make_masks(
        y,
        splits=max(splits, 2),
        seed=seed,
        own=graph.masks,
        groups=graph.groups,
        both_classes=METRICS[metric].is_ranking,
    )
    fixed = graph.masks is not None and bool(graph.masks.val.any())
    columns = slice(0, 1 if fixed else splits)
    train, val = masks.train[:, columns], masks.val[:, columns]
    test = np.repeat(masks.test[:, None], train.shape[1], axis=1)
    absent = torch.empty(graph.nodes, graph.features, device="meta")  # a shape without values
    data = Data(x=absent, y=torch.from_numpy(y))
    for name, mask in zip(MASKS, (train, val, test), strict=True):
        data[name] = torch.from_numpy(np.ascontiguousarray(mask))
    data.name, data.metric = Path(folder).name, metric
    data.folder = folder
    return data


def in_ram(data: Data) -> Data:
    """The same data with features and arcs; a ``DataError`` if these do not fit in RAM."""
    data, graph = copy(data), _graph(data.folder)
    for name in ("x", "edge_index", "edge_weight"):
        if name in graph:
            data[name] = graph[name]
    del data.folder
    return data


@lru_cache(maxsize=1)
def _graph(folder: str) -> Data:
    return open_prepared(folder, check=False).in_ram(GIVE_WORKERS).data
