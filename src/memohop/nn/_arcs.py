r"""Attributes of arcs, for the entries of a matrix, and the matrices of relations.

An entry :math:`(i, j)` of a graph's matrix stands for arcs :math:`i \to j`, :math:`j \to i`, or
both. With :math:`\mathbf{e}_{ij}` the mean of the attributes over the arcs :math:`i \to j`, it has

.. math::
    \mathbf{x}_{ij} = [1 \Vert \mathbf{e}_{ij} \Vert 1 \Vert \mathbf{e}_{ji}],

where zeros stand for a direction in which there is no arc, as for a self-loop that is added. So a
network can tell the directions apart, whatever the graph's own policy is.

A relation is an attribute that is not negative, above 0 for the arcs in it: a category of edges is
one, with a 1 for its arcs. It is a graph of its own in each direction, normalised by itself.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from scipy import sparse
from torch import Tensor

from memohop.data.arcs import check_attributes, normalised
from memohop.errors import UsageError
from memohop.nn._ops.pattern import FixedMatrix, Pattern


class AttributedArcs:
    """Arcs with their attributes, to be looked up for the entries of a matrix.

    Args:
        edge_index: int64 ``[2, arcs]``.
        values: the attributes, ``[arcs, attributes]``.
        relations: the numbers of those that are relations.
        weights: of the arcs, ``[arcs]``; one of weight 0 is none.
    """

    def __init__(
        self,
        edge_index: Tensor,
        values: Tensor,
        relations: Sequence[int] = (),
        weights: Tensor | None = None,
    ) -> None:
        check_attributes(values, edge_index.shape[1])
        values = values if values.dim() == 2 else values[:, None]
        for number in relations:
            if not 0 <= number < values.shape[1] or (values[:, number] < 0).any():
                raise UsageError(
                    f"relations has {number}; give numbers of attributes from 0 to "
                    f"{values.shape[1] - 1} that are above 0 for the arcs of a relation, and 0 for "
                    "others"
                )
        device = edge_index.device
        self.edge_index, self.relations = edge_index, tuple(relations)
        self.values = values.to(device, torch.get_default_dtype())
        self.weights = None if weights is None else weights.to(self.values)

    def to(self, device: torch.device | str, dtype: torch.dtype | None) -> AttributedArcs:
        """The same on another device or in another type."""
        arcs = object.__new__(AttributedArcs)
        arcs.edge_index, arcs.relations = self.edge_index.to(device), self.relations
        arcs.values = self.values.to(device, dtype)
        arcs.weights = None if self.weights is None else self.weights.to(device, dtype)
        return arcs

    def of_entries(self, pattern: Pattern, *, loops: bool) -> Tensor:
        r"""The :math:`\mathbf{x}_{ij}`, ``[entries, 2 (1 + attributes)]``.

        ``loops`` states whether arcs from a node to itself are among the entries.
        """
        nodes, counted = pattern.shape[1], self._counted(loops)
        entries = pattern.row.long() * nodes + pattern.col
        given = torch.cat([torch.ones_like(self.values[:, :1]), self.values], dim=1)[counted]
        directions = []
        for source, target in (self.edge_index, self.edge_index.flip(0)):
            arcs = (source * nodes + target)[counted]
            place = torch.searchsorted(entries, arcs).clamp(max=max(len(entries) - 1, 0))
            there = (entries[place] == arcs).nonzero()[:, 0] if len(entries) else place
            sums = given.new_zeros(len(entries), given.shape[1])
            sums.index_add_(0, place[there], given[there])
            directions.append(sums / sums[:, :1].clamp(min=1))
        return torch.cat(directions, dim=1)

    def related(self, nodes: int, norm: str, *, loops: bool) -> FixedMatrix:
        r"""The matrices of all relations in both directions side by side.

        ``[nodes, nodes * 2 R]``: of node :math:`j`, there is a column for each relation from it,
        and then for each relation to it, so that the operand is what one linear map makes of the
        nodes.
        """
        counted, every = self._counted(loops).cpu().numpy(), 2 * len(self.relations)
        ends = self.edge_index.cpu().numpy()[:, counted]
        values = self.values.cpu().numpy()[counted]
        if self.weights is not None:
            values = values * self.weights.cpu().numpy()[counted, None]
        parts = []
        for place, number in enumerate(self.relations):
            among = np.flatnonzero(values[:, number])
            source, target = ends[:, among]
            weight = values[among, number]
            parts.append((weight, source, target * every + place))
            parts.append((weight, target, source * every + every // 2 + place))
        weight, rows, columns = (np.concatenate(part) for part in zip(*parts, strict=True))
        matrix = sparse.csr_array((weight, (rows, columns)), shape=(nodes, nodes * every))
        matrix.sum_duplicates()
        device, dtype = self.values.device, self.values.dtype
        pattern = Pattern.of(matrix, device)
        summed = torch.from_numpy(matrix.data).to(device, dtype)
        relation = pattern.col % every
        of_rows, of_columns = pattern.row.long() * every + relation, pattern.col

        def total(groups: Tensor) -> Tensor:
            sums = summed.new_zeros(nodes * every).index_add_(0, groups, summed)
            return sums.index_select(0, groups)

        values_of = normalised(summed, norm, lambda: total(of_rows), lambda: total(of_columns))
        return FixedMatrix(pattern, values_of)

    def _counted(self, loops: bool) -> Tensor:
        """Which arcs are in the graph, ``[arcs]``."""
        source, target = self.edge_index
        counted = torch.ones_like(source, dtype=torch.bool) if loops else source != target
        return counted if self.weights is None else counted & (self.weights > 0)
