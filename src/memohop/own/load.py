"""Saved models of any kind."""

from __future__ import annotations

import os

from memohop.own import keep, keep_graph
from memohop.own.estimator import MMPClassifier
from memohop.own.folder import SavedModel
from memohop.own.graph_estimator import GraphClassifier, GraphEstimator
from memohop.own.graph_regressor import GraphRegressor


def load_model(path: str | os.PathLike[str]) -> MMPClassifier | GraphEstimator:
    """The model saved in a folder, as the class that it was saved from."""
    saved = SavedModel(path)
    if saved.format == keep_graph.FORMAT:
        kinds = (GraphClassifier, GraphRegressor)
        return keep_graph.load(saved, {kind.__name__: kind for kind in kinds})
    return keep.load(saved, MMPClassifier)
