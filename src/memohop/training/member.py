"""One training run of a population, and what came of it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, fields
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from memohop.data.arguments import LARGEST_SEED, real_number, whole_number
from memohop.errors import UsageError

_LARGEST = 1e38  # of single precision, roughly


@dataclass(frozen=True)
class Member:
    """One training run: its data split, its seed and its numbers.

    Attributes:
        split: column of the masks.
        seed: decides initial weights and dropout, together with nothing else; from 0 to
            2**32 - 1, as many as PyTorch's generator tells apart.
        lr: learning rate of Adam.
        weight_decay: L2 penalty of Adam, on all parameters.
        lam: weight of the model's penalty, the paper's lambda.
        dropout: rate on hidden layers; None for the model's own.
        input_dropout: rate on the features; None for the model's own.
    """

    split: int = 0
    seed: int = 0
    lr: float = 0.01
    weight_decay: float = 5e-4
    lam: float = 0.0
    dropout: float | None = None
    input_dropout: float | None = None

    def __post_init__(self) -> None:
        whole_number("split", self.split, least=0)
        whole_number("seed", self.seed, least=0, most=LARGEST_SEED)
        for name in ("lr", "weight_decay", "lam"):
            real_number(name, getattr(self, name), least=0, most=_LARGEST)
        if self.lr == 0:
            raise UsageError("lr=0 would learn nothing; give a number above 0")
        for name in ("dropout", "input_dropout"):
            rate = getattr(self, name)
            if rate is not None and real_number(name, rate, least=0, most=1) == 1:
                raise UsageError(f"{name}={rate} would drop everything; give a number below 1")

    @property
    def setting(self) -> tuple[tuple[str, Any], ...]:
        """Everything but split and seed: what a search chooses between."""
        names = [f.name for f in fields(self) if f.name not in ("split", "seed")]
        return tuple((name, getattr(self, name)) for name in names)


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
