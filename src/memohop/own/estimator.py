"""The base of all estimators: a search among models of a portfolio, by scikit-learn's rules."""

from __future__ import annotations

import os
import time as clock
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.base import BaseEstimator
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_consistent_length, check_is_fitted, validate_data
from torch import Tensor

from memohop.data.arguments import real_number, whole_number
from memohop.errors import UsageError, check_choice
from memohop.interrupts import interrupted, interrupts_raised, interrupts_wait
from memohop.own import keep
from memohop.own.candidates.catalogue import families
from memohop.own.candidates.family import Family
from memohop.own.ensemble import Ensemble
from memohop.own.finish import choose, fit_to_all
from memohop.own.folder import SavedModel
from memohop.own.inputs import Given, GivenLabels, as_given
from memohop.own.parallel import search_with
from memohop.own.portfolio import Progress
from memohop.own.pose import given_split, pose
from memohop.own.problem import Inputs, Outputs, Problem
from memohop.own.record import FitRecord, make_record
from memohop.training import Rules
from memohop.training.metrics import metrics_for
from memohop.training.objective import Objective

if TYPE_CHECKING:
    from memohop.data.tables.columns import ColumnEncoder
    from memohop.own.workers import Workers

_SEEDS = 2**31 - 1
_PUNCTUAL = 0.98  # of the time: the last of the final fits takes a moment to end


