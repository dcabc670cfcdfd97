"""The portfolio for predicting numbers."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import RegressorMixin

from memohop.fit.estimator import GraphEstimator
from memohop.fit.inputs import GivenLabels, as_numbers
from memohop.fit.problem import Outputs
from memohop.training.metrics import METRICS
from memohop.training.objective import Objective, Regression


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

    def predict(
        self,
        X: Any = None,  # noqa: N803
        edges: Any = None,
        *,
        append: bool = False,
        as_another_graph: bool = False,
    ) -> NDArray[np.float32]:
        """The number of each node; arguments as for :meth:`outputs`."""
        return self.outputs(X, edges, append=append, as_another_graph=as_another_graph)[:, 0]

    def predict_interval(
        self,
        X: Any = None,  # noqa: N803
        edges: Any = None,
        *,
        append: bool = False,
        as_another_graph: bool = False,
    ) -> NDArray[np.float32]:
        """The lower and the upper end of a 90 % interval, ``[nodes, 2]``.

        It is equally wide for every node (split-conformal, see ``report_.residual``), and meant for
        nodes that are like those of ``fit`` and have no target. The ends are infinite if too few
        nodes, or groups of them, validated the model.
        """
        found = self.predict(X, edges, append=append, as_another_graph=as_another_graph)
        reach = self.report_.residual or 0.0
        return np.stack([found - reach, found + reach], axis=1)

    def _targets(self, labels: GivenLabels) -> NDArray[np.float64]:
        return as_numbers(labels)

    def _class_names(self) -> list[str]:
        return []

    def _objective(self, target: NDArray[np.float64]) -> Objective:
        return Regression(METRICS[self.metric or "r2"])

    def _score(self, truth: NDArray[Any], found: Outputs, weight: NDArray[Any] | None) -> float:
        return METRICS[self.report_.metric].weighted(truth, found[:, 0], weight)
