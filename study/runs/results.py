"""The results of an experiment in one compact file: each member's scores, and where they come from.

The package has one file for each experiment, from which tables and figures are made without
training anything. Needs no PyTorch.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from pathlib import Path
from statistics import fmean
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from memohop.data.datasets.registry import datasets
from memohop.errors import DataError, UsageError, unknown_name
from memohop.outputs import write_whole
from memohop.training.choice import first_best
from study import RESULTS

NO_SCORE = -1.0  # the network diverged, or the score cannot be computed
Score = Annotated[float, Meta(ge=NO_SCORE, le=1)]
Count = Annotated[int, Meta(ge=0)]
# Without characters that could hide or reverse the text around it.
Text = Annotated[str, Meta(pattern=r"^[^\x00-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069]*\Z")]
Name = Annotated[Text, Meta(min_length=1, max_length=100)]
Value = bool | int | float | Text


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


class Results(msgspec.Struct, frozen=True):
    """All rows of one experiment, in its order, and where they were made."""

    experiment: str
    sources: tuple[Source, ...]
    rows: tuple[Row, ...]

    @classmethod
    def load(cls, name: str | Path) -> Results:
        """The results of an experiment.

        Args:
            name: The id of an experiment whose results come with the package, or the path of a
                file that ``python -m study store export`` wrote.
        """
        path = Path(name) if str(name).endswith(".json") else committed(str(name))
        remedy = "write it anew with python -m study store export"
        try:
            found = msgspec.json.decode(path.read_bytes(), type=_File)
        except OSError as error:
            raise DataError(f"cannot read the results {path}: {error.strerror}") from error
        except msgspec.MsgspecError as error:
            raise DataError(f"{path} is not a file of results ({error}); {remedy}") from error
        if found.columns != _COLUMNS:
            raise DataError(
                f"{path} has the columns {', '.join(found.columns)}, and this version of memohop "
                f"reads {', '.join(_COLUMNS)}; {remedy}"
            )
        for number, wrong in _mistakes(found):
            raise DataError(f"{path}: row {number}: {wrong}; {remedy}")
        if not found.rows:
            raise DataError(f"{path} has no rows; {remedy}")
        return cls(found.experiment, found.sources, found.rows)

    def cells(self) -> dict[tuple[Any, ...], list[Row]]:
        """The rows of each cell, in the order of the experiment."""
        groups: dict[tuple[Any, ...], list[Row]] = {}
        for row in self.rows:
            groups.setdefault(row.cell, []).append(row)
        return groups

    @property
    def count(self) -> int:
        """How many cells there are."""
        return len(self.cells())

    @property
    def datasets(self) -> list[str]:
        """The ids of the datasets."""
        return list(dict.fromkeys(row.dataset for row in self.rows))

    @property
    def summary(self) -> str:
        """What there is, in words."""
        return f"{self.count} cells, {len(self.rows)} members"

    def save(self, path: Path) -> None:
        """Write the file, one row in a line so that differences can be read."""
        head = {"experiment": self.experiment, "sources": self.sources, "columns": _COLUMNS}
        lines = b",\n".join(msgspec.json.encode(row) for row in self.rows)
        write_whole(path, msgspec.json.encode(head)[:-1] + b',"rows":[\n' + lines + b"\n]}\n")


class _File(msgspec.Struct, forbid_unknown_fields=True):
    experiment: Name
    sources: tuple[Source, ...]
    columns: tuple[str, ...]
    rows: tuple[Row, ...]


def _mistakes(file: _File) -> Iterator[tuple[int, str]]:
    """Rows that no export can have written: their number, and what is wrong."""
    known = set(datasets())
    seen: set[tuple[Any, ...]] = set()
    for number, row in enumerate(file.rows, start=1):
        member = (row.cell, *sorted(row.setting.items()), row.split, row.seed)
        if row.dataset not in known:
            yield number, f"there is no dataset named {row.dataset!r}"
        if row.best_epoch >= row.epochs:
            yield number, f"best_epoch is {row.best_epoch} of {row.epochs} epochs"
        if row.source >= len(file.sources):
            yield number, f"source is {row.source}, and there are {len(file.sources)}"
        if member in seen:
            yield number, "the same member is there before"
        seen.add(member)


def choose(rows: Iterable[Row], *, by: Literal["val", "leak-test"] = "val") -> list[Row]:
    """The rows of the setting whose mean validation score is best; the first of equals.

    A setting with a row without scores is not chosen.

    Args:
        rows: Those of one cell.
        by: ``leak-test`` chooses by the test score, as some published rows did; it estimates
            nothing and is there for comparison alone.
    """
    if by not in ("val", "leak-test"):
        raise UsageError(f"by must be val or leak-test, not {by!r}")
    groups: dict[tuple[Any, ...], list[Row]] = {}
    for row in rows:
        groups.setdefault(tuple(sorted(row.setting.items())), []).append(row)
    if not groups:
        raise UsageError("rows is empty: pass those of one cell")
    score = "val" if by == "val" else "test"

    def mean(group: list[Row]) -> float:
        sound = all(row.has_scores for row in group)
        return fmean(getattr(row, score) for row in group) if sound else math.nan

    chosen = first_best(groups.values(), mean)
    if chosen is None:
        raise DataError(
            f"nothing can be chosen: {next(iter(groups.values()))[0].model} has diverged with each "
            "setting; train it with a lower learning rate"
        )
    return chosen


def committed(name: str) -> Path:
    """The file with the results of an experiment that is part of the study."""
    path = RESULTS / f"{name}.json"
    if not path.is_file():
        known = sorted(found.stem for found in RESULTS.glob("*.json"))
        raise unknown_name("file of results", name, known)
    return path
