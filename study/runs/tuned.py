"""The results of a search by successive halving in one compact file.

For each cell (a model on a dataset, perhaps one of their variants) the file has the scores of the
setting that validation chose, what was tried on each rung, and what that took. Test scores are
there for the chosen setting alone. Needs no PyTorch.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from pathlib import Path
from statistics import fmean
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from memohop.data.datasets.registry import datasets, describe
from memohop.errors import DataError
from memohop.outputs import write_whole
from study.runs.measured import Measured
from study.runs.results import Count, Name, Score, Source, Value, committed

DIGITS = 9
"""Of a score: means over splits that are equal must be seen to be equal."""

_Scores = tuple[tuple[Score, ...], ...]
_Seconds = Annotated[float, Meta(ge=0)]
_REMEDY = "write it anew with python -m study store export"


class Tried(msgspec.Struct, frozen=True, array_like=True):
    """One rung of a search.

    Attributes:
        settings: The places of the settings in their space.
        val: Their mean validation scores, or ``NO_SCORE`` for one that diverged.
        networks: How many networks were trained here, and not on a rung before.
        epochs: How many epochs these took together,
        seconds: and how long.
    """

    settings: Annotated[tuple[Count, ...], Meta(min_length=1)]
    val: tuple[Score, ...]
    networks: Count
    epochs: Count
    seconds: _Seconds


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
        return self._with_axes(self.model, of_data=False)

    @cached_property
    def column(self) -> str:
        """The name of the dataset with its variant."""
        return self._with_axes(self.dataset, of_data=True)

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

    def _with_axes(self, name: str, *, of_data: bool) -> str:
        texts = (
            f"{key}={value:g}" if isinstance(value, float) else f"{key}={value}"
            for key, value in self.axes.items()
            if (key in _OF_DATA) == of_data
        )
        return " ".join((name, *texts))


_OF_DATA = ("homophily",)  # the variants that are options of a dataset


class Tuned(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """All cells of one protocol of an experiment, and where they were made.

    Attributes:
        unfinished: The datasets that are left out because some of their searches are not done.
    """

    experiment: Name
    protocol: Name
    sources: tuple[Source, ...]
    drawn: dict[Name, Drawn]
    cells: tuple[TunedCell, ...]
    unfinished: tuple[Name, ...] = ()

    @classmethod
    def load(cls, name: str | Path) -> Tuned:
        """The results of an experiment.

        Args:
            name: The id of an experiment whose results come with the package, or the path of a
                file that ``python -m study store export`` wrote.
        """
        path = Path(name) if str(name).endswith(".json") else committed(str(name))
        try:
            found = msgspec.json.decode(path.read_bytes(), type=cls)
        except OSError as error:
            raise DataError(f"cannot read the results {path}: {error.strerror}") from error
        except msgspec.MsgspecError as error:
            raise DataError(
                f"{path} is not a file of a search's results ({error}); {_REMEDY}"
            ) from error
        for number, wrong in found._mistakes():
            raise DataError(f"{path}: cell {number}: {wrong}; {_REMEDY}")
        if not found.cells:
            raise DataError(f"{path} has no cells; {_REMEDY}")
        return found

    def save(self, path: Path) -> None:
        """Write the file, one cell in a line so that differences can be read."""
        raw = msgspec.to_builtins(self)
        cells = b",\n".join(msgspec.json.encode(cell) for cell in raw.pop("cells"))
        write_whole(path, msgspec.json.encode(raw)[:-1] + b',"cells":[\n' + cells + b"\n]}\n")

    @property
    def count(self) -> int:
        """How many cells there are."""
        return len(self.cells)

    @property
    def datasets(self) -> list[str]:
        """The ids of the datasets."""
        return list(dict.fromkeys(cell.dataset for cell in self.cells))

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
        return Measured(
            protocol=self.protocol,
            dataset=cell.column,
            model=cell.row,
            axes=cell.axes,
            setting=self.setting(cell),
            val=100 * fmean(fmean(scores) for scores in cell.val),
            scores={split: 100 * fmean(scores) for split, scores in splits},
            seeds=len(cell.test),
            runs=cell.networks,
            seconds=cell.seconds,
        )

    def _mistakes(self) -> Iterator[tuple[int, str]]:
        """Cells that no export can have written: their number, and what is wrong."""
        known, seen = set(datasets()), set()
        for number, cell in enumerate(self.cells, start=1):
            if cell.dataset not in known:
                yield number, f"there is no dataset named {cell.dataset!r}"
            if (cell.row, cell.column) in seen:
                yield number, "the same cell is there before"
            seen.add((cell.row, cell.column))
            homophily = cell.axes.get("homophily", 0.0)
            if not (isinstance(homophily, int | float) and 0 <= homophily <= 1):
                yield number, f"homophily is {homophily!r}, and not a number from 0 to 1"
            if max(cell.rungs[0].val, default=-1) < 0:
                yield number, "nothing that was tried has a score"
            if cell.source >= len(self.sources):
                yield number, f"source is {cell.source}, and there are {len(self.sources)}"
            if cell.space not in self.drawn:
                yield number, f"there is no space {cell.space!r}"
                continue
            drawn = self.drawn[cell.space]
            if any(len(row) != len(drawn.names) for row in drawn.rows):
                yield number, f"the space {cell.space!r} has rows that do not fit its names"
            if any(place >= len(drawn.rows) for rung in cell.rungs for place in rung.settings):
                yield number, f"a setting is not one of the {len(drawn.rows)} of its space"
            if any(len(rung.settings) != len(rung.val) for rung in cell.rungs):
                yield number, "a rung has not one score for each setting"
            if len(cell.rungs[-1].settings) != 1:
                yield number, "the last rung has more than one setting"
            shapes = {tuple(map(len, scores)) for scores in (cell.val, cell.test)}
            if len(shapes) != 1 or len(set(next(iter(shapes)))) != 1 or not cell.test[0]:
                yield number, "val and test are not tables of one shape"
            elif min(score for part in (cell.val, cell.test) for row in part for score in row) < 0:
                yield number, "the chosen setting has a network without a score"
