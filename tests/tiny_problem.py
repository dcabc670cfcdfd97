"""Small graphs to learn from, for the tests of the portfolio."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from memohop.data.folds import make_masks
from memohop.fit._problem import Problem
from memohop.pyg import Data
from memohop.training.metrics import METRICS
from memohop.training.objective import Classification

QUICK = {"trials": 1, "time": None, "splits": 2}
"""Arguments of estimators."""


def ring(nodes: int) -> np.ndarray:
    """Arcs both ways between each node and the next one."""
    order = np.arange(nodes)
    onward = np.stack([order, np.roll(order, -1)])
    return np.hstack([onward, onward[::-1]])


def tiny_problem(
    nodes: int = 60,
    *,
    classes: int = 2,
    metric: str = "accuracy",
    splits: int = 2,
    seed: int = 0,
    **given: Any,
) -> Problem:
    """Three columns, of which the first tells something of the class, on a ring."""
    generator = np.random.default_rng(seed)
    y = given.pop("y", np.arange(nodes) % classes)
    x = generator.normal(size=(len(y), 3)).astype(np.float32)
    x[:, 0] += y
    parts = {
        "x": x,
        "arcs": ring(len(y)),
        "y": y,
        "objective": Classification(METRICS[metric]),
        "masks": make_masks(y, splits=splits, seed=seed),
    }
    return Problem(**(parts | given))


def tiny_data(**more: np.ndarray) -> Data:
    """The same as a graph of PyG, with other attributes or more of them."""
    problem = tiny_problem()
    arrays = {"x": problem.x, "y": problem.y, "edge_index": problem.arcs} | more
    return Data(**{name: torch.from_numpy(array) for name, array in arrays.items()})
