"""Saved models of any kind."""

from __future__ import annotations

import os

from memohop.own import keep, keep_graph
from memohop.own.estimator import MMPClassifier
from memohop.own.folder import SavedModel
from memohop.own.graph_estimator import GraphClassifier, GraphEstimator
from memohop.own.graph_regressor import GraphRegressor


def load_model(path: str | os.PathLike[str]) -> MMPClassifier | GraphEstimator:
    """The model saved in a folder, as the class that it was saved from.

    Example:
        >>> import tempfile
        >>> import memohop
        >>> data = memohop.load("csbm", nodes=100)
        >>> model = memohop.GraphClassifier(models=["linear"], trials=1).fit(data, split=0)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     model.save(f"{folder}/model")
        ...     again = memohop.load_model(f"{folder}/model")
        >>> bool((again.predict() == model.predict()).all())
        True
    """
    saved = SavedModel(path)
    if saved.format == keep_graph.FORMAT:
        kinds = (GraphClassifier, GraphRegressor)
        return keep_graph.load(saved, {kind.__name__: kind for kind in kinds})
    return keep.load(saved, MMPClassifier)
