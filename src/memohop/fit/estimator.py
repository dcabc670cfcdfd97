"""The base of all estimators: a search among models of a portfolio, by scikit-learn's rules."""

from __future__ import annotations

import os
import time as clock
from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_consistent_length, check_is_fitted

from memohop.data.arcs import in_unit, mean_weight
from memohop.data.arguments import real_number, whole_number
from memohop.errors import UsageError, check_choice
from memohop.fit import keep
from memohop.fit.candidates.catalogue import check_applicable, families
from memohop.fit.candidates.family import Family
from memohop.fit.finish import choose, fit_to_all
from memohop.fit.inputs import Given, GivenLabels, number_groups, read_given
from memohop.fit.opening import check_room
from memohop.fit.parallel import search_with
from memohop.fit.portfolio import Progress
from memohop.fit.pose import given_split, pose
from memohop.fit.predictor import GraphPredictor
from memohop.fit.problem import Problem
from memohop.fit.threads import restoring_threads
from memohop.fit.verdict import make_record
from memohop.interrupts import interrupted, interrupts_raised, interrupts_wait
from memohop.ram import release_freed_ram
from memohop.training import Enough, Rules
from memohop.training.metrics import metrics_for
from memohop.training.objective import Objective

if TYPE_CHECKING:
    from memohop.fit.workers import Workers

_SEEDS = 2**31 - 1
_PUNCTUAL = 0.98  # of the time: the last of the final fits takes a moment to end
_LATER = 0.3  # share of the time left after the search to see what later nodes lack, at most


