"""A classifier for the nodes of your own graph, with scikit-learn's conventions."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import torch
from numpy.typing import NDArray
from scipy import sparse
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_consistent_length, check_is_fitted, validate_data
from torch import Tensor

from memohop.data.arguments import real_number, whole_number
from memohop.errors import UsageError, check_choice
from memohop.inference import probabilities
from memohop.networks.registry import entry
from memohop.own import keep
from memohop.own.folder import SavedModel
from memohop.own.inputs import Given, as_given, number_classes
from memohop.own.model import OwnModel
from memohop.own.partition import given_masks, make_masks
from memohop.own.report import make_report
from memohop.own.search import search
from memohop.own.space import MODEL
from memohop.pyg import Data
from memohop.training import Rules
from memohop.training.metrics import METRICS, metrics_for, of_any_classes
from memohop.training.trainer import Progress

if TYPE_CHECKING:
    from memohop.data.tables.columns import ColumnEncoder

_SEEDS = 2**31 - 1


class MMPClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """Labels the nodes of a graph by memory-based message passing (``gcn+mmp``).

    ``fit`` splits the labelled nodes into training, validation and test nodes several times, class
    by class, and searches a small space of settings on validation alone. It does the same, with as
    many trials, for ``mlp``, which does not use the graph, and for ``gcn``, which has no memory;
    ``report_`` says whether the graph helps at all. The networks of the best setting of
    ``gcn+mmp``, one for each split, are kept; their probabilities are averaged.

    A graph is a feature matrix ``X`` (dense or sparse, a row for each node) with ``edges``; or a
    PyG ``Data``; or the result of ``memohop.read_graph``. ``edges`` is a ``[2, arcs]`` array of
    whole numbers, sources above targets, or a sparse adjacency matrix; without it, features alone
    decide. Labels are anything that can be sorted. A node with the label None or NaN (in a
    ``Data``: a negative one) is not labelled: it passes messages on, and its class is predicted.

    If a ``Data`` has a ``train_mask`` and a ``test_mask``, there are no other splits: its test
    nodes are used for testing alone, its validation nodes choose, and the networks differ in their
    initial weights. Without a ``val_mask``, each network chooses by another quarter of the
    training nodes.

    Args:
        trials: How many settings of each model are tried.
        time: Seconds for the search, after everything is compiled; None for no limit. A limit
            lowers the number of trials; if all of them end in time, the result is the same as
            without a limit. If even the first trial of each model would not, there are fewer
            epochs, and the report says so.
        splits: How often the labelled nodes are split, and how many networks predict together; at
            least 2.
        epochs: The most epochs of a trial.
        patience: Epochs without a better validation score after which a network stops.
        metric: The score to maximise: ``accuracy``, ``balanced_accuracy``, or, for two classes of
            which the second one counts as positive, ``roc_auc`` or ``average_precision``.
        class_weight: ``balanced`` to give all classes the same weight in training; None
            to give all nodes the same weight.
        random_state: Decides splits, settings, weights and dropout.
        device: The device to train on, ``cpu`` or ``cuda``.
        memory: The most bytes that the process may hold; by default what the device can spare.

    Attributes:
        classes_: The classes, in sorted order.
        report_: Scores, comparison and verdict, a ``FitReport``.
        model_: The networks.
        graph_: The graph of ``fit``, as a ``Data`` with class numbers and masks.
        ids_: The names of its nodes; their numbers if they have no names.
        encoder_: How the columns of tables became features; None for arrays.
        reading_: How ``memohop fit`` read the tables, for ``memohop predict`` to read others; None
            for a classifier that was fitted in Python.
        n_features_in_: How many features a node has.

    Example:
        >>> import memohop
        >>> data = memohop.load("csbm", homophily=0.1, nodes=60)
        >>> classifier = memohop.MMPClassifier(trials=1, splits=2, epochs=3).fit(data, split=0)
        >>> classifier.predict().shape
        (60,)
    """

    def __init__(
        self,
        *,
        trials: int = 16,
        time: float | None = None,
        splits: int = 5,
        epochs: int = 200,
        patience: int | None = 50,
        metric: str = "accuracy",
        class_weight: str | None = None,
        random_state: int | np.random.RandomState | None = 0,
        device: str = "cpu",
        memory: int | None = None,
    ) -> None:
        self.trials, self.time, self.splits = trials, time, splits
        self.epochs, self.patience = epochs, patience
        self.metric, self.class_weight, self.random_state = metric, class_weight, random_state
        self.device, self.memory = device, memory

    def fit(
        self,
        X: Any,  # noqa: N803
        y: Any = None,
        edges: Any = None,
        *,
        split: int | None = None,
        progress: Progress | None = None,
    ) -> Self:
        """Search, compare, and keep the best; Ctrl-C ends the search and keeps the best so far.

        Args:
            X: The graph, or its features.
            y: Labels; None for those of the graph.
            edges: Arcs, if ``X`` is features.
            split: The column of the masks to use, if ``X`` is a ``Data`` with masks of several.
            progress: Called as ``progress(done, total)`` from time to time.
        """
        self._check_arguments()
        if split is not None and not isinstance(X, Data):
            raise UsageError(f"split={split}, but X is not a Data with masks; leave it out")
        own_masks = given_masks(X, split) if isinstance(X, Data) else {}
        given = as_given(X, y, edges)
        x = self._features(given, reset=True)
        if given.labels is None:
            raise UsageError(
                "MMPClassifier requires y to be passed, but the target y is None; give one label "
                "for each node, None or NaN where it is not known"
            )
        check_consistent_length(x, given.labels.known)
        codes, self.classes_ = number_classes(given.labels)
        if METRICS[self.metric].is_ranking:
            self._check_both_classes(codes[own_masks["test_mask"]] if own_masks else codes)
        seed = int(check_random_state(self.random_state).randint(_SEEDS))
        train, val, test = make_masks(
            codes, self.classes_, own_masks, splits=self.splits, seed=seed
        )
        self.graph_ = Data(
            x=torch.from_numpy(x.toarray() if sparse.issparse(x) else x),
            y=codes,
            edge_index=given.arcs(len(codes)),
            train_mask=train,
            val_mask=val,
            test_mask=test,
            metric=self.metric,
        )
        self.ids_ = np.arange(len(codes)) if given.ids is None else given.ids
        self.encoder_: ColumnEncoder | None = given.encoder
        self.reading_: dict[str, Any] | None = None
        self.has_arcs_ = given.edge_index is not None
        found = search(
            self.graph_,
            trials=self.trials,
            time=self.time,
            epochs=self.epochs,
            patience=self.patience,
            rules=Rules(class_weight="balanced" if self.class_weight else "none"),
            seed=seed,
            device=self.device,
            memory=self.memory,
            progress=progress,
        )
        self.report_ = make_report(found, self.graph_, self.classes_, given.notes)
        best = found.best(MODEL)
        states = tuple(result.state or {} for result in best.selection.results)
        # With the defaults: a fitted model must not change when they do.
        options = entry(MODEL).options() | dict(best.trial.options)
        self.model_ = OwnModel(x.shape[1], len(self.classes_), options, states)
        return self

    def predict_proba(self, X: Any = None, edges: Any = None) -> NDArray[np.float32]:  # noqa: N803
        """The probability of each class, ``[nodes, classes]``, in the order of ``classes_``.

        Args:
            X: Another graph with the same features, or its features; None for the graph of ``fit``.
            edges: Arcs, if ``X`` is features; needed if ``fit`` had some.
        """
        check_is_fitted(self)
        if X is None:
            graph = self.own_graph()
            return probabilities(self.model_.networks(), graph.x, graph.edge_index)
        given = as_given(X, None, edges)
        x = self._features(given, reset=False)
        if given.edge_index is None and self.has_arcs_:
            raise UsageError(
                "edges is None, but the classifier was fitted on a graph with arcs; give edges "
                "(edges=[] for nodes without any), or leave out X for the graph of fit"
            )
        inputs = x if sparse.issparse(x) else torch.from_numpy(x)
        return probabilities(self.model_.networks(), inputs, given.arcs(x.shape[0]))

    def predict(self, X: Any = None, edges: Any = None) -> NDArray[Any]:  # noqa: N803
        """The most probable class of each node; arguments as for :meth:`predict_proba`."""
        found = self.predict_proba(X, edges)
        return self.classes_[found.argmax(axis=1)]

    def score(
        self,
        X: Any = None,  # noqa: N803
        y: Any = None,
        edges: Any = None,
        sample_weight: Any = None,
    ) -> float:
        """The metric on the labelled nodes of a graph.

        On the graph of ``fit`` it is too high, since the networks were trained on its labels; the
        honest score is in ``report_``. Arguments as for :meth:`predict_proba`; ``y`` may be None if
        the graph has labels, and ``sample_weight`` is the weight of each node.
        """
        found = self.predict_proba(X, edges)
        labels = as_given(X, y, edges).labels
        if labels is None:
            raise UsageError("y is None; give a label for each node, or a graph that has some")
        check_consistent_length(found, labels.known)
        found = found[labels.known]
        weight = None if sample_weight is None else np.asarray(sample_weight)[labels.known]
        metric = METRICS[self.metric]
        if metric.is_ranking:
            return metric.weighted(labels.names == self.classes_[1], found[:, 1], weight)
        return metric.weighted(labels.names, self.classes_[found.argmax(axis=1)], weight)

    def own_graph(self) -> Data:
        """The graph of ``fit``; a ``UsageError`` if the model was saved without it."""
        check_is_fitted(self)
        if not hasattr(self, "graph_"):
            raise UsageError("this model was saved without its graph; give the graph again")
        return self.graph_

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the classifier into a folder; see :mod:`memohop.own.keep`."""
        keep.save(self, path)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> MMPClassifier:
        """The classifier that was saved in a folder."""
        return keep.load(SavedModel(path), MMPClassifier)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "model_")  # set last: an interrupted fit does not count

    def _check_arguments(self) -> None:
        whole_number("trials", self.trials, least=1)
        whole_number("splits", self.splits, least=2)
        whole_number("epochs", self.epochs, least=1)
        if self.time is not None:
            real_number("time", self.time, least=0)
        check_choice("metric", self.metric, metrics_for(regression=False))
        check_choice("class_weight", self.class_weight, (None, "balanced"))

    def _check_both_classes(self, tested: Tensor) -> None:
        """Refuse a ranking metric for more than two classes, or without test nodes of both."""
        if len(self.classes_) != 2:
            raise UsageError(
                f"metric={self.metric!r} is for two classes and there are {len(self.classes_)}; "
                f"use {of_any_classes()}"
            )
        if len(tested[tested >= 0].unique()) < 2:
            raise UsageError(
                f"metric={self.metric!r} needs test nodes of both classes, and test_mask has those "
                f"of one; give it others, or use {of_any_classes()}"
            )

    def _features(self, given: Given, *, reset: bool) -> Any:
        return validate_data(
            self,
            given.x.cpu().numpy() if isinstance(given.x, Tensor) else given.x,
            reset=reset,
            accept_sparse="csr",
            dtype=np.float32,
            order="C",
            copy=reset,  # the graph of fit must not change with the caller's array
            force_writeable=True,  # required by PyTorch
        )
