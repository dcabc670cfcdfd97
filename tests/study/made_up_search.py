"""Made-up results of a search by halving, drawn from a seed, for the tests of the fair table."""

from __future__ import annotations

import numpy as np
import pytest

from made_up_results import SOURCE
from study.runs.tuned import Drawn, Tried, Tuned, TunedCell
from study.statistics.leaderboard import BACKBONES

OTHERS = ("gcn+jk", "gcn-res", "mlp", "h2gcn")
GRAPHS = ("texas", "actor", "cora", "minesweeper", "squirrel", "cornell-legacy")
HOMOPHILIES = (0.05, 0.8)
SPLITS, SEEDS = 10, 3
VARIANTS = ({}, {"labels": "memory"})


def models():
    """Every backbone with some plug-ins, and some others: their ids and variants."""
    for backbone in BACKBONES:
        yield backbone, {}
        yield from ((f"{backbone}+mmp", variant) for variant in VARIANTS)
    yield from ((name, {}) for name in OTHERS)


def graphs(names=GRAPHS):
    yield from ((name, {}) for name in names)
    yield from (("csbm", {"homophily": homophily}) for homophily in HOMOPHILIES)


def space(rng):
    numbers = 10 ** rng.uniform(-3, -1, 8)
    rows = [(float(f"{lr:.3g}"), [64, 128][i // 4], i % 2 == 0) for i, lr in enumerate(numbers)]
    return Drawn(("lr", "hidden_channels", "residual"), tuple(rows))


def rung(rng, places, level, networks):
    val = np.clip(level + rng.normal(0, 0.02, len(places)), 0, 1).round(6)
    seconds = networks * float(2.0 ** rng.integers(-6, 3))
    return Tried(tuple(places), tuple(val.tolist()), networks, networks * 50, seconds)


def made_up_search(names=GRAPHS, seed=0):
    """Memory is worth eight points on the csbm of homophily 0.05, and next to nothing elsewhere."""
    rng = np.random.default_rng(seed)
    drawn = {"a": space(rng), "b": space(rng)}
    cells = []
    for dataset, of_data in graphs(names):
        hardness = rng.normal(0, 0.02, SPLITS)  # of each split, the same for all models
        for model, of_model in models():
            level = 0.6 + rng.normal(0, 0.01) + 0.005 * ("mmp" in model)
            level += 0.08 * ("mmp" in model and of_data.get("homophily") == 0.05)
            test = level + hardness + rng.normal(0, 0.01, (SEEDS, SPLITS))
            first = rung(rng, range(8), level, 24)
            order = np.argsort(-np.array(first.val), kind="stable")
            rungs = (
                first,
                rung(rng, order[:4].tolist(), level, 12),
                rung(rng, order[:1].tolist(), level, 20),
            )
            both = [tuple(map(tuple, part.round(6).tolist())) for part in (test + 0.01, test)]
            axes = of_data | of_model
            cells.append(TunedCell(dataset, model, axes, "ab"[len(cells) % 2], rungs, *both, 0))
    return Tuned("fair", "fair", (SOURCE,), drawn, tuple(cells))


@pytest.fixture(scope="session")
def tuned():
    return made_up_search()
