"""The portfolio for predicting numbers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import RegressorMixin

from memohop.errors import check_choice
from memohop.own.graph_estimator import GraphEstimator
from memohop.own.inputs import GivenLabels, as_numbers
from memohop.training.metrics import METRICS, metrics_for
from memohop.training.objective import Objective, Regression


class GraphRegressor(RegressorMixin, GraphEstimator):  # type: ignore[misc]
    """Predicts a number for the nodes of a graph with the best model of a portfolio.

    Like :class:`~memohop.own.graph_estimator.GraphClassifier`, for targets that are numbers: a node
    with the target None or NaN is to be predicted.

    Args:
        models: Names of the kinds to choose from, see
            :data:`memohop.own.candidates.catalogue.NAMES`; None for all.
        time: Seconds for everything; None for no limit.
        trials: The most settings of each kind; None for as many as time allows.
        splits: How many splits of the labelled nodes, and models to average.
        metric: The score to choose by: ``r2`` (the default), ``mae`` or ``rmse``.
        ensemble: Whether several candidates may be kept together.
        random_state: Decides splits, settings, weights and dropout.
        device: The device to train networks on, ``cpu`` or ``cuda``.
        memory: The most bytes that the process may hold; by default what the device can spare.

    Attributes:
        report_: Scores, comparisons and verdict, a :class:`~memohop.own.record.FitRecord`.
        model_: The kept model, an :class:`~memohop.own.ensemble.Ensemble`.
        graph_: The graph of ``fit``.
        ids_: The names of its nodes; their numbers if they have no names.
        encoder_: How the columns of tables became features; None for arrays.
        n_features_in_: How many features a node has.

    Example:
        >>> import memohop
        >>> data = memohop.load("csbm", nodes=100)
        >>> prices = 10 + data.x[:, 0].numpy()
        >>> model = memohop.GraphRegressor(models=["linear"], trials=1)
        >>> model.fit(data.x.numpy(), prices, edges=data.edge_index.numpy()).predict().shape
        (100,)
    """

    _predicts_numbers = True
    score = GraphEstimator.score

    def __init__(
        self,
        *,
        models: Sequence[str] | None = None,
        time: float | None = 300,
        trials: int | None = None,
        splits: int = 5,
        metric: str | None = None,
        ensemble: bool = True,
        random_state: int | np.random.RandomState | None = 0,
        device: str = "cpu",
        memory: int | None = None,
    ) -> None:
        self.models, self.time, self.trials, self.splits = models, time, trials, splits
        self.metric, self.ensemble = metric, ensemble
        self.random_state, self.device, self.memory = random_state, device, memory

    def predict(
        self,
        X: Any = None,  # noqa: N803
        edges: Any = None,
        *,
        append: bool = False,
    ) -> NDArray[np.float32]:
        """The number of each node; arguments as for :meth:`outputs`."""
        return self.outputs(X, edges, append=append)[:, 0]

    def predict_interval(
        self,
        X: Any = None,  # noqa: N803
        edges: Any = None,
        *,
        append: bool = False,
    ) -> NDArray[np.float32]:
        """The lower and the upper end of a 90 % interval, ``[nodes, 2]``.

        It is equally wide for every node (split-conformal, see ``report_.residual``), and meant for
        nodes that are like those of ``fit`` and have no target.
        """
        found = self.predict(X, edges, append=append)
        reach = self.report_.residual or 0.0
        return np.stack([found - reach, found + reach], axis=1)

    def _targets(self, labels: GivenLabels) -> NDArray[np.float64]:
        return as_numbers(labels)

    def _class_names(self) -> list[str]:
        return []

    def _objective(self, target: NDArray[np.float64]) -> Objective:
        metric = self.metric or "r2"
        check_choice("metric", metric, metrics_for(regression=True))
        return Regression(METRICS[metric])
