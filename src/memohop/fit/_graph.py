"""A graph to predict on: columns, arcs, targets, and what is known of them."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray
from scipy import sparse

from memohop.data.arcs import ArcAttribute, check_arcs
from memohop.errors import UsageError
from memohop.fit._neighbourhood import Matrix, Neighbourhood
from memohop.fit._saved import Saved, Sizes
from memohop.fit._values import ValueLabels
from memohop.fit._views import (
    combinations,
    rarely_zero,
)
from memohop.training.task import make_inputs

if TYPE_CHECKING:
    from memohop.networks import NodeModel
    from memohop.pyg import Data

_SPARSE = ("x.data", "x.indices", "x.indptr")  # columns that are saved as a sparse matrix


@dataclass(frozen=True, eq=False)
class Inputs:
    """A graph to predict on.

    Attributes:
        x: The columns as features, ``[nodes, features]``, dense or sparse.
        arcs: ``[2, arcs]``, sources above targets.
        y: The targets that a model may use, ``[nodes]``: class numbers, -1 for nodes without a
            label, or numbers, NaN for nodes without one.
        of_fit: How many of the first nodes are those of the graph of ``fit``, in its order: all
            of them or none.
        directed: Whether directions count; by default, if some arc lacks its opposite.
        overall: The class shares, or the mean, to assume for nodes without labelled neighbours; by
            default those of ``y``.
        weights: Of the arcs, ``[arcs]``, in units of the mean weight of the graph of ``fit``; by
            default all count alike, with weight 1.
        attributes: What else is known of the arcs, ``[arcs, attributes]``; by default nothing.
        described: What each attribute is.
        hidden: Nodes of the graph of ``fit`` to treat as if they had come later: the rows that
            models have for them are not used; by default none.
        of_edges: How many of the columns, the last ones, are statistics of a node's edges.
        times: Of the nodes, ``[nodes]``, NaN where missing: a node collects only from those that
            are earlier or have no time. By default, nodes collect from all.
        words: Which columns are words or other parts of strings, ``[features]``, and so no numbers
            even if they are rarely 0; by default none.
        value_labels: Of another graph than that of ``fit``, the labels of values in that one.
    """

    x: Matrix
    arcs: NDArray[np.int64]
    y: NDArray[Any]
    of_fit: int = field(default=0, kw_only=True)
    directed: bool | None = field(default=None, kw_only=True)
    overall: NDArray[Any] | None = field(default=None, kw_only=True)
    weights: NDArray[np.float32] | None = field(default=None, kw_only=True)
    attributes: NDArray[np.float32] | None = field(default=None, kw_only=True)
    described: tuple[ArcAttribute, ...] = field(default=(), kw_only=True)
    hidden: NDArray[np.bool_] | None = field(default=None, kw_only=True)
    of_edges: int = field(default=0, kw_only=True)
    times: NDArray[np.float64] | None = field(default=None, kw_only=True)
    words: NDArray[np.bool_] | None = field(default=None, kw_only=True)
    value_labels: ValueLabels | None = field(default=None, kw_only=True)

    @property
    def own(self) -> Matrix:
        """The columns that do not say what a node's edges are like."""
        return self.x[:, : self.x.shape[1] - self.of_edges] if self.of_edges else self.x

    @property
    def nodes(self) -> int:
        """The number of nodes in the graph."""
        return len(self.y)

    def overall_shares(self, classes: int) -> NDArray[np.float64]:
        """The share of each class among the labels, or the mean of the numbers."""
        if classes:
            return np.bincount(self.y[self.y >= 0], minlength=classes) / (self.y >= 0).sum()
        return np.array([np.nanmean(self.y)])

    def with_new_nodes(
        self,
        x: Matrix,
        arcs: NDArray[np.int64],
        y: NDArray[Any],
        weights: NDArray[np.float32] | None,
        attributes: NDArray[np.float32] | None = None,
        times: NDArray[np.float64] | None = None,
    ) -> Inputs:
        """The graph with more nodes; ``arcs`` number its own nodes first, and its arcs stay.

        New arcs without weights have that of an average arc, 1. If arcs have attributes, or nodes
        times, new ones must have them.
        """
        both = np.hstack([self.arcs, arcs])
        joined, first = np.unique(both, axis=1, return_index=True)
        if self.weights is not None:
            added = np.ones(arcs.shape[1]) if weights is None else weights
            weights = np.concatenate([self.weights, added]).astype(np.float32)[first]
        if self.attributes is not None:
            assert attributes is not None
            attributes = np.vstack([self.attributes, attributes])[first]
        is_sparse = sparse.issparse(x) or sparse.issparse(self.x)
        return Inputs(
            sparse.vstack([self.x, x], format="csr") if is_sparse else np.vstack([self.x, x]),
            joined,
            np.concatenate([self.y, y]),
            of_fit=self.of_fit,
            directed=self.directed,
            weights=None if self.weights is None else weights,
            of_edges=self.of_edges,
            attributes=None if self.attributes is None else attributes,
            described=self.described,
            times=None if self.times is None or times is None else np.append(self.times, times),
        )

    def passed(self, network: NodeModel, data: Data) -> Any:
        """What a network in evaluation mode returns for the nodes of a graph, as it takes it."""
        return network(*make_inputs(data, network, torch.device("cpu")))

    def saved(self) -> Saved:
        """What :meth:`from_saved` needs, of the graph of ``fit``."""
        arrays = {"arcs": self.arcs, "y": self.y}
        if sparse.issparse(self.x):
            arrays |= {name: getattr(self.x, name.removeprefix("x.")) for name in _SPARSE}
        else:
            arrays["x"] = self.x
        if self.weights is not None:
            arrays["weights"] = self.weights
        if self.attributes is not None:
            arrays["attributes"] = self.attributes
        if self.times is not None:
            arrays["times"] = self.times
        return Saved({}, arrays)

    @classmethod
    def from_saved(cls, saved: Saved, sizes: Sizes) -> Inputs:
        """The graph that was saved; a ``UsageError`` if it does not match the model."""
        columns = ["x"] if "x" in saved.arrays else _SPARSE
        more = ["attributes"] * bool(sizes.described) + ["times"] * sizes.timed
        if saved.arrays.keys() - {"weights", "ids"} != {*columns, "arcs", "y", *more}:
            raise UsageError(f"it holds {', '.join(sorted(saved.arrays))}")
        arcs, y = saved.arrays["arcs"], saved.arrays["y"]
        if "x" in saved.arrays:
            x = saved.array("x", (sizes.nodes, sizes.features))
        else:
            entries, *places = saved.array("x.data", (None,)), *map(saved.arrays.get, _SPARSE[1:])
            try:
                x = sparse.csr_array((entries, *places), shape=(sizes.nodes, sizes.features))
                x.check_format(full_check=True)
            except (ValueError, TypeError, IndexError) as error:
                raise UsageError(f"x is not a sparse matrix ({error})") from error
        check_arcs(torch.from_numpy(arcs), sizes.nodes)
        weights = saved.array("weights", arcs.shape[1:]) if "weights" in saved.arrays else None
        if weights is not None and (weights < 0).any():
            raise UsageError("there are arcs with a negative weight")
        attributes = None
        if sizes.described:
            attributes = saved.array("attributes", (arcs.shape[1], len(sizes.described)))
        times = saved.arrays["times"] if sizes.timed else None
        if times is not None and (times.shape != (sizes.nodes,) or times.dtype != np.float64):
            raise UsageError(f"times has shape {list(times.shape)} and type {times.dtype}")
        if y.shape != (sizes.nodes,) or y.dtype != (np.int64 if sizes.classes else np.float64):
            raise UsageError(f"y has shape {list(y.shape)} and type {y.dtype}")
        if sizes.classes and not -1 <= y.min() <= y.max() < sizes.classes:
            raise UsageError(f"y goes from {y.min()} to {y.max()}")
        known = y >= 0 if sizes.classes else ~np.isnan(y)
        if not known.any() or np.isinf(y).any():
            raise UsageError("y has no label, or one that is infinite")
        return Inputs(
            x,
            arcs,
            y,
            of_fit=sizes.nodes,
            directed=sizes.directed,
            weights=weights,
            of_edges=sizes.of_edges,
            attributes=attributes,
            described=sizes.described,
            times=times,
        )

    @cached_property
    def neighbourhood(self) -> Neighbourhood:
        """The adjacency matrix and its products, computed once for all candidates."""
        return Neighbourhood(
            self.arcs,
            self.nodes,
            self.weights,
            self.directed,
            self.times,
            self.attributes,
            self.described,
        )

    def as_received(self) -> tuple[NDArray[np.int64], NDArray[np.float32] | None]:
        """All arcs and their weights; with times, from each node to those it may collect from."""
        if self.times is None:
            return self.arcs, self.weights
        both = sparse.coo_array(self.neighbourhood.both)
        arcs = np.stack(both.coords).astype(np.int64)
        return arcs, None if self.weights is None else both.data

    @cached_property
    def numbers(self) -> NDArray[np.int64]:
        """The columns of nodes that are rarely 0."""
        return rarely_zero(
            self.own, None if self.words is None else self.words[: self.own.shape[1]]
        )

    @cached_property
    def all_numbers(self) -> NDArray[np.int64]:
        """The same, with statistics of edges."""
        return rarely_zero(self.x, self.words) if self.of_edges else self.numbers

    @cached_property
    def combinations(self) -> NDArray[np.float32]:
        """Combinations of the columns of nodes, computed once for all views."""
        return combinations(self.own, self.numbers)

    @cached_property
    def all_combinations(self) -> NDArray[np.float32]:
        """The same, with statistics of edges."""
        return combinations(self.x, self.all_numbers) if self.of_edges else self.combinations
