"""What a fitted model says of a graph: that of ``fit``, another one, or new nodes."""

from __future__ import annotations

import operator
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, ClassVar, TypedDict

import numpy as np
import torch
from numpy.typing import NDArray
from scipy import sparse
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_consistent_length, check_is_fitted, validate_data
from torch import Tensor

from memohop.data.arcs import in_unit
from memohop.errors import UsageError
from memohop.fit.inputs import Given, labels_of, read_given
from memohop.fit.problem import Inputs, Outputs

if TYPE_CHECKING:
    from collections.abc import Mapping

    from memohop.data.tables.columns import ColumnEncoder
    from memohop.fit.ensemble import Ensemble
    from memohop.fit.record import FitRecord


class How(TypedDict, total=False):
    """How a graph is predicted; see :meth:`GraphPredictor.outputs`."""

    append: bool
    as_another_graph: bool


class GraphPredictor(BaseEstimator, ABC):  # type: ignore[misc]
    """The half of an estimator that predicts; see :class:`memohop.fit.estimator.GraphEstimator`."""

    _predicts_numbers: ClassVar[bool]
    classes_: NDArray[Any]  # of classifiers
    directed_: bool
    encoder_: ColumnEncoder | None
    graph_: Inputs
    has_arcs_: bool
    ids_: NDArray[Any]
    mean_weight_: float | None
    model_: Ensemble
    overall_: NDArray[Any]
    reading_: Mapping[str, Any] | None
    report_: FitRecord

    def outputs(
        self,
        X: Any = None,
        edges: Any = None,
        *,
        append: bool = False,
        as_another_graph: bool = False,
    ) -> Outputs:
        """Probabilities ``[nodes, classes]``, or numbers ``[nodes, 1]``.

        The graph of ``fit`` is recognised by its columns, arcs, weights and ids. On it, models use
        the labels of neighbours that ``fit`` learned from, and weights that belong to single nodes.
        (A node's own label is no input, but a network with labels in its memory gets it back over
        two arcs.) On another graph, no labels are used. ``append`` attaches new nodes to the graph
        of ``fit``: their predictions also use its nodes and their labels. Weights of arcs are in
        the unit of those of ``fit``; an arc without one counts as much as an average one there.

        Args:
            X: A graph with the same features, or its features; None for the graph of ``fit``. Or
                a table of nodes, if ``fit`` was given tables (by :func:`memohop.read_graph`).
            edges: Arcs, if ``X`` is features; needed if ``fit`` had some. Or a table of edges, or
                several, if ``X`` is a table of nodes.
            append: Whether ``X`` is new nodes in the graph of ``fit``. Arcs then number its nodes
                first, in their order, followed by the new ones; tables name them. The outputs are
                those of the new nodes.
            as_another_graph: Predict the graph of ``fit`` as if it were another one.
        """
        check_is_fitted(self)
        if append and (X is None or as_another_graph):
            what = "X is None" if X is None else "as_another_graph=True"
            raise UsageError(f"append=True, but {what}; give the new nodes of the graph of fit")
        given = read_given(X, None, edges, self, append=append)
        if not append:
            return self.model_.outputs(self._inputs(given, as_another_graph))
        x, old = self._known_features(given), self.own_graph()
        arcs = given.arcs(old.nodes + x.shape[0]).numpy()
        weights = in_unit(given.weights, self.mean_weight_)
        joined = old.with_new_nodes(x, arcs, self._unknown(x.shape[0]), weights)
        return self.model_.outputs(joined)[old.nodes :]

    def score(
        self,
        X: Any = None,
        y: Any = None,
        edges: Any = None,
        sample_weight: Any = None,
        *,
        as_another_graph: bool = False,
    ) -> float:
        """The metric on the labelled nodes of a graph; the honest score is in ``report_``.

        On the graph of ``fit`` this says how well the model fits its labels, not how well it
        predicts: it has learned from them, and may use those of neighbours. Only for nodes whose
        labels ``fit`` did not see is it a test: give a ``y`` that is None or NaN for the others.
        With ``as_another_graph``, labels are no input, but were still learned from.

        Arguments as for :meth:`outputs`; ``y`` may be None if the graph has labels, and
        ``sample_weight`` is the weight of each node.
        """
        check_is_fitted(self)
        given = read_given(X, y, edges, self)
        labels = given.labels
        if labels is None and X is None:
            labels = labels_of(torch.from_numpy(self.own_graph().y), getattr(self, "classes_", ()))
        if labels is None or not labels.known.any():
            lacking = "X has no label, and y is None" if y is None else "y has no label"
            raise UsageError(
                f"{lacking}; give y, the true target of each node, None or NaN where unknown"
            )
        outputs = self.model_.outputs(self._inputs(given, as_another_graph))
        check_consistent_length(outputs, labels.known)
        weight = None if sample_weight is None else np.asarray(sample_weight)[labels.known]
        return self._score(labels.names, outputs[labels.known], weight)

    def is_graph_of_fit(self, X: Any, edges: Any = None) -> bool:
        """Whether a graph is recognised as that of ``fit``; arguments as for :meth:`outputs`."""
        check_is_fitted(self)
        given = read_given(X, None, edges, self)
        return self._inputs(given, as_another_graph=False) is getattr(self, "graph_", None)

    def own_graph(self) -> Inputs:
        """The graph of ``fit``; a ``UsageError`` if the model was saved without it."""
        check_is_fitted(self)
        if not hasattr(self, "graph_"):
            raise UsageError("this model was saved without its graph; give the graph again")
        return self.graph_

    def _inputs(self, given: Given, as_another_graph: bool) -> Inputs:
        """The graph to predict: that of ``fit`` with its labels, or another one without any."""
        if given.x is None:
            own = self.own_graph()
            if not as_another_graph:
                return own
            x, arcs, weights = own.x, own.arcs, own.weights
        else:
            x, weights = self._known_features(given), in_unit(given.weights, self.mean_weight_)
            arcs = given.arcs(x.shape[0]).numpy()
        unknown, directed = self._unknown(x.shape[0]), self.directed_
        graph = Inputs(x, arcs, unknown, directed=directed, overall=self.overall_, weights=weights)
        return graph if as_another_graph or not self._is_own(graph, given.ids) else self.graph_

    def _is_own(self, graph: Inputs, ids: NDArray[Any] | None) -> bool:
        """Whether this is the graph of ``fit``; one without ids is known by the rest of it."""
        if not (hasattr(self, "graph_") and graph.is_same_graph(self.graph_)):
            return False
        return ids is None or all(map(operator.eq, map(str, ids), map(str, self.ids_)))

    def _known_features(self, given: Given) -> Any:
        """The features of a graph to predict, which needs arcs if that of ``fit`` had some."""
        if given.edge_index is None and self.has_arcs_:
            raise UsageError(
                "edges is None, but the model was fitted on a graph with arcs; give edges "
                "(edges=[] for nodes without any), or leave out X for the graph of fit"
            )
        return self._features(given, reset=False)

    def _unknown(self, nodes: int) -> NDArray[Any]:
        """The targets of nodes that have none."""
        return np.full(nodes, np.nan if self._predicts_numbers else -1)

    def _features(self, given: Given, *, reset: bool) -> Any:
        checked = validate_data(
            self,
            given.x.cpu().numpy() if isinstance(given.x, Tensor) else given.x,
            reset=reset,
            accept_sparse="csr",
            dtype=np.float32,
            order="C",
            copy=reset,  # the kept graph must not change with the caller's array
            force_writeable=True,  # required by PyTorch
        )
        return sparse.csr_array(checked) if sparse.issparse(checked) else checked

    @abstractmethod
    def _score(self, truth: NDArray[Any], outputs: Outputs, weight: NDArray[Any] | None) -> float:
        """The metric of the outputs for some nodes, given their targets."""
