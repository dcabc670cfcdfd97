r"""The input of trees and linear models: a node's columns, its neighbours, its row of the graph.

Linear models take the row itself, one feature for each possible neighbour. Trees need few features,
so they take its position: with the adjacency matrix :math:`\mathbf{A}`, degrees :math:`d` and the
leading right singular vectors :math:`\mathbf{V}` of :math:`\mathbf{D}^{-1/2} \mathbf{A}
\mathbf{D}^{-1/2}`, nodes have the positions

.. math:: \mathbf{D}^{-1/2} \mathbf{A} \mathbf{D}^{-1/2} \mathbf{V}

so nodes with the same neighbours have the same position, also those that come later. In a directed
graph there is one for the targets of a node's arcs and one for the sources.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, get_args

import numpy as np
import torch
from numpy.typing import NDArray
from scipy import sparse
from sklearn.decomposition import TruncatedSVD

from memohop.errors import check_choice
from memohop.own.neighbourhood import Matrix
from memohop.own.saved import Saved, Sizes, as_tensors

if TYPE_CHECKING:
    from memohop.own.problem import Inputs

Sees = Literal["columns", "neighbours", "rows", "positions"]
"""Columns alone; also the neighbours' features; also the neighbours, in one of two ways."""


class Feature(NamedTuple):
    """A feature's meaning: its source, and its column, node or direction."""

    source: Literal[
        "own", "one hop", "two hops", "degree", "labels", "rows", "position", "network", "around"
    ]  # networks take own columns and those of the nodes around together
    name: str


_WIDE = 256  # from this many columns on, two hops (and one, if dense) are combined
_COMBINED = 64
_POSITIONS = 32  # singular vectors for each direction
_HOPS: tuple[Literal["one hop", "two hops"], ...] = ("one hop", "two hops")
_ENTRIES = 30_000_000  # the most in one-hop means of sparse columns that stay separate


