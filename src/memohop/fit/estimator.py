"""The base of all estimators: a search among models of a portfolio, by scikit-learn's rules."""

from __future__ import annotations

import os
import time as clock
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_consistent_length, check_is_fitted

from memohop.data.arcs import in_unit, mean_weight
from memohop.data.folds import Masks, make_masks
from memohop.errors import UsageError, check_choice, real_number, whole_number
from memohop.fit import _keep as keep
from memohop.fit._candidate import Family, SearchProgress, by_the_clock, until
from memohop.fit._ensemble import choose, fit_to_all
from memohop.fit._given import Given, GivenLabels, given_to_fit, labels_of
from memohop.fit._graph import Inputs
from memohop.fit._inputs import checked_features, of_edges, to_predict
from memohop.fit._portfolio import search
from memohop.fit._problem import Outputs, Problem
from memohop.fit._scorable import check_scorable
from memohop.fit._values import ValueLabels, many_valued
from memohop.fit._verdict import make_record
from memohop.fit._workers import Workers, restoring_threads
from memohop.fit.candidates.catalogue import check_applicable, families
from memohop.interrupts import interrupted, interrupts_raised, interrupts_wait
from memohop.ram import release_freed_ram
from memohop.training import Rules
from memohop.training.metrics import metrics_for
from memohop.training.objective import Objective

_SEEDS = 2**31 - 1
_PUNCTUAL = 0.98  # of the time: the last of the final fits takes a moment to end
_LATER = 0.3  # share of the time left after the search to see what later nodes lack, at most