class GraphEstimator(BaseEstimator, ABC):  # type: ignore[misc]
    """What classifiers and regressors of nodes have in common.

    ``fit`` tries linear models and boosted trees on the columns, the same with features of the
    neighbours, and networks, with and without memory-based message passing. It chooses by
    validation nodes alone, and keeps the best model or an ensemble of a few. ``report_`` shows the
    score of the columns, the gain from the graph and the gain from memory, on unused test nodes.

    A graph is a feature matrix ``X`` (dense or sparse, a row for each node) with ``edges``; or a
    PyG ``Data``; or the result of ``memohop.read_graph``. ``edges`` is a ``[2, arcs]`` array of
    whole numbers, sources above targets, or a sparse adjacency matrix; without it, features alone
    decide. A node with the target None or NaN (in a ``Data``: a negative class) is to be predicted.
    If a ``Data`` has masks, they are used.

    Args:
        models: Names of the kinds to choose from, see
            :data:`memohop.own.candidates.catalogue.NAMES`; None for all.
        time: Seconds for everything; None for no limit.
        trials: The most settings of each kind; None for as many as time allows.
        splits: How many splits of the labelled nodes, and models to average. A search on a graph
            that names its validation nodes has this one split, and on a large graph it may have
            fewer, see :meth:`memohop.own.portfolio.Run.leave_out_splits`.
        metric: The score to choose by.
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
        reading_: How ``memohop fit`` read the tables, for ``memohop predict`` to read others; None
            for a model that was fitted in Python.
        n_features_in_: How many features a node has.
    """

    _predicts_numbers: ClassVar[bool]

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

    @interrupts_wait()
    def fit(
        self,
        X: Any,  # noqa: N803
        y: Any = None,
        edges: Any = None,
        *,
        split: int | None = None,
        groups: Any = None,
        progress: Progress = lambda share, doing: None,
        workers: Workers | None = None,
    ) -> Self:
        """Search, choose, score the test nodes once, and fit the chosen models to every label.

        Ctrl-C ends the search, or what comes after it; the best so far is kept, and
        ``report_.stopped`` says so. A second Ctrl-C ends the fit at once, without a model.

        Args:
            X: The graph, or its features.
            y: Targets; None for those of the graph.
            edges: Arcs, if ``X`` is features.
            split: The column of the masks to use, if ``X`` is a ``Data`` with several.
            groups: The group of each node; no split divides a group.
            progress: Called as ``progress(share of the time, current step)`` now and then.
            workers: From :func:`memohop.own.workers.ray_workers`; None to fit in this process.
        """
        begin = clock.monotonic()
        self._check_arguments()
        seed = int(check_random_state(self.random_state).randint(_SEEDS))
        with interrupts_raised():  # there is nothing to keep yet
            given = as_given(X, y, edges)
            if groups is not None:
                given = given._replace(groups=np.asarray(groups))
            problem = self._problem(X, given, split=split, seed=seed)
            families = self._families(seed)
        if workers is not None and not workers.share_search(problem, self.memory):
            families, workers = workers.in_parts(families), None
        kinds = {kind.id: kind for kind in families}
        found = search_with(
            workers,
            problem,
            list(kinds.values()),
            time=self.time,
            trials=self.trials,
            seed=seed,
            progress=progress,
        )
        if not found.complete():
            raise UsageError(
                f"time={self.time} is too short to fit any model to this graph; give more seconds"
            )
        if found.stopped == "interrupted":
            progress(1.0, "keeping the best so far")
        balanced = self._rules().class_weight == "balanced"
        chosen = choose(problem, found, single=not self.ensemble, balanced=balanced)
        record = make_record(
            problem,
            kinds,
            found,
            chosen,
            classes=self._class_names(),
            seconds=clock.monotonic() - begin,
            notes=given.notes,
        )
        left = np.inf if self.time is None else _PUNCTUAL * self.time - (clock.monotonic() - begin)
        if found.stopped == "interrupted":
            left = 0.0
        del found  # with the models that were not chosen: they may be most of the RAM
        self.ids_ = np.arange(problem.nodes) if given.ids is None else given.ids
        self.encoder_: ColumnEncoder | None = given.encoder
        self.reading_: dict[str, Any] | None = None
        self.has_arcs_ = given.edge_index is not None
        self.graph_ = problem.with_all_labels()
        self.directed_ = problem.neighbourhood.directed
        self.overall_ = self.graph_.overall_shares(problem.classes)
        ends = kinds if workers is None else workers.families(kinds)
        model: Ensemble = fit_to_all(problem, ends, chosen, seconds=left, progress=progress)
        if interrupted():
            record = replace(record, stopped="interrupted")
        self.report_: FitRecord = replace(record, seconds=clock.monotonic() - begin)
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
        weight = None if sample_weight is None else np.asarray(sample_weight)[labels.known]
        return self._score(labels.names, found[labels.known], weight)

    def own_graph(self) -> Inputs:
        """The graph of ``fit``; a ``UsageError`` if the model was saved without it."""
        check_is_fitted(self)
        if not hasattr(self, "graph_"):
            raise UsageError("this model was saved without its graph; give the graph again")
        return self.graph_

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the model into a folder; see :mod:`memohop.own.folder`."""
        check_is_fitted(self)
        keep.save(self, path)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> GraphEstimator:
        """The model that was saved in a folder."""
        return keep.load(SavedModel(path), [cls])

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
        if self.metric is not None:
            check_choice("metric", self.metric, metrics_for(regression=self._predicts_numbers))

    def _families(self, seed: int) -> list[Family]:
        """The kinds of model to choose from."""
        return families(
            self.models, rules=self._rules(), seed=seed, device=self.device, memory=self.memory
        )

    def _problem(self, graph: Any, given: Given, *, split: int | None, seed: int) -> Problem:
        """The problem to solve."""
        own = given_split(graph, split)
        x = self._features(given, reset=True)
        if given.labels is None:
            raise UsageError(
                f"{type(self).__name__} requires y to be passed, but the target y is None; give "
                "one target for each node, None or NaN where it is not known"
            )
        check_consistent_length(x, given.labels.known)
        target = self._targets(given.labels)
        return pose(
            x,
            target,
            self._objective(target),
            given,
            own,
            classes=self._class_names(),
            splits=self.splits,
            seed=seed,
        )

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

    def _rules(self) -> Rules:
        """How networks are trained."""
        return Rules()

    @abstractmethod
    def _targets(self, labels: GivenLabels) -> NDArray[Any]:
        """Class numbers, or the numbers to predict, of all nodes."""

    @abstractmethod
    def _objective(self, target: NDArray[Any]) -> Objective:
        """Loss and score."""

    @abstractmethod
    def _class_names(self) -> list[str]:
        """The names of the classes; empty if numbers are predicted."""

    @abstractmethod
    def _score(self, truth: NDArray[Any], found: Outputs, weight: NDArray[Any] | None) -> float:
        """The metric of the outputs for some nodes, given their targets."""
