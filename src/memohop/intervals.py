"""How far apart two models are, and how certain that is."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Interval:
    """A mean difference of two scores between 0 and 1, and an interval for the true difference.

    The ends lie between -1 and 1; ``level`` is the share of such intervals that hold the truth.
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
        return self.low <= -1 and self.high >= 1