@dataclass(kw_only=True, eq=False, repr=False)
class GraphEstimator(BaseEstimator, ABC):  # type: ignore[misc]
    """What classifiers and regressors of nodes have in common.

    ``fit`` tries linear models, trees and nearest neighbours on the columns, the first two also
    with features of the neighbours, and networks, with and without memory-based message passing. It
    chooses by validation nodes alone, and keeps the best model or an ensemble of a few. ``report_``
    shows the score of the columns, the gain from the graph and the gain from memory, on unused test
    nodes.

    A graph is a feature matrix ``X`` (dense or sparse, a row for each node) with ``edges``; or a
    PyG ``Data``; or the result of ``memohop.read_graph``; or a NetworkX graph, whose other node
    attributes are the columns, with the edge attribute ``weight`` as weights if there is one.
    ``edges`` is a ``[2, arcs]`` array of whole numbers, sources above targets, or a sparse
    adjacency matrix; without it, features alone decide. A node with the target None or NaN (in a
    ``Data``: a negative class) is to be predicted. If a ``Data`` has masks, they are used.

    Args:
        models: Names of the kinds to choose from, see
            :func:`memohop.fit.candidates.catalogue.names`; None for all.
        time: Seconds for everything; None for no limit. Without ``trials``, a search takes fewer
            threads where other processes keep the cores busy.
        trials: The most settings of each kind; None for as many as time allows.
        splits: How many splits of the labelled nodes, and models to average. A search on a graph
            that names its validation nodes has this one split, and on a large graph it may have
            fewer, see :mod:`memohop.fit._portfolio`.
        metric: The score to choose by.
        ensemble: Whether several candidates may be kept together.
        random_state: Decides splits, settings, weights and dropout.
        device: The device to train networks on, ``cpu`` or ``cuda``.
        memory: The most bytes that the process may hold; by default what the device can spare.
            Kinds of model that need more are left out; if all do, the fit is refused.

    Attributes:
        report_: Scores, comparisons and verdict, a :class:`~memohop.fit.FitRecord`.
        model_: The kept model, an :class:`~memohop.fit._ensemble.Ensemble`.
        graph_: The graph of ``fit``.
        ids_: The names of its nodes; their numbers if they have no names.
        mean_weight_: The mean weight of its arcs, by which models divide all weights, so that their
            unit does not matter; None if they had no weights, and models count none.
        arc_attributes_: What each attribute of its arcs is.
        encoder_: How the columns of tables became features; None for arrays.
        value_labels_: The labels of values of columns, for other graphs; None if no column has many
            values that nodes share.
        reading_: How its tables were read, to read others alike; None for arrays.
        n_features_in_: How many features a node has.
    """

    models: Sequence[str] | None = None
    time: float | None = 300
    trials: int | None = None
    splits: int = 5
    metric: str | None = None
    ensemble: bool = True
    random_state: int | np.random.RandomState | None = 0
    device: str = "cpu"
    memory: int | None = None

    _predicts_numbers: ClassVar[bool]

    @interrupts_wait()
    @restoring_threads()
    def fit(
        self,
        X: Any,
        y: Any = None,
        edges: Any = None,
        *,
        split: int | None = None,
        groups: Any = None,
        progress: SearchProgress = lambda share, doing: None,
        workers: Workers | None = None,
        began: float | None = None,
    ) -> Self:
        """Search, choose, score the test nodes once, and fit the chosen models to every label.

        Ctrl-C ends the search, or what comes after it; the best so far is kept, and
        ``report_.stopped`` says so. A second Ctrl-C ends the fit at once, without a model.

        Args:
            X: The graph, or its features.
            y: Targets; None for those of the graph; of a NetworkX graph the name of the node
                attribute that holds them.
            edges: Arcs, if ``X`` is features.
            split: The column of the masks to use, if ``X`` is a ``Data`` with several.
            groups: The group of each node, None for one alone; no split divides a group, and each
                counts as one in intervals.
            progress: Called as ``progress(share of the time, current step)`` now and then.
            workers: From :func:`memohop.fit.ray_workers`; None to fit in this process.
            began: When ``time`` began, by ``time.monotonic``; by default now.
        """
        begin = clock.monotonic() if began is None else began
        whole = np.inf if self.time is None else self.time
        end, tell = begin + _PUNCTUAL * whole, by_the_clock(progress, begin, whole)
        self._check_arguments()
        seed = int(check_random_state(self.random_state).randint(_SEEDS))
        with interrupts_raised():  # there is nothing to keep yet
            given = given_to_fit(X, y, edges, groups, split)
            self.mean_weight_ = None if given.weights is None else mean_weight(given.weights)
            problem = self._problem(given, seed)
            families = self._families(seed)
            check_applicable(families, problem, self.memory)
        if workers is not None and not workers.share_search(problem, self.memory):
            families, workers = workers.in_parts(families), None
        kinds = {kind.id: kind for kind in families}
        tried = search(
            problem,
            families,
            time=max(begin + whole - clock.monotonic(), 0.0),
            trials=self.trials,
            seed=seed,
            progress=tell,
            workers=workers,
        )
        if not tried.complete():
            raise UsageError(
                f"time={self.time} is too short to fit any model to this graph; give more seconds"
            )
        if tried.stopped == "interrupted":
            progress(1.0, "keeping the best so far")
        tell(1.0, "choosing")
        chosen = choose(
            problem,
            tried,
            single=not self.ensemble,
            balanced=self._balanced,
            look=until(end),
        )
        tell(1.0, "comparing on the test nodes")
        now = clock.monotonic()
        record = make_record(
            problem,
            kinds,
            tried,
            chosen,
            classes=list(map(str, self._classes())),
            notes=given.notes,
            named=getattr(self, "positive", None) is not None
            or problem.objective.metric.id == "average_precision",
            look=until(now + _LATER * max(end - now, 0.0)),
        )
        seconds = 0.0 if tried.stopped == "interrupted" else end - clock.monotonic()
        del tried  # with the models that were not chosen: they may be most of the RAM
        release_freed_ram()
        self.ids_ = np.arange(problem.nodes) if given.ids is None else given.ids
        self.encoder_ = given.encoder
        self.arc_attributes_ = list(given.described)
        self.reading_ = None if given.reading is None else dict(given.reading)
        self.has_arcs_ = given.edge_index is not None
        self.graph_ = problem.with_all_labels()
        self.directed_ = problem.neighbourhood.directed
        self.overall_ = self.graph_.overall_shares(problem.classes)
        self.value_labels_ = ValueLabels.of(
            problem.x, problem.values, self.graph_.y, problem.classes, problem.times
        )
        model = fit_to_all(problem, kinds, chosen, seconds=seconds, progress=tell, workers=workers)
        stopped = "interrupted" if interrupted() else record.stopped
        self.report_ = replace(record, stopped=stopped, seconds=clock.monotonic() - begin)
        if not any(each.takes_attributes for part in model.components for each in part.models):
            self._forget_attributes()
        self.model_ = model
        return self

    def _forget_attributes(self) -> None:
        """Ask no later graph for attributes of arcs that the kept models do without."""
        self.graph_ = replace(self.graph_, attributes=None, described=())
        self.arc_attributes_ = []
        if self.encoder_ is not None:
            self.encoder_ = self.encoder_.without_attributes()

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
        if append and (X is None or as_another_graph):
            what = "X is None" if X is None else "as_another_graph=True"
            raise UsageError(f"append=True, but {what}; give the new nodes of the graph of fit")
        inputs, _ = to_predict(self, X, edges, append=append, as_another_graph=as_another_graph)
        outputs = self.model_.outputs(inputs)
        return outputs[self.graph_.nodes :] if append else outputs

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
        inputs, labels = to_predict(self, X, edges, y, as_another_graph=as_another_graph)
        if labels is None and X is None:
            labels = labels_of(self.own_graph().y, self._classes())
        if labels is None or not labels.known.any():
            lacking = "X has no label, and y is None" if y is None else "y has no label"
            raise UsageError(
                f"{lacking}; give y, the true target of each node, None or NaN where unknown"
            )
        outputs = self.model_.outputs(inputs)
        check_consistent_length(outputs, labels.known)
        weight = None if sample_weight is None else np.asarray(sample_weight)[labels.known]
        return self._score(labels.names, outputs[labels.known], weight)

    def is_graph_of_fit(self, X: Any, edges: Any = None) -> bool:
        """Whether a graph is recognised as that of ``fit``; arguments as for :meth:`outputs`."""
        inputs, _ = to_predict(self, X, edges)
        return inputs is getattr(self, "graph_", None)

    def own_graph(self) -> Inputs:
        """The graph of ``fit``; a ``UsageError`` if the model was saved without it."""
        check_is_fitted(self)
        if not hasattr(self, "graph_"):
            raise UsageError("this model was saved without its graph; give the graph again")
        return self.graph_

    @abstractmethod
    def _score(self, truth: NDArray[Any], outputs: Outputs, weight: NDArray[Any] | None) -> float:
        """The metric of the outputs for some nodes, given their targets."""

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the model into a folder; see :mod:`memohop.fit._keep`."""
        check_is_fitted(self)
        keep.save(self, path)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> GraphEstimator:
        """The model that was saved in a folder."""
        return keep.load(path, [cls])

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
        check_choice("class_weight", getattr(self, "class_weight", None), (None, "balanced"))

    def _families(self, seed: int) -> list[Family]:
        """The kinds of model to choose from."""
        rules = Rules(class_weight="balanced" if self._balanced else "none")
        return families(self.models, rules=rules, seed=seed, device=self.device, memory=self.memory)

    def _problem(self, given: Given, seed: int) -> Problem:
        """The problem to solve."""
        x = checked_features(self, given, reset=True)
        if given.labels is None:
            raise UsageError(
                f"{type(self).__name__} requires y to be passed, but the target y is None; give "
                "one target for each node, None or NaN where it is not known"
            )
        check_consistent_length(x, given.labels.known, given.groups)
        y, objective = self._goal(given.labels)
        masks = self._masks(given, y, objective, seed)
        arcs, weights = given.arcs(x.shape[0]), in_unit(given.weights, self.mean_weight_)
        problem = Problem(
            x,
            arcs,
            y,
            objective,
            masks,
            groups=given.groups,
            weights=weights,
            of_edges=of_edges(given.encoder),
            words=None if given.encoder is None else given.encoder.words,
            attributes=given.attributes,
            described=given.described,
            times=given.times,
            undecided=given.undecided,
        )
        if given.encoder is not None:
            values = many_valued(x, given.encoder.of_values, max(problem.classes, 1))
            problem = replace(problem, values=values)
        if given.encoder is not None and given.encoder.places:
            problem = replace(problem, places=given.encoder.coordinates)
        check_scorable(problem, self._classes())
        return problem

    def _masks(self, given: Given, y: NDArray[Any], objective: Objective, seed: int) -> Masks:
        """The parts of each split."""
        return make_masks(
            y,
            splits=self.splits,
            seed=seed,
            own=given.own,
            groups=given.groups,
            both_classes=objective.metric.is_ranking,
        )

    @property
    def _balanced(self) -> bool:
        """Whether all classes have the same weight in training."""
        return getattr(self, "class_weight", None) == "balanced"

    @abstractmethod
    def _goal(self, labels: GivenLabels) -> tuple[NDArray[Any], Objective]:
        """Class numbers, or the numbers to predict, of all nodes; and loss and score."""

    def _classes(self) -> list[Any]:
        """The classes; none if numbers are predicted."""
        return getattr(self, "classes_", np.empty(0)).tolist()
