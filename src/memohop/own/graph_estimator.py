"""The best model for a graph from a whole portfolio, with scikit-learn's conventions."""

from __future__ import annotations

import os
import time as clock
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_consistent_length, check_is_fitted, validate_data
from torch import Tensor

from memohop.data.arguments import real_number, whole_number
from memohop.data.tables.own_graph import OwnGraph
from memohop.errors import UsageError, check_choice
from memohop.own import keep_graph
from memohop.own.candidates.catalogue import families
from memohop.own.ensemble import Ensemble
from memohop.own.finish import choose, fit_to_all
from memohop.own.folder import SavedModel
from memohop.own.folds import OwnSplit, make_masks
from memohop.own.inputs import Given, GivenLabels, as_given, number_classes
from memohop.own.partition import given_masks
from memohop.own.portfolio import Progress, search
from memohop.own.problem import Inputs, Outputs, Problem
from memohop.own.record import FitRecord, make_record
from memohop.pyg import Data
from memohop.training import Rules
from memohop.training.metrics import METRICS, metrics_for
from memohop.training.objective import Classification, Objective

if TYPE_CHECKING:
    from memohop.data.tables.columns import ColumnEncoder

_SEEDS = 2**31 - 1
_RARE = 0.1  # share of the second of two classes below which finding its nodes counts


