r"""What the fair table teaches: the settings that a search on a new graph should begin with.

All models were tried with the same settings on every dataset, so that the first rung of the search
is a table of validation scores: settings :math:`s` by datasets :math:`d`. With

.. math::
    r(s, d) = \frac{\max_{s'} v(s', d) - v(s, d)}
        {\max_{s'} v(s', d) - \mathrm{median}_{s'} v(s', d)}

the regret of a setting, cut off at 1, a list :math:`S` of settings is good if
:math:`\sum_d \min_{s \in S} r(s, d)` is small: each kind of graph finds one in it that suits it.
The list is made greedily, each setting being the one that lowers the sum most. Only data without a
flaw teach.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec
import numpy as np
from numpy.typing import NDArray

from memohop.data.datasets.registry import describe
from memohop.fit import Setting
from memohop.training import NUMBERS
from study.runs.results import grouped
from study.runs.tuned import Tuned, TunedCell

COUNT = 4
"""How many settings of each model a search begins with."""

_Key = tuple[tuple[tuple[str, object], ...], int]  # a variant of a model, and a place in its space


class FirstSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The settings to begin with, those of each model together, the most useful one first.

    Attributes:
        every: Those that all datasets give, with which ``fit`` begins.
        without: By dataset, those that the other datasets give: no dataset may be judged by a
            search whose start has seen it.
    """

    experiment: str
    every: list[Setting]
    without: dict[str, list[Setting]]


def first_settings(tuned: Tuned, models: Iterable[str], *, count: int = COUNT) -> FirstSettings:
    """The first settings of some models, from all datasets and without each of them.

    There are so many of each model; models without results are left out.
    """
    honest = [cell for cell in tuned.cells if not describe(cell.dataset).flawed]
    wanted = list(models)

    def of(cells: list[TunedCell]) -> list[Setting]:
        by_model = grouped(cells, lambda cell: cell.model)
        there = (by_model[model] for model in wanted if model in by_model)
        return [setting for own in there for setting in _best(tuned, own, count)]

    names = dict.fromkeys(cell.dataset for cell in honest)
    without = {name: of([cell for cell in honest if cell.dataset != name]) for name in names}
    return FirstSettings(tuned.experiment, of(honest), without)


def _best(tuned: Tuned, cells: list[TunedCell], count: int) -> Iterable[Setting]:
    """The settings of one model that together suit all its graphs."""
    keys, regrets = _regrets(cells)
    left = np.ones(regrets.shape[1])  # the least regret of each graph so far
    for _ in range(min(count, len(keys))):
        sums = np.minimum(regrets, left).sum(axis=1)
        best = int(sums.argmin())
        if sums[best] >= left.sum():
            return
        left = np.minimum(regrets[best], left)
        yield _setting(tuned, cells, keys[best])


def _regrets(cells: list[TunedCell]) -> tuple[list[_Key], NDArray[np.float64]]:
    """The settings of all variants of a model, and their regret on each graph."""
    columns = list(dict.fromkeys(cell.column for cell in cells))
    scores: dict[_Key, NDArray[np.float64]] = {}
    for cell in cells:
        for place, val in zip(cell.rungs[0].settings, cell.rungs[0].val, strict=True):
            row = scores.setdefault((_variant(cell), place), np.full(len(columns), -np.inf))
            row[columns.index(cell.column)] = val if val >= 0 else -np.inf
    table = np.stack(list(scores.values()))
    best, middle = table.max(axis=0), np.nanmedian(np.where(table >= 0, table, np.nan), axis=0)
    scale = np.where(best > middle, best - middle, 1.0)
    return list(scores), np.minimum((best - table) / scale, 1.0)


def _variant(cell: TunedCell) -> tuple[tuple[str, object], ...]:
    return tuple(sorted((k, v) for k, v in cell.axes.items() if k != "homophily"))


def _setting(tuned: Tuned, cells: list[TunedCell], key: _Key) -> Setting:
    """The setting, from a cell on a directed graph if there is one: it has a direction too."""
    variant, place = key
    own = [cell for cell in cells if _variant(cell) == variant]
    cell = next((cell for cell in own if describe(cell.dataset).directed), own[0])
    setting = tuned.drawn[cell.space].setting(place)
    numbers = {name: float(setting.pop(name)) for name in NUMBERS if name in setting}
    return Setting(cell.model, setting | dict(variant), {"lam": 0.0} | numbers)
