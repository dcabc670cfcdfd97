"""Saved models of any kind."""

from __future__ import annotations

import os

from memohop.fit import keep
from memohop.fit.classifier import GraphClassifier, MMPClassifier
from memohop.fit.estimator import GraphEstimator
from memohop.fit.folder import SavedModel
from memohop.fit.regressor import GraphRegressor


def load_model(path: str | os.PathLike[str]) -> GraphEstimator:
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
    return keep.load(SavedModel(path), [GraphClassifier, GraphRegressor, MMPClassifier])
