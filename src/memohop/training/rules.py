"""The rules of training in which papers differ, apart from the members' numbers."""

from __future__ import annotations

from dataclasses import dataclass, fields
from functools import cache
from typing import Literal, get_args, get_type_hints

from memohop.errors import UsageError


@dataclass(frozen=True)
class Rules:
    """Which optimiser, when to stop, and which epoch counts.

    The defaults are those of this library. Published tables were made with the others: a row is
    reproduced only under its own rules.

    Attributes:
        optimiser: ``"adam"``, ``"adamw"`` (decay apart from the gradient) or ``"sgd"``
            (without momentum).
        schedule: the learning rate stays ``"constant"``; falls by ``schedule_amount`` every
            ``schedule_epochs`` (``"steps"``, MixHop); or is multiplied by ``schedule_amount``
            whenever the validation loss has not fallen for more than ``schedule_epochs``
            (``"plateau"``, Geom-GCN).
        schedule_epochs: see ``schedule``.
        schedule_amount: see ``schedule``.
        decay: weight decay touches ``"all"`` parameters, or those of the ``"first"`` layer,
            the one on the features (H2GCN's runs of GCN).
        stop: a member continues while this improves: the validation ``"score"``; the
            validation ``"loss"``; ``"either"`` of them, ties included (GAT); or ``"window"``:
            stop when the validation loss is above its mean over the last ``patience`` epochs
            (GCN, GPRGNN).
        keep: the epoch that gives weights and scores. The ``"first"`` or the ``"latest"`` of
            the best validation score (MMP; H2GCN); that of the lowest validation ``"loss"``
            (GPRGNN); the latest at which score and loss are ``"both"`` at their best (GAT);
            the ``"last"`` epoch before the stop (GCN). ``"leak-test"`` is MixHop's rule: of
            equal validation scores, the one with the better *test* score. It is here to
            measure its effect; figures made with it are not honest.
        loss_with_decay: whether the validation loss includes the L2 penalty (GCN).
        class_weight: every labelled node counts alike (``"none"``), or every class
            (``"balanced"``).

    Example:
        >>> import memohop
        >>> memohop.Rules(optimiser="adamw", keep="loss").needs_loss
        True
    """

    optimiser: Literal["adam", "adamw", "sgd"] = "adam"
    schedule: Literal["constant", "steps", "plateau"] = "constant"
    schedule_epochs: int = 50
    schedule_amount: float = 0.8
    decay: Literal["all", "first"] = "all"
    stop: Literal["score", "loss", "either", "window"] = "score"
    keep: Literal["first", "latest", "loss", "both", "last", "leak-test"] = "first"
    loss_with_decay: bool = False
    class_weight: Literal["none", "balanced"] = "none"

    def __post_init__(self) -> None:
        for name, choices in _choices().items():
            if (value := getattr(self, name)) not in choices:
                raise UsageError(f"{name} must be one of {', '.join(choices)}, not {value!r}")
        if self.schedule_epochs < 1:
            raise UsageError(f"schedule_epochs must be at least 1, not {self.schedule_epochs}")

    @property
    def leaks(self) -> bool:
        """Whether the test score influences a choice."""
        return self.keep == "leak-test"

    @property
    def needs_loss(self) -> bool:
        """Whether a rule uses the validation loss."""
        return self.stop != "score" or self.keep in ("loss", "both") or self.schedule == "plateau"


@cache
def _choices() -> dict[str, tuple[str, ...]]:
    """The values of each rule that is a choice."""
    types = get_type_hints(Rules)
    found = {field.name: get_args(types[field.name]) for field in fields(Rules)}
    return {name: choices for name, choices in found.items() if choices}


DEFAULT_RULES = Rules()
