"""How a column of times becomes features."""

from __future__ import annotations

from typing import Literal, Self, TypeAlias, get_args

import numpy as np
from msgspec.structs import asdict
from numpy.typing import NDArray

from memohop.data.tables._number_columns import Number
from memohop.data.tables.cells import Cells, RejectColumn
from memohop.data.tables.column import Absent, FeatureMatrix

_DAY, _YEAR = 86_400, 365.25  # seconds, days
_WAVES = {"sine": np.sin, "cosine": np.cos}

Cycle: TypeAlias = Literal["hour", "weekday", "day of year"]


class Time(Number, frozen=True, tag="time"):
    r"""A date or time: its seconds, as a number, and the hour, the weekday and the season.

    A time that is the share :math:`p` of its day, week or year has
    :math:`\sin 2 \pi p` and :math:`\cos 2 \pi p` for features, so that the last hour of a day is
    next to the first. A cycle through which no time of the column moves has none.

    Attributes:
        cycles: The cycles that have features.
    """

    cycles: tuple[Cycle, ...]

    @classmethod
    def fit(cls, cells: Cells) -> Self:
        """Any dates and times; if a user asks for a number, their seconds alone."""
        if not cells.are_times:
            raise RejectColumn("its values are no times")
        number, cycles = Number.fit(cells), list(get_args(Cycle))
        if cells.reading is not None:
            cycles = []
        moving = [name for name in cycles if np.ptp(_phase(cells.present, name)) > 0]
        return cls(**asdict(number), cycles=tuple(moving))

    def names(self) -> list[str]:
        """The number, then two features for each cycle."""
        waves = [f"{self.name}: {wave} of {name}" for name in self.cycles for wave in _WAVES]
        return [*super().names(), *waves]

    def describe(self) -> str:
        """What the features are."""
        cycles = [f"the {name} as a sine and a cosine" for name in self.cycles]
        return ", ".join(["one feature for the time in seconds, standardised", *cycles])

    def fill(self, cells: Cells, matrix: FeatureMatrix) -> tuple[Absent, list[str]]:
        """The number, and where on each circle the time is; 0 where it is missing."""
        absent, notes = super().fill(cells, matrix)
        rows = np.flatnonzero(~absent)
        values = self.values(cells)[0][rows]
        features = [wave(_phase(values, name)) for name in self.cycles for wave in _WAVES.values()]
        for feature, numbers in enumerate(features, start=1):
            matrix.put(rows, feature, numbers)
        return absent, notes


def _phase(seconds: NDArray[np.float64], cycle: Cycle) -> NDArray[np.float64]:
    """The angle at which times stand in a cycle; days of weeks and years are counted whole."""
    days = np.floor(seconds / _DAY)
    if cycle == "hour":
        return 2 * np.pi * (seconds / _DAY - days)
    if cycle == "weekday":  # 1970 began on a Thursday
        return 2 * np.pi * ((days + 3) % 7) / 7
    dates = days.astype("datetime64[D]")
    return 2 * np.pi * (dates - dates.astype("datetime64[Y]")).astype(np.float64) / _YEAR
