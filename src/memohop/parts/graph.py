"""The rows of a graph that a block holds, and the product with them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor

from memohop.nn import FixedMatrix, Graph, Pattern
from memohop.parts.group import Group
from memohop.parts.halo import BothWays, Halo


@dataclass(frozen=True)
class Rows:
    """The entries of a graph in the rows of one block.

    Attributes:
        row: the row of each entry, counted within the block, ascending.
        col: the number of the node that each entry's column belongs to, ascending within a row.
        weight: of each entry, before normalisation.
        entry: the number of each entry in the whole graph.
        entries: how many the whole graph has.
        direction, self_loops, norm: the policies of the graph.
    """

    row: Tensor
    col: Tensor
    weight: Tensor
    entry: Tensor
    entries: int
    direction: str
    self_loops: str
    norm: str


class GraphPart(Graph):
    """A :class:`memohop.Graph` of which this process holds some rows.

    It takes and gives states of this block's nodes; those of neighbours outside come from the
    processes that hold them.

    Args:
        rows: its entries.
        starts: the number at which each block starts, and the number of nodes.
        group: the processes.
        device: the device to compute on.
    """

    def __init__(
        self, rows: Rows, starts: tuple[int, ...], group: Group, device: torch.device
    ) -> None:
        first, last = starts[group.rank : group.rank + 2]
        self.starts = starts
        self.num_nodes, self.direction = last - first, rows.direction
        self.self_loops, self.norm = rows.self_loops, rows.norm
        col = rows.col.to(device)
        needed = torch.zeros(starts[-1], dtype=torch.bool, device=device)
        needed[col] = True
        needed[first:last] = False
        halo = Halo(group, needed.nonzero().flatten(), starts)
        places = torch.empty(starts[-1], dtype=torch.int32, device=device)
        places[halo.numbers] = torch.arange(halo.size, dtype=torch.int32, device=device)
        shape = self.num_nodes, halo.size
        pattern = Pattern(rows.row.to(device), places.index_select(0, col), shape)
        self.halo = halo
        pattern.exchange = halo if group.size > 1 else None
        self._fill(pattern, rows.weight.to(device, torch.get_default_dtype()))

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
        turned = {"out": "in", "in": "out"}.get(self.direction, self.direction)
        rows = Rows(
            row=turning.row,
            col=turning.col,
            weight=self.turned(self.weight),
            entry=turning.row[:0],  # no mask is drawn for its entries
            entries=0,
            direction=turned,
            self_loops=self.self_loops,
            norm=self.norm,
        )
        return GraphPart(rows, self.starts, self.halo.group, self.weight.device)

    def turned(self, values: Tensor) -> Tensor:
        """Values ``[entries]`` in the order of the entries of :attr:`reversed`."""
        return BothWays.apply(values[None], self._turning, None).squeeze(
            0
        )  # they have no derivatives

    @cached_property
    def _turning(self) -> Turning:
        return Turning(self.pattern, self.halo, self.starts)


class Turning:
    """Sends entries to the processes that hold their columns' nodes.

    Args:
        pattern: the entries in this block's rows.
        halo: the nodes of the columns.
        starts: the number at which each block starts, and the number of nodes.

    Attributes:
        row: the row of each entry that comes in, counted within this block, ascending.
        col: the number of the node that each comes from, ascending within a row.
    """

    def __init__(self, pattern: Pattern, halo: Halo, starts: tuple[int, ...]) -> None:
        self.group, self._order = halo.group, pattern.order
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