class GraphEstimator(BaseEstimator):  # type: ignore[misc]
    """The common part of classifiers and regressors of graphs."""

    def __init__(
        self,
        *,
        models: Sequence[str] | None = None,
        time: float | None = 300,
        trials: int | None = None,
        splits: int = 5,
        metric: str | None = None,
        class_weight: str | None = None,
        ensemble: bool = True,
        random_state: int | np.random.RandomState | None = 0,
        device: str = "cpu",
        memory: int | None = None,
    ) -> None:
        self.models, self.time, self.trials, self.splits = models, time, trials, splits
        self.metric, self.class_weight, self.ensemble = metric, class_weight, ensemble
        self.random_state, self.device, self.memory = random_state, device, memory

    _predicts_numbers: ClassVar[bool]

    def fit(
        self,
        X: Any,  # noqa: N803
        y: Any = None,
        edges: Any = None,
        *,
        split: int | None = None,
        groups: Any = None,
        progress: Progress = lambda share, doing: None,
    ) -> Self:
        """Search, choose, score the test nodes once, and fit the chosen models to every label.

        Ctrl-C ends the search; its results so far are kept.

        Args:
            X: The graph, or its features.
            y: Targets; None for those of the graph.
            edges: Arcs, if ``X`` is features.
            split: The column of the masks to use, if ``X`` is a ``Data`` with several.
            groups: The group of each node; no split divides a group.
            progress: Called as ``progress(share of the time, current step)`` now and then.
        """
        begin = clock.monotonic()
        self._check_arguments()
        if split is not None and not isinstance(X, Data):
            raise UsageError(f"split={split}, but X is not a Data with masks; leave it out")
        given = as_given(X, y, edges)
        x = self._features(given, reset=True)
        if given.labels is None:
            raise UsageError(
                f"{type(self).__name__} requires y to be passed, but the target y is None; give "
                "one target for each node, None or NaN where it is not known"
            )
        check_consistent_length(x, given.labels.known)
        target = self._targets(given.labels)
        objective = self._objective(target)
        own = OwnSplit.of_sets(X.masks) if isinstance(X, OwnGraph) else None
        if isinstance(X, Data):
            own = OwnSplit.of(given_masks(X, split))
        groups = given.groups if groups is None else np.asarray(groups)
        seed = int(check_random_state(self.random_state).randint(_SEEDS))
        try:
            masks = make_masks(
                target,
                splits=self.splits,
                seed=seed,
                own=own,
                groups=groups,
                both_classes=objective.metric.is_ranking,
            )
        except ValueError as error:
            raise UsageError(
                f"the labelled nodes are too few for splits={self.splits} ({error}); label more "
                "nodes, or lower splits"
            ) from error
        problem = Problem(
            x=x,
            arcs=given.arcs(x.shape[0]).numpy(),
            y=target,
            objective=objective,
            masks=masks,
            weights=given.weights,
        )
        self._check_parts(problem)
        kinds = families(
            self.models,
            rules=Rules(class_weight="balanced" if self._class_weight else "none"),
            seed=seed,
            device=self.device,
            memory=self.memory,
        )
        by_name = {kind.id: kind for kind in kinds}
        found = search(
            problem, kinds, time=self.time, trials=self.trials, seed=seed, progress=progress
        )
        if not found.complete():
            raise UsageError(
                f"time={self.time} is too short to fit any model to this graph; give more seconds"
            )
        chosen = choose(problem, found, single=not self.ensemble)
        self.ids_ = np.arange(problem.nodes) if given.ids is None else given.ids
        self.encoder_: ColumnEncoder | None = given.encoder
        self.reading_: dict[str, Any] | None = None
        self.has_arcs_ = given.edge_index is not None
        self.report_: FitRecord = make_record(
            problem,
            by_name,
            found,
            chosen,
            classes=self._class_names(),
            seconds=clock.monotonic() - begin,
            notes=given.notes,
        )
        left = np.inf if self.time is None else self.time - (clock.monotonic() - begin)
        if found.stopped == "interrupted":
            left = 0.0
        self.graph_ = problem.with_all_labels()
        self.directed_ = problem.neighbourhood.directed
        self.overall_ = self.graph_.overall_shares(problem.classes)
        model: Ensemble = fit_to_all(problem, by_name, chosen, seconds=left, progress=progress)
        self.report_ = replace(self.report_, seconds=clock.monotonic() - begin)
        self.model_ = model
        return self

    def outputs(
        self,
        X: Any = None,  # noqa: N803
        edges: Any = None,
        *,
        append: bool = False,
    ) -> Outputs:
        """Probabilities ``[nodes, classes]``, or numbers ``[nodes, 1]``.

        On another graph, no labels are used. ``append`` attaches new nodes to the graph of
        ``fit``: their predictions also use its nodes and their labels.

        Args:
            X: Another graph with the same features, or its features; None for the graph of ``fit``.
            edges: Arcs, if ``X`` is features; needed if ``fit`` had some.
            append: Whether ``X`` is new nodes in the graph of ``fit``. Arcs then number its nodes
                first, in their order, followed by the new ones. The outputs are those of the new
                nodes.
        """
        check_is_fitted(self)
        if X is None:
            if append:
                raise UsageError("append=True, but X is None; give the features of the new nodes")
            return self.model_.outputs(self.own_graph())
        given = as_given(X, None, edges)
        x = self._features(given, reset=False)
        if given.edge_index is None and self.has_arcs_:
            raise UsageError(
                "edges is None, but the model was fitted on a graph with arcs; give edges "
                "(edges=[] for nodes without any), or leave out X for the graph of fit"
            )
        nothing = np.full(x.shape[0], np.nan if self._predicts_numbers else -1)
        if not append:
            arcs = given.arcs(x.shape[0]).numpy()
            other = Inputs(
                x,
                arcs,
                nothing,
                directed=self.directed_,
                overall=self.overall_,
                weights=given.weights,
            )
            return self.model_.outputs(other)
        old = self.own_graph()
        arcs = given.arcs(old.nodes + x.shape[0]).numpy()
        joined = old.with_new_nodes(x, arcs, nothing, given.weights)
        return self.model_.outputs(joined)[old.nodes :]

    def score(
        self,
        X: Any = None,  # noqa: N803
        y: Any = None,
        edges: Any = None,
        sample_weight: Any = None,
    ) -> float:
        """The metric on the labelled nodes of a graph.

        On the graph of ``fit`` it is too high, since its labels were learned from; the honest score
        is in ``report_``. Arguments as for :meth:`outputs`; ``y`` may be None if the graph has
        labels, and ``sample_weight`` is the weight of each node.
        """
        found = self.outputs(X, edges)
        labels = as_given(X, y, edges).labels
        if labels is None:
            raise UsageError("y is None; give a target for each node, or a graph that has some")
        check_consistent_length(found, labels.known)
        found, metric = found[labels.known], METRICS[self.report_.metric]
        weight = None if sample_weight is None else np.asarray(sample_weight)[labels.known]
        if self._predicts_numbers:
            return metric.weighted(labels.names, found[:, 0], weight)
        if metric.is_ranking:
            return metric.weighted(labels.names == self.classes_[1], found[:, 1], weight)
        return metric.weighted(labels.names, self.classes_[found.argmax(axis=1)], weight)

    def own_graph(self) -> Inputs:
        """The graph of ``fit``; an error if the model came without it."""
        check_is_fitted(self)
        if not hasattr(self, "graph_"):
            raise UsageError("this model was saved without its graph; give the graph again")
        return self.graph_

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the model into a folder; see :mod:`memohop.own.folder`."""
        check_is_fitted(self)
        keep_graph.save(self, path)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> GraphEstimator:
        """The model that was saved in a folder."""
        return keep_graph.load(SavedModel(path), {cls.__name__: cls})

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "model_")  # set last: an interrupted fit does not count

    def _check_arguments(self) -> None:
        whole_number("splits", self.splits, least=2)
        if self.trials is not None:
            whole_number("trials", self.trials, least=1)
        if self.time is not None:
            real_number("time", self.time, least=0)
        if self.time is None and self.trials is None:
            raise UsageError("time and trials are both None, and a search must end: give one")
        check_choice("class_weight", self._class_weight, (None, "balanced"))

    @property
    def _class_weight(self) -> str | None:
        return getattr(self, "class_weight", None)

    def _check_parts(self, problem: Problem) -> None:
        """A ranking metric needs both classes wherever a score is computed."""
        metric, masks = problem.objective.metric, problem.masks
        for part, mask in (("training", masks.train), ("validation", masks.val)):
            sizes = [len(np.unique(problem.y[column])) for column in mask.T]
            if metric.is_ranking and min(sizes) < 2:
                raise UsageError(
                    f"metric={metric.id!r} needs {part} nodes of both classes, and a split has "
                    "those of one; give it others, or metric='accuracy'"
                )

    def _features(self, given: Given, *, reset: bool) -> Any:
        x = given.x.cpu().numpy() if isinstance(given.x, Tensor) else given.x
        checked = validate_data(
            self,
            x,
            reset=reset,
            accept_sparse="csr",
            dtype=np.float32,
            order="C",
            copy=reset,  # the kept graph must not change with the caller's array
            force_writeable=True,  # required by PyTorch
        )
        return sparse.csr_array(checked) if sparse.issparse(checked) else checked


class GraphClassifier(ClassifierMixin, GraphEstimator):  # type: ignore[misc]
    """Labels the nodes of a graph with the best model of a portfolio.

    ``fit`` tries linear models and boosted trees on the columns, the same with features of the
    neighbours, and networks, with and without memory-based message passing. It chooses by
    validation nodes alone, and keeps the best model or an ensemble of a few. ``report_`` shows the
    score of the columns, the gain from the graph and the gain from memory, on unused test nodes.

    A graph is a feature matrix ``X`` (dense or sparse, a row for each node) with ``edges``; or a
    PyG ``Data``; or the result of ``memohop.read_graph``. ``edges`` is a ``[2, arcs]`` array of
    whole numbers, sources above targets, or a sparse adjacency matrix; without it, features alone
    decide. Labels are anything that can be sorted. A node with the label None or NaN (in a
    ``Data``: a negative one) is not labelled, and its class is predicted. If a ``Data`` has masks,
    they are used.

    Args:
        models: Names of the kinds to choose from, see
            :data:`memohop.own.candidates.catalogue.NAMES`; None for all.
        time: Seconds for everything; None for no limit.
        trials: The most settings of each kind; None for as many as time allows.
        splits: How many splits of the labelled nodes, and models to average.
        metric: The score to maximise; by default ``accuracy``, or ``average_precision`` if the
            second of two classes is rare.
        class_weight: ``balanced`` to give all classes the same weight in training; None to give all
        nodes the same weight.
        ensemble: Whether several candidates may be kept together.
        random_state: Decides splits, settings, weights and dropout.
        device: The device to train networks on, ``cpu`` or ``cuda``.
        memory: The most bytes that the process may hold; by default what the device can spare.

    Attributes:
        classes_: The classes, in sorted order.
        report_: Scores, comparisons and verdict, a :class:`~memohop.own.record.FitRecord`.
        model_: The kept model, an :class:`~memohop.own.ensemble.Ensemble`.
        graph_: The graph of ``fit``.
        ids_: The names of its nodes; their numbers if they have no names.
        encoder_: How the columns of tables became features; None for arrays.
        n_features_in_: How many features a node has.

    Example:
        >>> import memohop
        >>> data = memohop.load("csbm", nodes=100, homophily=0.1)
        >>> memohop.GraphClassifier(models=["linear"], trials=1).fit(data, split=0).predict().shape
        (100,)
    """

    _predicts_numbers = False
    score = GraphEstimator.score  # not scikit-learn's, which has no arcs

    def predict_proba(
        self,
        X: Any = None,  # noqa: N803
        edges: Any = None,
        *,
        append: bool = False,
    ) -> NDArray[np.float32]:
        """The probability of each class, ``[nodes, classes]``, in the order of ``classes_``.

        Arguments as for :meth:`outputs`.
        """
        return self.outputs(X, edges, append=append)

    def predict(
        self,
        X: Any = None,  # noqa: N803
        edges: Any = None,
        *,
        append: bool = False,
    ) -> NDArray[Any]:
        """The most probable class of each node; arguments as for :meth:`outputs`."""
        found = self.outputs(X, edges, append=append)
        return self.classes_[found.argmax(axis=1)]

    def _targets(self, labels: GivenLabels) -> NDArray[np.int64]:
        codes, self.classes_ = number_classes(labels)
        return codes.numpy()

    def _class_names(self) -> list[str]:
        return [str(name) for name in self.classes_.tolist()]

    def _objective(self, target: NDArray[np.int64]) -> Objective:
        metric = self.metric
        if metric is None:
            sizes = np.bincount(target[target >= 0])
            rare = len(sizes) == 2 and sizes[1] < _RARE * sizes.sum()
            metric = "average_precision" if rare else "accuracy"
        check_choice("metric", metric, metrics_for(regression=False))
        if METRICS[metric].is_ranking and len(self.classes_) != 2:
            raise UsageError(
                f"metric={metric!r} is for two classes and there are {len(self.classes_)}"
            )
        return Classification(METRICS[metric])
