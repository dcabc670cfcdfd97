"""The estimators: a classifier and a regressor of nodes, and a classifier with memory alone."""

from __future__ import annotations

import math
import os
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import ClassifierMixin, RegressorMixin
from sklearn.utils.multiclass import check_classification_targets

from memohop.data.tables import why_no_classes
from memohop.errors import UsageError, unknown_name, whole_number
from memohop.fit._candidate import Family
from memohop.fit._given import Given, GivenLabels, not_sortable
from memohop.fit._keep import load
from memohop.fit._problem import Outputs, Problem
from memohop.fit._scorable import RankingWarning, check_scorable, class_to_find
from memohop.fit.candidates._network import NetworkFamily
from memohop.fit.estimator import GraphEstimator
from memohop.training.metrics import METRICS, of_any_targets
from memohop.training.objective import Classification, Objective, Regression

_LARGEST = 1e37  # number to predict: a model's output may be some times larger
_RARE = 0.1  # share of one of two classes below which finding its nodes counts
_TO_SEE = 0.05  # share of the time, at most, to see whether accuracy says anything


@dataclass(kw_only=True, eq=False, repr=False)
class GraphClassifier(ClassifierMixin, GraphEstimator):  # type: ignore[misc]
    """Labels the nodes of a graph with the best model of a portfolio.

    Search, graphs, arguments and attributes are those of
    :class:`~memohop.fit.estimator.GraphEstimator`, and in addition the following. Labels are
    anything that can be sorted.

    Args:
        metric: The score to maximise; by default ``accuracy``, or ``average_precision`` if the
            positive one of two classes is rare (fewer than 10 % of the labelled nodes), or if
            fewer than 30 % have it and boosted trees are not more often right than always saying
            the other one.
        positive: The class whose nodes are to be found, of two: the positive one in
            ``average_precision``, and in the report on the top of the ranking. By default the
            second one, or the first if it is rare.
        class_weight: ``balanced`` to give all classes the same weight in training; None to give all
            nodes the same weight.

    Attributes:
        classes_: The classes, in sorted order.

    Example:
        >>> import memohop
        >>> data = memohop.load("csbm", nodes=100, homophily=0.1)
        >>> memohop.GraphClassifier(models=["linear"], trials=1).fit(data, split=0).predict().shape
        (100,)
    """

    class_weight: str | None = None
    positive: Any = None

    _predicts_numbers = False
    score = GraphEstimator.score  # not scikit-learn's, which has no arcs

    def predict_proba(self, X: Any = None, edges: Any = None, **how: bool) -> NDArray[np.float32]:
        """The probability of each class, ``[nodes, classes]``, in the order of ``classes_``.

        Arguments as for :meth:`outputs`.
        """
        return self.outputs(X, edges, **how)

    def predict(self, X: Any = None, edges: Any = None, **how: bool) -> NDArray[Any]:
        """The most probable class of each node; arguments as for :meth:`outputs`."""
        probabilities = self.outputs(X, edges, **how)
        return self.classes_[probabilities.argmax(axis=1)]

    def _goal(self, labels: GivenLabels) -> tuple[NDArray[np.int64], Objective]:
        numbers, self.classes_ = number_classes(labels)
        sizes = np.bincount(numbers[numbers >= 0])
        rare = [index for index, size in enumerate(sizes) if size < _RARE * sizes.sum()]
        positive = self._positive(rare)
        metric = self.metric
        if metric is None:
            finding = len(sizes) == 2 and positive in rare
            metric = "average_precision" if finding else "accuracy"
        if METRICS[metric].is_ranking and len(self.classes_) != 2:
            raise UsageError(
                f"metric={metric!r} is for two classes and there are {len(self.classes_)}; use "
                f"{of_any_targets(METRICS[metric])}"
            )
        return numbers, Classification(METRICS[metric].of_class(positive))

    def _problem(self, given: Given, seed: int) -> Problem:
        """The problem to solve; by a ranking, if accuracy says nothing of a smaller class."""
        problem = super()._problem(given, seed)
        if self.metric is not None or self.class_weight is not None:
            return problem
        if problem.objective.metric.id != "accuracy":
            return problem
        number = class_to_find(problem, _TO_SEE * (math.inf if self.time is None else self.time))
        if number is None or (self.positive is not None and number != self._positive([])):
            return problem
        objective = Classification(METRICS["average_precision"].of_class(number))
        try:
            masks = self._masks(given, problem.y, objective, seed)
            ranked = problem.with_others(objective=objective, masks=masks)
            check_scorable(ranked, self._classes())
        except UsageError:  # not every part has nodes of it
            return problem
        smaller, larger = (repr(str(self._classes()[each])) for each in (number, 1 - number))
        share = (problem.y == number).sum() / len(problem.labelled)
        warnings.warn(
            f"{smaller} is {share:.0%} of the labelled nodes, and boosted trees are right hardly "
            f"more often than if they always said {larger}: models are chosen by how well they "
            f"find {smaller}, average_precision (metric='accuracy', --metric accuracy, chooses by "
            "the share that is right)",
            RankingWarning,
            stacklevel=5,
        )
        return ranked

    def _positive(self, rare: Sequence[int]) -> int:
        """The number of the positive class."""
        if self.positive is None:
            return 0 if len(self.classes_) == 2 and 0 in rare else 1
        names, named = self.classes_.tolist(), self.positive
        alike = [number for number, name in enumerate(names) if str(name) == str(named)]
        alike += [number for number, name in enumerate(names) if name == named]  # 1.0 and 1
        if not alike:
            raise unknown_name("class", named, map(str, names))
        if len(names) != 2:
            raise UsageError(
                f"positive={named!r} is for two classes and there are {len(names)}; leave it out, "
                "or merge the other classes into one"
            )
        return alike[0]

    def _score(self, truth: NDArray[Any], outputs: Outputs, weight: NDArray[Any] | None) -> float:
        metric, positive = METRICS[self.report_.metric], self.report_.positive
        if metric.is_ranking:
            is_positive = truth == self.classes_[positive]
            return metric.weighted(is_positive, outputs[:, positive], weight)
        return metric.weighted(truth, self.classes_[outputs.argmax(axis=1)], weight)


