"""The members of a population: their numbers, their results, and the choice between settings.

Does not import PyTorch: commands are parsed without it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from itertools import product
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from memohop.errors import LARGEST_SEED, UsageError, real_number, whole_number

if TYPE_CHECKING:
    from torch import Tensor

_Candidate = TypeVar("_Candidate")
_LARGEST = 1e38  # of single precision, roughly


@dataclass(frozen=True)
class Numbers:
    r"""The numbers that a search may vary, apart from options of the model.

    Attributes:
        lr: learning rate of the optimiser.
        weight_decay: L2 penalty of the optimiser.
        lam: weight of the model's penalty, the paper's :math:`\lambda`.
        dropout: rate on hidden layers; None for the model's own.
        input_dropout: rate on the features; None for the model's own.
    """

    lr: float = 0.01
    weight_decay: float = field(default=5e-4, metadata={"words": "weight decay"})
    lam: float = field(default=0.0, metadata={"words": "lambda"})
    dropout: float | None = field(default=None, metadata={"role": "hidden"})
    input_dropout: float | None = field(
        default=None, metadata={"words": "input dropout", "role": "input"}
    )

    @property
    def numbers(self) -> dict[str, Any]:
        """The numbers by their names."""
        return {name: getattr(self, name) for name in NUMBERS}


NUMBERS = {number.name: number.metadata.get("words", number.name) for number in fields(Numbers)}
"""The numbers, and the name of each in a table."""

RATES = {rate.name: rate.metadata["role"] for rate in fields(Numbers) if "role" in rate.metadata}
"""The dropout rates, and the role of the layers to which each applies."""


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
        for name, value in self.numbers.items():
            if name not in RATES:
                real_number(name, value, least=0, most=_LARGEST)
            elif value is not None and real_number(name, value, least=0, most=1) == 1:
                raise UsageError(f"{name}={value} would drop everything; give a number below 1")
        if self.lr == 0:
            raise UsageError("lr=0 would learn nothing; give a number above 0")

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


def first_best(
    candidates: Iterable[_Candidate], score: Callable[[_Candidate], float]
) -> _Candidate | None:
    """The rule of every choice: the candidate with the highest score, the first among equals.

    A candidate without a score (NaN), such as one that diverged, is never chosen; None if no
    candidate has one.
    """
    scored = [(candidate, score(candidate)) for candidate in candidates]
    sound = [pair for pair in scored if not math.isnan(pair[1])]
    return max(sound, key=lambda pair: pair[1])[0] if sound else None


@dataclass(frozen=True)
class Selection:
    """A setting with its results and their mean scores.

    Attributes:
        setting: learning rate, lambda and so on, shared by the results.
        results: one per split and seed.
        val: mean validation score; NaN if a result diverged, as are the next two.
        mean: mean test score.
        std: sample standard deviation of the test score (ddof=1); 0 for a single result.

    Example:
        >>> import memohop
        >>> data = memohop.load("csbm", nodes=60)
        >>> members = memohop.grid(split=range(3), lr=(0.01, 0.1))
        >>> chosen = memohop.select(memohop.train(data, "mlp", members, epochs=3))
        >>> len(chosen.results), chosen.setting["lr"] in (0.01, 0.1)
        (3, True)
    """

    setting: dict[str, Any]
    results: tuple[Result, ...]
    val: float
    mean: float
    std: float

    @property
    def diverged(self) -> int:
        """How many of the results diverged."""
        return sum(result.diverged for result in self.results)


def select(results: Sequence[Result]) -> Selection:
    """The setting with the best mean validation score, among those of which no result diverged.

    Example:
        >>> import memohop
        >>> data = memohop.load("csbm", nodes=60)
        >>> members = memohop.grid(split=range(2), lr=(0.01, 1000.0))
        >>> results = memohop.train(data, "mlp", members, epochs=20)
        >>> memohop.select(results).setting["lr"]
        0.01
    """
    return best(selections_of((dict(result.member.setting), result) for result in results))


def selections_of(results: Iterable[tuple[Mapping[str, Any], Result]]) -> list[Selection]:
    """Each setting with its results, in order of first appearance."""
    groups: dict[tuple[tuple[str, Any], ...], list[Result]] = {}
    for setting, result in results:
        groups.setdefault(tuple(setting.items()), []).append(result)
    return [_summarise(dict(setting), group) for setting, group in groups.items()]


def best(selections: Sequence[Selection]) -> Selection:
    """The first of those with the best mean validation score, leaving out diverged ones."""
    chosen = first_best(selections, lambda selection: selection.val)
    if chosen is None:
        first = selections[0]
        raise UsageError(
            f"nothing can be chosen: each of the {len(selections)} setting(s) has a run that "
            f"diverged (the first one, lr={first.setting.get('lr')}, has {first.diverged} of "
            f"{len(first.results)}); give a lower lr, or features of a smaller scale"
        )
    return chosen


def _summarise(setting: dict[str, Any], results: Sequence[Result]) -> Selection:
    val = np.array([result.val for result in results])
    test = np.array([result.test for result in results])
    std = float(test.std(ddof=1)) if len(test) > 1 else 0.0
    return Selection(setting, tuple(results), float(val.mean()), float(test.mean()), std)
