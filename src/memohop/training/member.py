"""One training run of a population, and what came of it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from memohop.data.arguments import LARGEST_SEED, whole_number
from memohop.training.numbers import Numbers

if TYPE_CHECKING:
    from torch import Tensor


@dataclass(frozen=True)
class _Draw:
    split: int = 0
    seed: int = 0


@dataclass(frozen=True)
class Member(Numbers, _Draw):  # of two bases, the fields of the last come first
    """One training run: its data split, its seed and its numbers.

    Attributes:
        split: column of the masks.
        seed: decides initial weights and dropout, together with nothing else; from 0 to
            2**32 - 1, as many as PyTorch's generator tells apart.
        lr, weight_decay, lam, dropout, input_dropout: see :class:`Numbers`.
    """

    def __post_init__(self) -> None:
        whole_number("split", self.split, least=0)
        whole_number("seed", self.seed, least=0, most=LARGEST_SEED)
        self.check_numbers()

    @property
    def setting(self) -> tuple[tuple[str, Any], ...]:
        """Everything but split and seed: what a search chooses between."""
        return tuple(self.numbers.items())


def grid(**axes: Iterable[Any] | Any) -> list[Member]:
    """All combinations, for example ``grid(split=range(10), lam=(0, 0.1), lr=0.05)``.

    The last axis changes fastest; an axis that is one value stays at it.
    """
    lists = [list(values) if isinstance(values, Iterable) else [values] for values in axes.values()]
    return [Member(**dict(zip(axes, values, strict=True))) for values in product(*lists)]


@dataclass(frozen=True, eq=False)
class MemberResult:
    """What one member reached, at the first epoch of its best validation score.

    Attributes:
        member: the run.
        best_epoch: counted from 0.
        epochs: how many were run.
        train, val, test: scores at that epoch, in [0, 1]; NaN where the member diverged, and
            where a score cannot be computed.
        loss_curve: training loss of each epoch.
        val_curve: validation score of each epoch.
        state: parameters and buffers at that epoch, where they were asked for.
        diverged: whether a loss or an output of the network was not finite in some epoch. Such a
            member is never chosen.
        seconds: its share of the time that its population took, where that was measured.
    """

    member: Member
    best_epoch: int
    epochs: int
    train: float
    val: float
    test: float
    loss_curve: NDArray[np.float32] = field(repr=False)
    val_curve: NDArray[np.float32] = field(repr=False)
    state: dict[str, Tensor] | None = field(default=None, repr=False)
    diverged: bool = False
    seconds: float = field(default=0.0, repr=False)