@dataclass(kw_only=True, eq=False, repr=False)
class GraphRegressor(RegressorMixin, GraphEstimator):  # type: ignore[misc]
    """Predicts a number for the nodes of a graph with the best model of a portfolio.

    Search, graphs, arguments and attributes are those of
    :class:`~memohop.fit.estimator.GraphEstimator`. ``metric`` is ``r2`` (the default), ``mae`` or
    ``rmse``.

    Example:
        >>> import memohop
        >>> data = memohop.load("csbm", nodes=100)
        >>> prices = 10 + data.x[:, 0].numpy()
        >>> model = memohop.GraphRegressor(models=["linear"], trials=1)
        >>> model.fit(data.x.numpy(), prices, edges=data.edge_index.numpy()).predict().shape
        (100,)
    """

    _predicts_numbers = True
    score = GraphEstimator.score  # not scikit-learn's, which has no arcs

    def predict(self, X: Any = None, edges: Any = None, **how: bool) -> NDArray[np.float32]:
        """The number of each node; arguments as for :meth:`outputs`."""
        return self.outputs(X, edges, **how)[:, 0]

    def predict_interval(
        self, X: Any = None, edges: Any = None, **how: bool
    ) -> NDArray[np.float32]:
        """The lower and the upper end of a 90 % interval, ``[nodes, 2]``.

        It is equally wide for every node, or for skewed numbers of which none is negative, wider
        where a higher one is predicted (split-conformal, see ``report_.residual``), and meant for
        nodes that are like those of ``fit`` and have no target. The ends are infinite if too few
        nodes, or groups of them, validated the model. Arguments as for :meth:`outputs`.
        """
        numbers, residual = self.predict(X, edges, **how), self.report_.residual
        assert residual is not None
        return np.stack(residual.ends(numbers), axis=1)

    def _goal(self, labels: GivenLabels) -> tuple[NDArray[np.float64], Objective]:
        return as_numbers(labels), Regression(METRICS[self.metric or "r2"])

    def _score(self, truth: NDArray[Any], outputs: Outputs, weight: NDArray[Any] | None) -> float:
        return METRICS[self.report_.metric].weighted(truth, outputs[:, 0], weight)


