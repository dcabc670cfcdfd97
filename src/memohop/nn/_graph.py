"""A graph as input of a model: arcs, the policies applied to them, and the product with them."""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from functools import cached_property

import torch
from torch import Tensor

from memohop.data.arcs import (
    DIRECTIONS,
    NORMS,
    REVERSED,
    SELF_LOOPS,
    adjacency,
    check_arcs,
    normalised,
)
from memohop.errors import UsageError, check_choice
from memohop.nn._arcs import AttributedArcs
from memohop.nn._ops.pattern import FixedMatrix, Pattern, fixed_product, made_once
from memohop.nn._ops.products import row_sums, weighted_product


class Graph:
    r"""The matrix :math:`\mathbf{A}` in ``graph @ hidden``, built once and never changed.

    Row :math:`i` of the product is the sum that node :math:`i` receives. With
    :math:`\mathbf{E}_{uv}` the number of arcs :math:`u \to v`, or the sum of their weights:

    ==============  =========================================================================
    ``direction``   a node receives from
    ==============  =========================================================================
    ``out``         the nodes it points to: :math:`\mathbf{E}`
    ``in``          the nodes that point to it, as in PyG: :math:`\mathbf{E}^\top`
    ``both``        either, an arc each way counting twice: :math:`\mathbf{E} + \mathbf{E}^\top`
    ``undirected``  either, each neighbour counting once: 1 where
                    :math:`\mathbf{E} + \mathbf{E}^\top` is not 0; with weights, the larger one
                    of :math:`\mathbf{E}` and :math:`\mathbf{E}^\top`
    ==============  =========================================================================

    ``self_loops`` then keeps the diagonal as it is, removes it, or puts 1 everywhere on it
    (``add``). ``norm`` divides by row sums (``row``, the mean), by the roots of row and column
    sums (``symmetric``), or not at all (``none``); sums of 0 give 0. With weights the sums are of
    weights, so a mean is a weighted mean, and an arc of weight 0 is none. A self-loop that is
    added weighs 1: weights are best divided by their mean first.

    Args:
        edge_index: int64 ``[2, arcs]``; arcs run from the first row to the second.
        num_nodes: number of nodes.
        direction: see above; there is no default, since it decides results.
        self_loops: ``"keep"``, ``"add"`` or ``"remove"``.
        norm: ``"row"``, ``"symmetric"`` or ``"none"``.
        weights: of the arcs, ``[arcs]``, not negative; by default every arc weighs 1.

    Example:
        >>> import torch, memohop
        >>> graph = memohop.Graph(torch.tensor([[0, 0], [1, 2]]), 3, direction="out", norm="row")
        >>> graph @ torch.tensor([[9.0], [1.0], [3.0]])
        tensor([[2.],
                [0.],
                [0.]])
    """

    keep: Tensor | None = None  # of a reweighted graph, 0 for an arc that is dropped
    _attributed: AttributedArcs | None = None

    def __init__(
        self,
        edge_index: Tensor,
        num_nodes: int,
        *,
        direction: str,
        self_loops: str = "keep",
        norm: str = "none",
        weights: Tensor | None = None,
    ) -> None:
        check_choice("direction", direction, DIRECTIONS)
        check_choice("self_loops", self_loops, SELF_LOOPS)
        check_choice("norm", norm, NORMS)
        check_arcs(edge_index, num_nodes)
        self.num_nodes, self.direction = num_nodes, direction
        self.self_loops, self.norm = self_loops, norm

        counts = adjacency(
            edge_index, num_nodes, direction=direction, self_loops=self_loops, weights=weights
        )
        device = edge_index.device
        if direction in ("both", "undirected"):
            ends = (torch.from_numpy(end) for end in (counts.indptr, counts.indices))
            pattern = Pattern.symmetric(*(end.to(device, torch.int32) for end in ends))
        else:
            pattern = Pattern.of(counts, device)
        weight = torch.from_numpy(counts.data).to(device, torch.get_default_dtype())
        self._fill(pattern, weight)

    def _fill(self, pattern: Pattern, weight: Tensor) -> None:
        self.pattern = pattern
        if (weight != 1).any():
            self.weight = weight  # before normalisation
            self.matrix = FixedMatrix(pattern, self._normalise(weight[None])[0])
            return
        self.weight = weight[:1].expand(len(pattern))  # takes no space
        rows, columns = (
            way.pointers.diff().to(weight.dtype) for way in (pattern, pattern.transpose)
        )
        turned = pattern.transpose
        values = normalised(
            self.weight,
            self.norm,
            lambda: pattern.of_rows(rows),
            lambda: pattern.of_columns(columns),
        )
        of_turned = normalised(
            self.weight,
            self.norm,
            lambda: turned.of_columns(rows),
            lambda: turned.of_rows(columns),
        )
        self.matrix = FixedMatrix(pattern, values, of_turned)

    def __matmul__(self, hidden: Tensor) -> Tensor:
        """The product with ``[num_nodes, D]``, differentiable in ``hidden``."""
        return self.propagate(hidden)

    def propagate(self, hidden: Tensor, bias: Tensor | None = None) -> Tensor:
        """``graph @ hidden + bias`` in one pass."""
        every = None if bias is None else bias[None]
        return fixed_product(hidden[None], self.matrix, every).squeeze(0)

    def with_attributes(
        self,
        edge_index: Tensor,
        attributes: Tensor,
        *,
        relations: Sequence[int] = (),
        weights: Tensor | None = None,
    ) -> Graph:
        """The same graph with attributes of its arcs, for networks that learn from them.

        Args:
            edge_index: the arcs that the graph was made of.
            attributes: ``[arcs, attributes]``.
            relations: the numbers of those that are relations, see
                :class:`memohop.nn.RelationConv`; they are not negative, and above 0 for the arcs
                of the relation.
            weights: of the arcs, ``[arcs]``, if the graph was made of some.

        Example:
            >>> import torch, memohop
            >>> arcs, kind = torch.tensor([[0, 1], [1, 2]]), torch.tensor([[1.0], [0.0]])
            >>> graph = memohop.Graph(arcs, 3, direction="out")
            >>> graph.with_attributes(arcs, kind, relations=[0]).entry_attributes
            tensor([[1., 1., 0., 0.],
                    [1., 0., 0., 0.]])
        """
        graph = copy(self)
        graph._attributed = AttributedArcs(edge_index, attributes, relations, weights)
        for made in ("entry_attributes", "_related"):
            vars(graph).pop(made, None)
        return graph

    @made_once
    def entry_attributes(self) -> Tensor | None:
        r"""What the arcs of each entry have, ``[entries, 2 (1 + attributes)]``; None without any.

        Of the entry :math:`(i, j)` it is
        :math:`\mathbf{x}_{ij} = [1 \Vert \mathbf{e}_{ij} \Vert 1 \Vert \mathbf{e}_{ji}]`, with
        :math:`\mathbf{e}_{ij}` the mean of the attributes over the arcs :math:`i \to j`, and zeros
        for a direction in which there is no arc.
        """
        if self._attributed is None:
            return None
        return self._attributed.of_entries(self.pattern, loops=self.self_loops == "keep")

    @made_once
    def _related(self) -> FixedMatrix | None:
        if self._attributed is None or not self._attributed.relations:
            return None
        loops = self.self_loops == "keep"
        return self._attributed.related(self.num_nodes, self.norm, loops=loops)

    def related(self) -> FixedMatrix | None:
        """The matrices of all relations, both ways: see :meth:`AttributedArcs.related`."""
        return self._related

    def weighed(self, factors: Tensor) -> WeighedGraph:
        """The graph with its entries multiplied by factors, ``[entries]``, after normalisation."""
        return WeighedGraph(self, self.matrix.values[None] * factors)

    def reweighted(self, keep: Tensor) -> ReweightedGraph:
        """The graph with some arcs dropped and the remaining ones normalised anew.

        ``keep``, ``[entries]``, is 1 for an arc that stays, 0 for one that is dropped. Self-loops
        stay: they are added after arcs are dropped.
        """
        kept = torch.where(self._are_loops(), torch.ones_like(keep), keep)
        return ReweightedGraph(self, kept)

    def _are_loops(self) -> Tensor:
        return self.pattern.row == self.pattern.col

    @cached_property
    def reversed(self) -> Graph:
        """The graph with every arc reversed, under the same policies."""
        weight, turned = self.weight[self.pattern.order], REVERSED[self.direction]
        return self._like(self.pattern.transpose, weight, direction=turned)

    def turned(self, values: Tensor) -> Tensor:
        """Values ``[entries]`` in the order of the entries of :attr:`reversed`."""
        return values.index_select(-1, self.pattern.order)

    @cached_property
    def counts(self) -> Graph:
        """The graph before its entries were normalised."""
        if self.norm == "none":
            return self
        return self._like(self.pattern, self.weight, direction=self.direction, norm="none")

    def _normalise(self, weight: Tensor) -> Tensor:
        """Weights ``[1, entries]``, divided according to ``norm``."""
        pattern = self.pattern
        return normalised(
            weight,
            self.norm,
            lambda: row_sums(weight, pattern).index_select(-1, pattern.row),
            lambda: self._column_sums(weight).index_select(-1, pattern.col),
        )

    def _column_sums(self, weight: Tensor) -> Tensor:
        turned = weight.index_select(-1, self.pattern.order)
        return row_sums(turned, self.pattern.transpose)

    def to(
        self, device: torch.device | str | None = None, dtype: torch.dtype | None = None
    ) -> Graph:
        """The same graph on another device or with another type of values."""
        device = self.weight.device if device is None else device
        weight = self.weight.to(device=device, dtype=dtype)
        graph = self._like(self.pattern.to(device), weight, direction=self.direction)
        graph._attributed = self._attributed and self._attributed.to(device, dtype)
        return graph

    def _like(
        self, pattern: Pattern, weight: Tensor, *, direction: str, norm: str | None = None
    ) -> Graph:
        graph = object.__new__(Graph)
        graph.num_nodes, graph.direction = self.num_nodes, direction
        graph.self_loops, graph.norm = self.self_loops, norm or self.norm
        graph._attributed = self._attributed
        graph._fill(pattern, weight)
        return graph

    def __repr__(self) -> str:
        return (
            f"Graph({self.num_nodes} nodes, {len(self.pattern)} entries, "
            f"direction={self.direction}, self_loops={self.self_loops}, norm={self.norm})"
        )


