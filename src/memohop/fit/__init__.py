"""Your own graph: a search for the best model, and a model that can be saved and used.

The names below are what other rooms use; they are imported when they are first used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from memohop.fit._candidate import Setting as Setting
    from memohop.fit._certainty import Reliability as Reliability
    from memohop.fit._ensemble import Component as Component
    from memohop.fit._inputs import how_to_read as how_to_read
    from memohop.fit._inputs import read_alike as read_alike
    from memohop.fit._keep import check_target as check_target
    from memohop.fit._neighbourhood import Matrix as Matrix
    from memohop.fit._predictions import table_of as table_of
    from memohop.fit._predictions import write_predictions as write_predictions
    from memohop.fit._problem import Inputs as Inputs
    from memohop.fit._record import FitRecord as FitRecord
    from memohop.fit._views import Feature as Feature
    from memohop.fit._workers import ray_workers as ray_workers
    from memohop.fit.candidates._linear import Linear as Linear
    from memohop.fit.candidates._network import Network as Network
    from memohop.fit.candidates._trees import Trees as Trees
    from memohop.fit.estimator import GraphEstimator as GraphEstimator
    from memohop.fit.estimators import GraphClassifier as GraphClassifier
    from memohop.fit.estimators import GraphRegressor as GraphRegressor
    from memohop.fit.estimators import MMPClassifier as MMPClassifier
    from memohop.fit.estimators import load_model as load_model
    from memohop.fit.on_blocks import outputs_of_prepared as outputs_of_prepared

_HOME = {
    "Reliability": "_certainty",
    "how_to_read": "_inputs",
    "read_alike": "_inputs",
    "check_target": "_keep",
    "Matrix": "_neighbourhood",
    "table_of": "_predictions",
    "write_predictions": "_predictions",
    "Inputs": "_problem",
    "FitRecord": "_record",
    "Feature": "_views",
    "Setting": "_candidate",
    "Linear": "candidates._linear",
    "Network": "candidates._network",
    "Trees": "candidates._trees",
    "Component": "_ensemble",
    "GraphEstimator": "estimator",
    "GraphClassifier": "estimators",
    "GraphRegressor": "estimators",
    "MMPClassifier": "estimators",
    "load_model": "estimators",
    "outputs_of_prepared": "on_blocks",
    "ray_workers": "_workers",
}


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOME[name]}"), name)