@dataclass(kw_only=True, eq=False, repr=False)
class GraphEstimator(GraphPredictor):
    """What classifiers and regressors of nodes have in common.

    ``fit`` tries linear models and boosted trees on the columns, the same with features of the
    neighbours, and networks, with and without memory-based message passing. It chooses by
    validation nodes alone, and keeps the best model or an ensemble of a few. ``report_`` shows the
    score of the columns, the gain from the graph and the gain from memory, on unused test nodes.

    A graph is a feature matrix ``X`` (dense or sparse, a row for each node) with ``edges``; or a
    PyG ``Data``; or the result of ``memohop.read_graph``; or a NetworkX graph, whose other node
    attributes are the columns, with the edge attribute ``weight`` as weights if there is one.
    ``edges`` is a ``[2, arcs]`` array of whole numbers, sources above targets, or a sparse
    adjacency matrix; without it, features alone decide. A node with the target None or NaN (in a
    ``Data``: a negative class) is to be predicted. If a ``Data`` has masks, they are used.

    Args:
        models: Names of the kinds to choose from, see
            :data:`memohop.fit.candidates.catalogue.NAMES`; None for all.
        time: Seconds for everything; None for no limit. Without ``trials``, a search takes fewer
            threads where other processes keep the cores busy.
        trials: The most settings of each kind; None for as many as time allows.
        splits: How many splits of the labelled nodes, and models to average. A search on a graph
            that names its validation nodes has this one split, and on a large graph it may have
            fewer, see :meth:`memohop.fit.portfolio.Run.leave_out_splits`.
        metric: The score to choose by.
        ensemble: Whether several candidates may be kept together.
        random_state: Decides splits, settings, weights and dropout.
        device: The device to train networks on, ``cpu`` or ``cuda``.
        memory: The most bytes that the process may hold; by default what the device can spare.
            Kinds of model that need more are left out; if all do, the fit is refused.

    Attributes:
        report_: Scores, comparisons and verdict, a :class:`~memohop.fit.record.FitRecord`.
        model_: The kept model, an :class:`~memohop.fit.ensemble.Ensemble`.
        graph_: The graph of ``fit``.
        ids_: The names of its nodes; their numbers if they have no names.
        mean_weight_: The mean weight of its arcs, by which models divide all weights, so that their
            unit does not matter; None if they had no weights, and models count none.
        encoder_: How the columns of tables became features; None for arrays.
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

    @interrupts_wait()
    @restoring_threads
    def fit(
        self,
        X: Any,
        y: Any = None,
        edges: Any = None,
        *,
        split: int | None = None,
        groups: Any = None,
        progress: Progress = lambda share, doing: None,
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
            workers: From :func:`memohop.fit.workers.ray_workers`; None to fit in this process.
            began: When ``time`` began, by ``time.monotonic``; by default now.
        """
        begin = clock.monotonic() if began is None else began
        whole = np.inf if self.time is None else self.time

        def passed() -> float:
            return clock.monotonic() - begin

        def left() -> float:
            return _PUNCTUAL * whole - passed()

        def tell(share: float, doing: str) -> None:
            progress(share if self.time is None else min(passed() / max(whole, 1e-9), 1.0), doing)

        self._check_arguments()
        seed = int(check_random_state(self.random_state).randint(_SEEDS))
        with interrupts_raised():  # there is nothing to keep yet
            given = read_given(X, y, edges)
            self.mean_weight_ = None if given.weights is None else mean_weight(given.weights)
            given = given._replace(weights=in_unit(given.weights, self.mean_weight_))
            if groups is not None:
                given = given._replace(groups=number_groups(groups))
            problem = self._problem(X, given, split=split, seed=seed)
            families = self._families(seed)
            check_applicable(families, problem)
            check_room(problem, families, self.memory)
        if workers is not None and not workers.share_search(problem, self.memory):
            families, workers = workers.in_parts(families), None
        kinds = {kind.id: kind for kind in families}
        search = search_with(
            workers,
            problem,
            list(kinds.values()),
            time=None if self.time is None else max(whole - passed(), 0.0),
            trials=self.trials,
            seed=seed,
            progress=tell,
        )
        if not search.complete():
            raise UsageError(
                f"time={self.time} is too short to fit any model to this graph; give more seconds"
            )
        if search.stopped == "interrupted":
            progress(1.0, "keeping the best so far")
        balanced = self._rules().class_weight == "balanced"
        tell(1.0, "choosing")
        chosen = choose(
            problem, search, single=not self.ensemble, balanced=balanced, look=_until(left)
        )
        tell(1.0, "comparing on the test nodes")
        rest = (1 - _LATER) * max(left(), 0.0)
        record = make_record(
            problem,
            kinds,
            search,
            chosen,
            classes=self._class_names(),
            seconds=passed(),
            notes=given.notes,
            named=getattr(self, "positive", None) is not None,
            look=_until(lambda: left() - rest),
        )
        seconds = 0.0 if search.stopped == "interrupted" else left()
        del search  # with the models that were not chosen: they may be most of the RAM
        release_freed_ram()
        self.ids_ = np.arange(problem.nodes) if given.ids is None else given.ids
        self.encoder_ = given.encoder
        self.reading_ = None if given.reading is None else dict(given.reading)
        self.has_arcs_ = given.edge_index is not None
        self.graph_ = problem.with_all_labels()
        self.directed_ = problem.neighbourhood.directed
        self.overall_ = self.graph_.overall_shares(problem.classes)
        ends = kinds if workers is None else workers.families(kinds)
        model = fit_to_all(problem, ends, chosen, seconds=seconds, progress=tell)
        if interrupted():
            record = replace(record, stopped="interrupted")
        self.report_ = replace(record, seconds=passed())
        self.model_ = model
        return self

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the model into a folder; see :mod:`memohop.fit.keep`."""
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
        check_consistent_length(x, given.labels.known, given.groups)
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

    def _rules(self) -> Rules:
        """How networks are trained."""
        return Rules()

    @abstractmethod
    def _targets(self, labels: GivenLabels) -> NDArray[Any]:
        """Class numbers, or the numbers to predict, of all nodes."""

    @abstractmethod
    def _objective(self, target: NDArray[Any]) -> Objective:
        """Loss and score."""

    def _class_names(self) -> list[str]:
        """The names of the classes; empty if numbers are predicted."""
        return [str(name) for name in getattr(self, "classes_", np.empty(0)).tolist()]


def _until(left: Callable[[], float]) -> Callable[[], None]:
    """What raises ``Enough`` once no seconds are left."""

    def look() -> None:
        if left() <= 0:
            raise Enough

    return look
