"""How far apart two models are, and how certain that is."""

from __future__ import annotations

import math
from dataclasses import dataclass


@dataclass(frozen=True)
class Interval:
    """A score or a difference of two, and an interval for the truth.

    ``level`` is the share of such intervals that hold it. If nothing is known of a difference, the
    ends are -1 and 1 for scores between 0 and 1, and infinite for others.
    """

    mean: float
    low: float
    high: float
    level: float

    @property
    def above_zero(self) -> bool:
        """Whether the whole interval is above 0."""
        return self.low > 0

    @property
    def below_zero(self) -> bool:
        """Whether the whole interval is below 0."""
        return self.high < 0

    @property
    def says_nothing(self) -> bool:
        """Whether the interval holds every possible difference."""
        return (self.low, self.high) in ((-1, 1), (-math.inf, math.inf))
