"""Saved models of any kind."""

from __future__ import annotations

import os

from memohop.own import keep
from memohop.own.classifier import GraphClassifier, MMPClassifier
from memohop.own.estimator import GraphEstimator
from memohop.own.folder import SavedModel
from memohop.own.regressor import GraphRegressor


def load_model(path: str | os.PathLike[str]) -> GraphEstimator:
    """The model saved in a folder, as the class that it was saved from."""
    return keep.load(SavedModel(path), [GraphClassifier, GraphRegressor, MMPClassifier])