@dataclass(frozen=True, eq=False)
class View:
    r"""How the features of trees and linear models are made, for one graph and for others.

    Attributes:
        sees: The features that a model uses.
        classes: The number of classes; 0 for numbers.
        nodes: The number of nodes of the graph that the rows belong to.
        components: The combinations ``[combined, features]`` that stand for many columns.
        one_hop_apart: Whether the means over one hop are of the columns themselves.
        basis: For positions, :math:`\mathbf{D}^{-1/2} \mathbf{V}` of each direction side by side.
    """

    sees: Sees
    classes: int
    nodes: int
    components: NDArray[np.float32] | None = None
    one_hop_apart: bool = True
    basis: NDArray[np.float32] | None = None
    _fixed: dict[Inputs, Matrix] = field(default_factory=dict, repr=False)

    @classmethod
    def fit(cls, inputs: Inputs, sees: Sees, classes: int) -> View:
        """Make the view of a graph."""
        x, basis = inputs.x, _basis(inputs) if sees == "positions" else None
        if sees == "columns" or x.shape[1] <= _WIDE:
            return cls(sees, classes, inputs.nodes, basis=basis)
        svd = TruncatedSVD(min(_COMBINED, *(size - 1 for size in x.shape)), random_state=0).fit(x)
        degrees = inputs.neighbourhood.both.sum(axis=1)
        apart = sparse.issparse(x) and float(degrees @ np.diff(x.indptr)) < _ENTRIES
        components = svd.components_.astype(np.float32)
        return cls(sees, classes, inputs.nodes, components, apart, basis)

    def features(self, inputs: Inputs, known: NDArray[Any]) -> Matrix:
        """The features of every node.

        Args:
            inputs: The graph.
            known: The targets that may be used.
        """
        if self.sees == "columns":
            return inputs.x
        if inputs not in self._fixed:  # kept for one graph only: they may be large
            self._fixed.clear()
            self._fixed[inputs] = self._without_labels(inputs)
        shares = inputs.neighbourhood.label_shares(known, self.classes, inputs.overall)
        parts = [self._fixed[inputs], shares]
        if self.sees == "rows":
            parts.append(self._rows(inputs))
        return side_by_side(parts)

    def names(self, inputs: Inputs, columns: Sequence[str]) -> list[Feature]:
        """The meaning of each feature.

        Args:
            inputs: The graph.
            columns: The names of the columns of ``inputs.x``.
        """
        own = [Feature("own", name) for name in columns]
        if self.sees == "columns":
            return own
        few, ways = list(columns), inputs.neighbourhood.ways
        if self.components is not None:
            few = [f"combination {number}" for number in range(1, len(self.components) + 1)]
        found = own + [Feature("degree", name) for name in inputs.neighbourhood.degrees()[1]]
        found += [Feature(hop, name) for hop in _HOPS for name in few]
        if self.components is not None and self.one_hop_apart:
            found += [Feature("one hop", name) for name in columns]
        if self.basis is not None:
            each = self.basis.shape[1] // len(_ends(inputs))
            order = [f"{end}{number}" for end in _ends(inputs) for number in range(1, each + 1)]
            found += [Feature("position", name) for name in order]
        each = max(self.classes, 1) + 1  # the shares or the mean, and the number of labels
        found += [
            Feature("labels", f"{way}{hop}") for way in ways for hop in _HOPS for _ in range(each)
        ]
        if self.sees == "rows":
            found += [Feature("rows", f"{node}") for node in range(self.nodes)]
        return found

    def _without_labels(self, inputs: Inputs) -> Matrix:
        near, x = inputs.neighbourhood, inputs.x
        few: Matrix = x if self.components is None else x @ self.components.T
        if sparse.issparse(few):
            few = few.toarray()
        one = near.mean(few)
        parts = [x, near.degrees()[0], one, near.mean(one)]
        if self.components is not None and self.one_hop_apart:
            parts.append(near.mean(x))
        if self.basis is not None:
            parts.append(self._positions(inputs))
        return side_by_side(parts)

    def _rows(self, inputs: Inputs) -> Matrix:
        if inputs.of_fit != self.nodes:  # another graph: its rows are unknown
            return sparse.csr_array((inputs.nodes, self.nodes), dtype=np.float32)
        rows = inputs.neighbourhood.both[:, : self.nodes]  # arcs to later nodes have no feature
        if inputs.hidden is None:
            return rows
        return sparse.csr_array(rows @ sparse.diags_array((~inputs.hidden).astype(np.float32)))

    def _positions(self, inputs: Inputs) -> NDArray[np.float32]:
        assert self.basis is not None
        if inputs.of_fit != self.nodes:  # another graph: its nodes have no position in this one
            return np.zeros((inputs.nodes, self.basis.shape[1]), dtype=np.float32)
        basis, ends = self.basis, _ends(inputs).values()
        if inputs.hidden is not None:
            basis = np.where(inputs.hidden[:, None], np.float32(0), basis)
        bases = np.split(basis, len(ends), axis=1)
        found = [
            _root_of_degrees(end)[:, None] * (end[:, : self.nodes] @ basis)
            for end, basis in zip(ends, bases, strict=True)
        ]
        return np.hstack(found).astype(np.float32)

    def saved(self) -> Saved:
        """What :meth:`from_saved` needs."""
        about = {name: getattr(self, name) for name in ("sees", "one_hop_apart")}
        tensors = {"components": self.components, "basis": self.basis}
        return Saved(about, as_tensors(**{k: v for k, v in tensors.items() if v is not None}))

    @classmethod
    def from_saved(cls, saved: Saved, sizes: Sizes) -> View:
        """The view that was saved."""
        check_choice("sees", sees := saved.value("sees", str), get_args(Sees))
        view = cls(sees, sizes.classes, sizes.nodes, None, saved.value("one_hop_apart", bool))
        if sees == "positions":
            width = saved.tensors.get("basis", torch.empty(0)).numel() // sizes.nodes
            view = replace(view, basis=saved.array("basis", (sizes.nodes, width)))
        if "components" in saved.tensors:
            rows = saved.tensors["components"].numel() // sizes.features
            view = replace(view, components=saved.array("components", (rows, sizes.features)))
        return view


def _ends(inputs: Inputs) -> dict[str, sparse.csr_array]:
    """The matrices that positions are made of."""
    near = inputs.neighbourhood
    return {"out ": near.out, "in ": near.into} if near.directed else {"": near.both}


def _root_of_degrees(matrix: sparse.csr_array) -> NDArray[np.float32]:
    """One by the square root of the sum of each row; 0 where that is 0."""
    total = matrix.sum(axis=1)
    return np.divide(1, np.sqrt(total), out=np.zeros_like(total), where=total > 0)


def _basis(inputs: Inputs) -> NDArray[np.float32]:
    """The basis of all directions."""
    found = []
    for end in _ends(inputs).values():
        rows, columns = _root_of_degrees(end), _root_of_degrees(sparse.csr_array(end.T))
        scaled = sparse.diags_array(rows) @ end @ sparse.diags_array(columns)
        count = min(_POSITIONS, max(inputs.nodes - 1, 1))
        svd = TruncatedSVD(count, random_state=0).fit(sparse.csr_array(scaled))
        found.append(columns[:, None] * svd.components_.T)
    return np.hstack(found).astype(np.float32)


def side_by_side(parts: list[Matrix]) -> Matrix:
    """Blocks of features as one matrix, sparse if one of them is."""
    if any(sparse.issparse(part) for part in parts):
        return sparse.csr_array(sparse.hstack(parts, format="csr", dtype=np.float32))
    return np.hstack(parts).astype(np.float32, copy=False)