@dataclass(kw_only=True, eq=False, repr=False)
class MMPClassifier(GraphClassifier):
    """Labels the nodes of a graph by memory-based message passing.

    A :class:`GraphClassifier` that chooses among the kinds of model with memory alone, those whose
    names end in ``+mmp``. To compare them with others, give their names as ``models`` of a
    :class:`GraphClassifier`.

    Args:
        epochs: The most epochs of a network.
        patience: Epochs without a better validation score after which a network stops; None to
            always train for all epochs.

    Example:
        >>> import memohop
        >>> data = memohop.load("csbm", homophily=0.1, nodes=60)
        >>> classifier = memohop.MMPClassifier(trials=1, splits=2, epochs=3).fit(data, split=0)
        >>> classifier.predict().shape
        (60,)
    """

    models: Sequence[str] | None = field(default=None, init=False)
    time: float | None = None
    trials: int | None = 16
    metric: str | None = "accuracy"
    epochs: int = 200
    patience: int | None = 50

    def _check_arguments(self) -> None:
        super()._check_arguments()
        whole_number("epochs", self.epochs, least=1)
        if self.patience is not None:
            whole_number("patience", self.patience, least=1)

    def _families(self, seed: int) -> list[Family]:
        return [
            replace(kind, epochs=self.epochs, patience=self.patience)
            for kind in super()._families(seed)
            if isinstance(kind, NetworkFamily) and kind.has_memory
        ]


def number_classes(labels: GivenLabels) -> tuple[NDArray[np.int64], NDArray[Any]]:
    """Class numbers ``[nodes]``, -1 for nodes without a label, and the sorted classes."""
    if not labels.known.any():
        raise UsageError("y has no label at all; give some nodes their label")
    if labels.kind == "numbers":
        raise UsageError(
            "y holds numbers to predict, not classes; give whole numbers or words, or use "
            "GraphRegressor"
        )
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about many classes, which are checked below
            check_classification_targets(labels.names)
        classes, numbers, sizes = np.unique(labels.names, return_inverse=True, return_counts=True)
    except TypeError as error:
        raise not_sortable("y has labels", error) from error
    except ValueError as error:
        raise UsageError(
            f"y holds numbers, not classes ({error}); group them into classes"
        ) from error
    if len(classes) < 2:
        raise UsageError(
            f"y has one class, {classes.tolist()[0]!r}, so there is nothing to tell apart; "
            "give labels of at least two classes"
        )
    if labels.kind is None and (reason := why_no_classes(classes, sizes)):
        raise UsageError(f"y {reason}")
    codes = np.full(len(labels.known), -1, dtype=np.int64)
    codes[labels.known] = numbers
    return codes, classes


def as_numbers(labels: GivenLabels) -> NDArray[np.float64]:
    """Numbers to predict, ``[nodes]``, NaN where they are not known."""
    try:
        values = np.asarray(labels.names).astype(np.float64)
    except (TypeError, ValueError) as error:
        raise UsageError(
            f"y has values that are no numbers ({error}); give numbers, NaN where they are not "
            "known, or use GraphClassifier for classes"
        ) from error
    if not np.isfinite(values).all():
        raise UsageError("y has values that are infinite; correct them, or make them NaN")
    if not len(values) or values.min() == values.max():
        raise UsageError(
            "y has no number at all, or one number everywhere; give nodes different numbers"
        )
    if np.abs(values).max() > _LARGEST or np.ptp(values.astype(np.float32)) == 0:
        raise UsageError(
            f"y has numbers from {values.min():g} to {values.max():g}, which single precision "
            "cannot hold, or tell apart; subtract their mean and divide them by their spread"
        )
    targets = np.full(len(labels.known), np.nan)
    targets[labels.known] = values
    return targets


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
    return load(path, [GraphClassifier, GraphRegressor, MMPClassifier])