class _VaryingGraph:
    """The entries of a graph with other values, ``[1, entries]``, than its own."""

    pattern: Pattern
    num_nodes: int

    def _values(self) -> Tensor:
        raise NotImplementedError

    def __matmul__(self, hidden: Tensor) -> Tensor:
        """The product with ``[num_nodes, D]``, differentiable in ``hidden`` and the values."""
        return self.propagate(hidden)

    def propagate(self, hidden: Tensor, bias: Tensor | None = None) -> Tensor:
        """``graph @ hidden + bias``."""
        product = weighted_product(self._values(), hidden[None], self.pattern).squeeze(0)
        return product if bias is None else product + bias


class ReweightedGraph(_VaryingGraph):
    """A graph with some of its arcs dropped; made by :meth:`Graph.reweighted`."""

    def __init__(self, graph: Graph, keep: Tensor) -> None:
        self.pattern, self.num_nodes = graph.pattern, graph.num_nodes
        self.keep, self._graph = keep, graph

    @cached_property
    def _weight(self) -> Tensor:
        """Computed when a product needs it: attention has weights of its own."""
        return self._graph._normalise((self._graph.weight * self.keep)[None])

    def _values(self) -> Tensor:
        return self._weight

    @cached_property
    def reversed(self) -> ReweightedGraph:
        """The remaining arcs, each one reversed."""
        return self._graph.reversed.reweighted(self._graph.turned(self.keep))

    @property
    def entry_attributes(self) -> Tensor | None:
        """As of the whole graph, whose entries it has."""
        return self._graph.entry_attributes

    def related(self) -> FixedMatrix:
        """Refused: arcs of relations are not dropped."""
        raise UsageError("arcs of relations cannot be dropped: leave out edge_dropout")

    def weighed(self, factors: Tensor) -> WeighedGraph:
        """As :meth:`Graph.weighed`."""
        return WeighedGraph(self, self._weight * factors)


class WeighedGraph(_VaryingGraph):
    """A graph with its entries multiplied by factors; made by :meth:`Graph.weighed`."""

    def __init__(self, graph: Graph | ReweightedGraph, values: Tensor) -> None:
        self.pattern, self.num_nodes, self._weight = graph.pattern, graph.num_nodes, values

    def _values(self) -> Tensor:
        return self._weight
