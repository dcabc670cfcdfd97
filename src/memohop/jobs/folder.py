"""A prepared graph of the user's own, in place of a dataset."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import torch

from memohop.data.arguments import LARGEST_SEED, whole_number
from memohop.data.check import MASKS
from memohop.data.folds import OwnSplit, make_masks
from memohop.data.prepared import open_prepared
from memohop.errors import UsageError, check_choice
from memohop.pyg import Data
from memohop.training.metrics import METRICS, metrics_for

_SPLITS = 5
_OPTIONS = ("splits", "seed", "metric")


def load_folder(folder: str, options: dict[str, Any]) -> Data:
    """A prepared graph in RAM, with masks: those of its own split, or those that ``fit`` deals.

    Args:
        folder: A folder that :func:`memohop.prepare` wrote, with labels.
        options: ``splits`` (5 by default), ``seed`` and ``metric``.
    """
    for name, value in options.items():
        if name not in _OPTIONS:
            raise UsageError(
                f"{name}={value}: a prepared graph has no such option; give splits, seed or metric"
            )
    prepared = open_prepared(folder)
    prepared.check_labelled()
    graph = prepared.in_ram()
    data = graph.data
    splits = whole_number("splits", options.get("splits", _SPLITS), least=1)
    seed = whole_number("seed", options.get("seed", 0), least=0, most=LARGEST_SEED)
    fitting = metrics_for(regression=graph.task == "numbers")
    metric = options.get("metric", fitting[0])
    check_choice("metric", metric, fitting)
    masks = make_masks(
        data.y.numpy(),
        splits=max(splits, 2),
        seed=seed,
        own=OwnSplit.of_sets(graph.masks),
        groups=graph.groups,
        both_classes=METRICS[metric].is_ranking,
    )
    fixed = graph.masks is not None and bool(graph.masks.val.any())
    columns = slice(0, 1 if fixed else splits)
    train, val = masks.train[:, columns], masks.val[:, columns]
    test = np.repeat(masks.test[:, None], train.shape[1], axis=1)
    for name, mask in zip(MASKS, (train, val, test), strict=True):
        data[name] = torch.from_numpy(np.ascontiguousarray(mask))
    data.name, data.metric = Path(folder).name, metric
    return data
