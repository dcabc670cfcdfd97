"""The rows of a graph that a block holds, and the product with them."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property

import torch
from torch import Tensor

from memohop.data.arcs import REVERSED
from memohop.nn import BothWays, FixedMatrix, Graph, Pattern
from memohop.parts.block import BlockRows
from memohop.parts.halo import Group, Halo


class GraphPart(Graph):
    """A :class:`memohop.Graph` of which this process holds some rows.

    It takes and gives states of this block's nodes; those of neighbours outside come from the
    processes that hold them.

    Args:
        row: the row of each entry, counted within the block, ascending.
        col: the number of the node that each entry's column belongs to, ascending within a row.
        weight: of each entry, before normalisation.
        policies: the policies of the graph.
        starts: the number at which each block starts, and the number of nodes.
        group: the processes.
    """

    def __init__(
        self,
        row: Tensor,
        col: Tensor,
        weight: Tensor,
        policies: Mapping[str, str],
        starts: tuple[int, ...],
        group: Group,
    ) -> None:
        first, last = starts[group.rank : group.rank + 2]
        self.num_nodes, device = last - first, col.device
        self.direction, self.self_loops = policies["direction"], policies["self_loops"]
        self.norm = policies["norm"]
        needed = torch.zeros(starts[-1], dtype=torch.bool, device=device)
        needed[col] = True
        needed[first:last] = False
        halo = Halo(group, needed.nonzero().flatten(), starts)
        places = torch.empty(starts[-1], dtype=torch.int32, device=device)
        places[halo.numbers] = torch.arange(halo.size, dtype=torch.int32, device=device)
        shape = self.num_nodes, halo.size
        pattern = Pattern(row, places.index_select(0, col), shape)
        self.halo = halo
        pattern.exchange = halo if group.size > 1 else None
        self._fill(pattern, weight)

    @classmethod
    def of(
        cls, rows: BlockRows, starts: tuple[int, ...], group: Group, device: torch.device
    ) -> GraphPart:
        """That of a block's rows, on a device."""
        col, weight = map(torch.from_numpy, (rows.matrix.indices, rows.matrix.data))
        return cls(
            rows.row.to(device),
            col.to(device),
            weight.to(device, torch.get_default_dtype()),
            rows.policies,
            starts,
            group,
        )

    def _fill(self, pattern: Pattern, weight: Tensor) -> None:
        self.pattern, self.weight = pattern, weight
        self.matrix = FixedMatrix(pattern, self._normalise(weight[None])[0])

    def _column_sums(self, weight: Tensor) -> Tensor:
        here = super()._column_sums(weight)[..., None]
        return self.halo(self.halo.return_sums(here))[..., 0]

    def _are_loops(self) -> Tensor:
        return self.pattern.row + self.halo.before == self.pattern.col

    @cached_property
    def counts(self) -> Graph:
        """The graph before its entries were normalised."""
        graph = object.__new__(GraphPart)
        graph.__dict__ |= {name: value for name, value in vars(self).items() if name != "matrix"}
        graph.norm = "none"
        graph._fill(self.pattern, self.weight)
        return graph

    @cached_property
    def reversed(self) -> Graph:
        """The rows of this block in the graph with every arc reversed."""
        turning = self._turning
        policies = {"self_loops": self.self_loops, "norm": self.norm}
        policies["direction"] = REVERSED[self.direction]
        weight = self.turned(self.weight)
        starts, group = self.halo.starts, self.halo.group
        return GraphPart(turning.row, turning.col, weight, policies, starts, group)

    def turned(self, values: Tensor) -> Tensor:
        """Values ``[entries]`` in the order of the entries of :attr:`reversed`."""
        return BothWays.apply(values[None], self._turning, None)[0]  # they have no derivatives

    @cached_property
    def _turning(self) -> Turning:
        return Turning(self.pattern, self.halo)


class Turning:
    """Sends entries to the processes that hold their columns' nodes.

    Args:
        pattern: the entries in this block's rows.
        halo: the nodes of the columns.

    Attributes:
        row: the row of each entry that comes in, counted within this block, ascending.
        col: the number of the node that each comes from, ascending within a row.
    """

    def __init__(self, pattern: Pattern, halo: Halo) -> None:
        self.group, self._order, starts = halo.group, pattern.order, halo.starts
        first = starts[self.group.rank]
        sent = halo.numbers.index_select(0, pattern.col.index_select(0, pattern.order))
        bounds = torch.tensor(starts, device=sent.device)
        self._give = torch.searchsorted(sent, bounds).diff().tolist()
        one_each = [1] * self.group.size
        counts = torch.tensor(self._give, device=sent.device)
        self._take = self.group.swap(counts, one_each, one_each).tolist()
        row = self._swap(sent) - first
        col = self._swap((pattern.row.long() + first).index_select(0, pattern.order))
        self._sorted = torch.argsort(row * starts[-1] + col)
        self.row, self.col = row[self._sorted], col[self._sorted]

    def __call__(self, values: Tensor) -> Tensor:
        """Values ``[K, entries]`` go where their entries go."""
        came = self._swap(values.index_select(1, self._order).t())
        return came.index_select(0, self._sorted).t()

    def _swap(self, rows: Tensor) -> Tensor:
        return self.group.swap(rows, self._give, self._take)
