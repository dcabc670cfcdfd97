"""The population trainer: one function from (data, model, members) to results.

The names below are imported when they are first used: the command line reads metrics, numbers and
the choice on validation without PyTorch.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from memohop.training.choice import Selection as Selection
    from memohop.training.choice import select as select
    from memohop.training.member import Member as Member
    from memohop.training.member import Result as Result
    from memohop.training.member import grid as grid
    from memohop.training.rules import Rules as Rules
    from memohop.training.standard import Scale as Scale
    from memohop.training.standard import standardised as standardised
    from memohop.training.trainer import Enough as Enough
    from memohop.training.trainer import train as train

_HOME = {
    "Selection": "choice",
    "select": "choice",
    "Member": "member",
    "Result": "member",
    "grid": "member",
    "Rules": "rules",
    "Scale": "standard",
    "standardised": "standard",
    "Enough": "trainer",
    "train": "trainer",
}


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOME[name]}"), name)
