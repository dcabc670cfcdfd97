"""The results of an experiment in one compact file: each member's scores, and where they come from.

The package has one file for each experiment, from which tables and figures are made without
training anything. Needs no PyTorch.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import Annotated, Any, ClassVar, Self, TypeVar

import msgspec
import numpy as np
from msgspec import Meta

from memohop.data.datasets.registry import datasets
from memohop.errors import DataError, unknown_name
from memohop.outputs import write_whole
from memohop.training.member import first_best
from study import RESULTS

NO_SCORE = -1.0  # the network diverged, or the score cannot be computed
Score = Annotated[float, Meta(ge=NO_SCORE, le=1)]
Count = Annotated[int, Meta(ge=0)]
# Without characters that could hide or reverse the text around it.
Text = Annotated[str, Meta(pattern=r"^[^\x00-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069]*\Z")]
Name = Annotated[Text, Meta(min_length=1, max_length=100)]
Value = bool | int | float | Text

_Item = TypeVar("_Item")
_Key = TypeVar("_Key")


class Row(msgspec.Struct, frozen=True, array_like=True):
    """One member: a network that was trained.

    Attributes:
        axes: What the experiment varies, for example ``{"noise": 25, "draw": 0}``.
        setting: What validation chooses, for example ``{"lam": 0.1}``.
        val, test: Scores at the best epoch, in [0, 1], or ``NO_SCORE``.
        best_epoch: That epoch, counted from 0, of the ``epochs`` that were run.
        seconds: The member's share of the time that its population took.
        source: Index in ``Results.sources``.
    """

    protocol: Name
    dataset: Name
    model: Name
    axes: dict[Name, Value]
    setting: dict[Name, Value]
    split: Count
    seed: Count
    val: Score
    test: Score
    best_epoch: Count
    epochs: Annotated[int, Meta(ge=1)]
    seconds: Annotated[float, Meta(ge=0)]
    source: Count

    @property
    def cell(self) -> tuple[Any, ...]:
        """What identifies the cell: validation chooses between the rows of one cell."""
        return self.protocol, self.dataset, self.model, *sorted(self.axes.items())

    @property
    def has_scores(self) -> bool:
        """Whether the row may be chosen."""
        return min(self.val, self.test) >= 0


_COLUMNS = Row.__struct_fields__


class Source(msgspec.Struct, frozen=True):
    """Where rows were made: versions of the packages that matter, processor or GPU, and commit.

    ``datasets`` has the digest of each dataset's files, empty if that of a file is not known.
    """

    versions: dict[Name, Text]
    device: Text
    commit: Text | None = None
    datasets: dict[Name, Text] = {}


class SavedResults(msgspec.Struct, frozen=True):
    """What a file of results has that a command wrote.

    Attributes:
        lines: The list of which each item has a line in the file, so that differences can be read.
    """

    what: ClassVar[str] = "results"
    remedy: ClassVar[str] = "write it anew with python -m study store export"
    lines: ClassVar[str]

    @classmethod
    def load(cls, name: str | Path) -> Self:
        """The file of that path, or the committed one of an experiment of that id."""
        path = Path(name)
        if path.suffix != ".json":
            path = RESULTS / f"{name}.json"
            if not path.is_file():
                known = sorted(path.stem for path in RESULTS.glob("*.json"))
                raise unknown_name("file of results", str(name), known)
        try:
            results = msgspec.json.decode(path.read_bytes(), type=cls)
        except OSError as error:
            raise DataError(f"cannot read the {cls.what} {path}: {error.strerror}") from error
        except msgspec.MsgspecError as error:
            raise DataError(
                f"{path} is not a file of {cls.what} ({error}); {cls.remedy}"
            ) from error
        for mistake in results.mistakes():
            raise DataError(f"{path}: {mistake}; {cls.remedy}")
        return results

    def mistakes(self) -> Iterator[str]:
        """What is wrong with it although it has the form of such a file."""
        yield from ()

    @property
    def datasets(self) -> list[str]:
        """The ids of the datasets."""
        return list(dict.fromkeys(item.dataset for item in getattr(self, self.lines)))

    def save(self, path: Path) -> None:
        """Write the file, whole or not at all."""
        head = msgspec.structs.asdict(self)
        lines = b",\n".join(map(msgspec.json.encode, head.pop(self.lines)))
        start = msgspec.json.encode(head)[:-1] + f',"{self.lines}":[\n'.encode()
        write_whole(path, start + lines + b"\n]}\n")


class Results(SavedResults, frozen=True, forbid_unknown_fields=True):
    """All rows of one experiment, in its order, and where they were made."""

    lines: ClassVar[str] = "rows"

    experiment: Name
    sources: tuple[Source, ...]
    rows: tuple[Row, ...]
    columns: tuple[str, ...] = _COLUMNS

    def mistakes(self) -> Iterator[str]:
        """What no export can have written."""
        if self.columns != _COLUMNS:
            yield (
                f"it has the columns {', '.join(self.columns)}, and this version of memohop reads "
                f"{', '.join(_COLUMNS)}"
            )
        if not self.rows:
            yield "it has no rows"
        known = set(datasets())
        seen: set[tuple[Any, ...]] = set()
        for number, row in enumerate(self.rows, start=1):
            member = (row.cell, *sorted(row.setting.items()), row.split, row.seed)
            if row.dataset not in known:
                yield f"row {number}: there is no dataset named {row.dataset!r}"
            if row.best_epoch >= row.epochs:
                yield f"row {number}: best_epoch is {row.best_epoch} of {row.epochs} epochs"
            if row.source >= len(self.sources):
                yield f"row {number}: source is {row.source}, and there are {len(self.sources)}"
            if member in seen:
                yield f"row {number}: the same member is there before"
            seen.add(member)

    def cells(self) -> dict[tuple[Any, ...], list[Row]]:
        """The rows of each cell, in the order of the experiment."""
        return grouped(self.rows, lambda row: row.cell)

    @property
    def summary(self) -> str:
        """What there is, in words."""
        return f"{len(self.cells())} cells, {len(self.rows)} members"


def grouped(items: Iterable[_Item], key: Callable[[_Item], _Key]) -> dict[_Key, list[_Item]]:
    """The items of each key, in the order in which they come."""
    groups: dict[_Key, list[_Item]] = {}
    for item in items:
        groups.setdefault(key(item), []).append(item)
    return groups


class MeanAndStd:
    """Mean and standard deviation of test scores in percent."""

    scores: Mapping[Any, float]

    @property
    def mean(self) -> float:
        """Mean test score."""
        return fmean(self.scores.values())

    @property
    def std(self) -> float | None:
        """Sample standard deviation of the test score (ddof=1); a single score has none."""
        return float(np.std([*self.scores.values()], ddof=1)) if len(self.scores) > 1 else None


@dataclass(frozen=True)
class Measured(MeanAndStd):
    """One model on one dataset, with the setting that validation chose; scores in percent.

    Attributes:
        axes: What the experiment varies.
        val: Mean validation score of that setting over splits and seeds.
        scores: Its test score on each split, the mean over seeds.
        seeds: How many seeds each split has.
        runs: How many networks were trained for the choice, in so many seconds.
    """

    protocol: str
    dataset: str
    model: str
    axes: Mapping[str, Any]
    setting: Mapping[str, Any]
    val: float
    scores: Mapping[int, float]
    seeds: int
    runs: int
    seconds: float


def measured(results: Results) -> list[Measured]:
    """Each cell of the experiment, in its order, with the setting that validation chose.

    A cell that has diverged with each setting is left out: nothing can be chosen.
    """
    cells = []
    for rows in results.cells().values():
        with suppress(DataError):
            chosen = choose(rows)
            first, by_split = chosen[0], grouped(chosen, lambda row: row.split)
            name = (first.protocol, first.dataset, first.model, first.axes)
            cell = Measured(
                *name,
                setting=first.setting,
                val=100 * fmean(row.val for row in chosen),
                scores={n: fmean(100 * row.test for row in by_split[n]) for n in sorted(by_split)},
                seeds=len({row.seed for row in chosen}),
                runs=len(rows),
                seconds=sum(row.seconds for row in rows),
            )
            cells.append(cell)
    return cells


def as_texts(values: Mapping[str, Any]) -> dict[str, str]:
    """Values as people type them, such as those of a cell's axes."""
    return {k: f"{v:g}" if isinstance(v, float) else str(v) for k, v in values.items()}


def choose(rows: Sequence[Row]) -> list[Row]:
    """Of a cell the rows of the setting whose mean validation score is best; the first of equals.

    A setting with a row without scores is not chosen.
    """

    def mean(group: list[Row]) -> float:
        sound = all(row.has_scores for row in group)
        return fmean(row.val for row in group) if sound else math.nan

    by_setting = grouped(rows, lambda row: tuple(sorted(row.setting.items())))
    chosen = first_best(by_setting.values(), mean)
    if chosen is None:
        raise DataError(
            f"nothing can be chosen: {rows[0].model} has diverged with each setting; train it "
            "with a lower learning rate"
        )
    return chosen
