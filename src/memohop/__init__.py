"""Memory-based message passing: graph networks for graphs whose neighbours disagree.

The names below are imported on first use, to keep the start of the command line quick.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from memohop.version import __version__ as __version__

if TYPE_CHECKING:
    from memohop.data.audit import audit as audit
    from memohop.data.datasets.load import load as load
    from memohop.data.datasets.registry import datasets as datasets
    from memohop.data.prepared import open_prepared as open_prepared
    from memohop.data.prepared import prepare as prepare
    from memohop.data.tables import read_graph as read_graph
    from memohop.errors import DataError as DataError
    from memohop.errors import MemohopError as MemohopError
    from memohop.errors import UsageError as UsageError
    from memohop.fit.estimators import GraphClassifier as GraphClassifier
    from memohop.fit.estimators import GraphRegressor as GraphRegressor
    from memohop.fit.estimators import MMPClassifier as MMPClassifier
    from memohop.fit.estimators import load_model as load_model
    from memohop.jobs.train import train as train
    from memohop.networks import build as build
    from memohop.networks import models as models
    from memohop.nn import MMP as MMP
    from memohop.nn import Graph as Graph
    from memohop.nn import MemoryGate as MemoryGate
    from memohop.nn import decoupling_loss as decoupling_loss
    from memohop.training import Member as Member
    from memohop.training import Result as Result
    from memohop.training import Rules as Rules
    from memohop.training import grid as grid
    from memohop.training import select as select

_NAMES = {
    "memohop.data.audit": ["audit"],
    "memohop.data.datasets.load": ["load"],
    "memohop.data.datasets.registry": ["datasets"],
    "memohop.data.prepared": ["open_prepared", "prepare"],
    "memohop.data.tables": ["read_graph"],
    "memohop.errors": ["DataError", "MemohopError", "UsageError"],
    "memohop.networks": ["build", "models"],
    "memohop.nn": ["MMP", "Graph", "MemoryGate", "decoupling_loss"],
    "memohop.fit.estimators": ["GraphClassifier", "GraphRegressor", "MMPClassifier", "load_model"],
    "memohop.jobs.train": ["train"],
    "memohop.training": ["Member", "Result", "Rules", "grid", "select"],
}
_HOME = {name: module for module, names in _NAMES.items() for name in names}
__all__ = [*_HOME, "__version__"]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'memohop' has no attribute {name!r}")
    return getattr(import_module(_HOME[name]), name)


def __dir__() -> list[str]:
    return sorted(__all__)
