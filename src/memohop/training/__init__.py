"""The population trainer: one function from (data, model, members) to results.

What needs PyTorch is imported when it is first used: commands are parsed without it.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from memohop.training.job import DEFAULT_RULES as DEFAULT_RULES
from memohop.training.job import Enough as Enough
from memohop.training.job import Job as Job
from memohop.training.job import Rules as Rules
from memohop.training.member import NUMBERS as NUMBERS
from memohop.training.member import RATES as RATES
from memohop.training.member import Member as Member
from memohop.training.member import Result as Result
from memohop.training.member import Selection as Selection
from memohop.training.member import grid as grid
from memohop.training.member import select as select

if TYPE_CHECKING:
    from memohop.training.objective import Scale as Scale
    from memohop.training.objective import standardised as standardised

_HOME = {"Scale": "objective", "standardised": "objective"}


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOME[name]}"), name)
