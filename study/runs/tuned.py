"""The results of a search by successive halving in one compact file.

For each cell (a model on a dataset, perhaps one of their variants) the file has the scores of the
setting that validation chose, what was tried on each rung, and what that took. Test scores are
there for the chosen setting alone. Needs no PyTorch.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from itertools import chain
from statistics import fmean
from typing import Annotated, Any, ClassVar

import msgspec
from msgspec import Meta

from memohop.data.datasets.registry import datasets, describe
from study.runs.results import (
    Count,
    Measured,
    Name,
    SavedResults,
    Score,
    Source,
    Value,
    as_texts,
)

DIGITS = 9
"""Of a score: means over splits that are equal must be seen to be equal."""

_Scores = tuple[tuple[Score, ...], ...]


class Tried(msgspec.Struct, frozen=True, array_like=True):
    """One rung of a search.

    Attributes:
        settings: The places of the settings in their space.
        val: Their mean validation scores, or ``NO_SCORE`` for one that diverged.
        networks: How many networks were trained here, and not on a rung before; these took so many
            epochs and seconds together.
    """

    settings: Annotated[tuple[Count, ...], Meta(min_length=1)]
    val: tuple[Score, ...]
    networks: Count
    epochs: Count
    seconds: Annotated[float, Meta(ge=0)]


class Drawn(msgspec.Struct, frozen=True):
    """The settings that were drawn from a space: the names of what was drawn, and their values."""

    names: tuple[Name, ...]
    rows: tuple[tuple[Value | None, ...], ...]

    @classmethod
    def of(cls, settings: tuple[dict[str, Any], ...]) -> Drawn:
        """The table of these settings."""
        names = tuple(dict.fromkeys(name for setting in settings for name in setting))
        return cls(names, tuple(tuple(map(setting.get, names)) for setting in settings))

    def setting(self, place: int) -> dict[str, Any]:
        """One of the settings."""
        pairs = zip(self.names, self.rows[place], strict=True)
        return {name: value for name, value in pairs if value is not None}


class TunedCell(msgspec.Struct, frozen=True, dict=True):
    """One model on one dataset.

    Attributes:
        axes: Which variant of the dataset or the model it is.
        space: The id of what was drawn, in ``Tuned.drawn``.
        rungs: What was tried, in the order of the rungs.
        val, test: Scores of the chosen setting, for each seed one on each split.
        source: Index in ``Tuned.sources``.
    """

    dataset: Name
    model: Name
    axes: dict[Name, Value]
    space: Name
    rungs: Annotated[tuple[Tried, ...], Meta(min_length=1)]
    val: _Scores
    test: _Scores
    source: Count

    @property
    def chosen(self) -> int:
        """The place of the setting that validation chose: the only one of the last rung."""
        return self.rungs[-1].settings[0]

    @property
    def takes_labels(self) -> bool:
        """Whether the model takes training labels as input."""
        return self.axes.get("labels") == "memory"

    @cached_property
    def row(self) -> str:
        """The name of the model with its variant."""
        of_model = {name: value for name, value in self.axes.items() if name != "homophily"}
        return " ".join((self.model, *map("=".join, as_texts(of_model).items())))

    @cached_property
    def column(self) -> str:
        """The name of the dataset with its variant, which is its homophily."""
        homophily = as_texts(self.axes).get("homophily")
        return self.dataset if homophily is None else f"{self.dataset} homophily={homophily}"

    @property
    def homophily(self) -> float:
        """That of the graph."""
        return float(self.axes.get("homophily", describe(self.dataset).homophily))

    @property
    def networks(self) -> int:
        """How many networks the whole search trained."""
        return sum(rung.networks for rung in self.rungs)

    @property
    def seconds(self) -> float:
        """How long they took."""
        return sum(rung.seconds for rung in self.rungs)


class Tuned(SavedResults, frozen=True, forbid_unknown_fields=True):
    """All cells of one protocol of an experiment, and where they were made.

    Attributes:
        unfinished: The datasets that are left out because some of their searches are not done.
    """

    what: ClassVar[str] = "results of a search"
    lines: ClassVar[str] = "cells"

    experiment: Name
    protocol: Name
    sources: tuple[Source, ...]
    drawn: dict[Name, Drawn]
    cells: tuple[TunedCell, ...]
    unfinished: tuple[Name, ...] = ()

    @property
    def summary(self) -> str:
        """What there is, in words."""
        networks = sum(cell.networks for cell in self.cells)
        return f"{len(self.cells)} cells, for which {networks} networks were trained"

    def setting(self, cell: TunedCell) -> dict[str, Any]:
        """The setting that validation chose."""
        return self.drawn[cell.space].setting(cell.chosen)

    def measured(self, cell: TunedCell) -> Measured:
        """The scores of a cell, as tables show them."""
        splits = enumerate(zip(*cell.test, strict=True))
        name = (self.protocol, cell.column, cell.row, cell.axes)
        return Measured(
            *name,
            setting=self.setting(cell),
            val=100 * fmean(fmean(scores) for scores in cell.val),
            scores={split: 100 * fmean(scores) for split, scores in splits},
            seeds=len(cell.test),
            runs=cell.networks,
            seconds=cell.seconds,
        )

    def mistakes(self) -> Iterator[str]:
        """What no export can have written."""
        if not self.cells:
            yield "it has no cells"
        known, seen = set(datasets()), set()
        for number, cell in enumerate(self.cells, start=1):
            first, drawn = cell.rungs[0], self.drawn.get(cell.space, Drawn((), ()))
            homophily = cell.axes.get("homophily", 0.0)
            is_share = isinstance(homophily, int | float) and 0 <= homophily <= 1
            widths = {len(scores) for part in (cell.val, cell.test) for scores in part}
            is_table = len(cell.val) == len(cell.test) and len(widths) == 1 and widths != {0}
            most, name = max(max(rung.settings) for rung in cell.rungs), (cell.row, cell.column)
            unlike = [rung for rung in cell.rungs if len(rung.settings) != len(rung.val)]
            wrong = {
                f"there is no dataset named {cell.dataset!r}": cell.dataset not in known,
                "the same cell is there before": name in seen,
                f"homophily is {homophily!r}, and not a number from 0 to 1": not is_share,
                "nothing that was tried has a score": max(first.val, default=-1) < 0,
                f"source is {cell.source}, and there are {len(self.sources)}": (
                    cell.source >= len(self.sources)
                ),
                f"there is no space {cell.space!r}": cell.space not in self.drawn,
                f"the space {cell.space!r} has rows that do not fit its names": any(
                    len(row) != len(drawn.names) for row in drawn.rows
                ),
                f"a setting is not one of the {len(drawn.rows)} of its space": (
                    most >= len(drawn.rows)
                ),
                "a rung has not one score for each setting": bool(unlike),
                "the last rung has more than one setting": len(cell.rungs[-1].settings) != 1,
                "val and test are not tables of one shape": not is_table,
                "the chosen setting has a network without a score": (
                    min(chain(*cell.val, *cell.test), default=-1) < 0
                ),
            }
            yield from (f"cell {number}: {what}" for what, is_wrong in wrong.items() if is_wrong)
            seen.add(name)
