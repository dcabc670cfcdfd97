"""One training run of a population, and its result."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from memohop.errors import LARGEST_SEED, whole_number
from memohop.training.numbers import Numbers

if TYPE_CHECKING:
    from torch import Tensor


@dataclass(frozen=True)
class _Draw:
    split: int = 0
    seed: int = 0


@dataclass(frozen=True)
class Member(Numbers, _Draw):  # dataclass fields of the last base come first
    """One training run: its data split, its seed and its numbers.

    Attributes:
        split: column of the masks.
        seed: alone decides initial weights and dropout; from 0 to 2**32 - 1, the seeds that
            PyTorch's generator distinguishes.
        lr, weight_decay, lam, dropout, input_dropout: see :class:`Numbers`.

    Example:
        >>> import memohop
        >>> memohop.Member(split=2, seed=1, lr=0.01).lr
        0.01
    """

    def __post_init__(self) -> None:
        whole_number("split", self.split, least=0)
        whole_number("seed", self.seed, least=0, most=LARGEST_SEED)
        self.check_numbers()

    @property
    def setting(self) -> tuple[tuple[str, Any], ...]:
        """Everything but split and seed, for a search to choose from."""
        return tuple(self.numbers.items())


def grid(**axes: Iterable[Any] | Any) -> list[Member]:
    """All combinations, for example ``grid(split=range(10), lam=(0, 0.1), lr=0.05)``.

    The last axis changes fastest; an axis may also be a single value.

    Example:
        >>> import memohop
        >>> len(memohop.grid(split=range(10), lam=(0, 0.1), lr=0.05))
        20
    """
    lists = [list(values) if isinstance(values, Iterable) else [values] for values in axes.values()]
    return [Member(**dict(zip(axes, values, strict=True))) for values in product(*lists)]


@dataclass(frozen=True, eq=False)
class Result:
    """The result of one member, at the epoch that counts (by default the best on validation).

    Attributes:
        member: the run.
        best_epoch: the epoch that counts, from 0; -1 if none was run.
        epochs: how many were run.
        train, val, test: scores at that epoch, see :class:`~memohop.training.metrics.Metric`; NaN
            if the member diverged, ran no epoch, or the score is undefined.
        loss_curve: training loss of each epoch.
        val_curve: validation score of each epoch.
        state: parameters and buffers at that epoch, if requested.
        diverged: whether a loss or an output was not finite in some epoch. Such a member is never
            chosen.
        seconds: its share of the time that its population took, if that was measured.
        val_outputs: outputs for the validation nodes, ``[nodes, outputs]``, each of an epoch that
            other validation nodes have chosen, if requested: their score is not too high.

    Example:
        >>> import memohop
        >>> data = memohop.load("csbm", nodes=60)
        >>> results = memohop.train(data, "mlp", memohop.grid(seed=range(2)), epochs=3)
        >>> results[1].member.seed, results[1].epochs, results[1].loss_curve.shape
        (1, 3, (3,))
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
    val_outputs: Tensor | None = field(default=None, repr=False)
