"""What processes that share a graph send each other: rows of nodes, outputs, sums."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor

from memohop.nn import BothWays
from memohop.training.task import Peers

_PATIENCE = timedelta(minutes=30)  # of a collective: others may be building their blocks


class Group:
    """The processes of a run, of which this one is number ``rank``; outside a group, this one.

    A thin layer over ``torch.distributed``.

    Attributes:
        rank: the number of this process.
        size: the number of processes.
    """

    def __init__(self) -> None:
        together = dist.is_initialized()
        self.rank = dist.get_rank() if together else 0
        self.size = dist.get_world_size() if together else 1

    @staticmethod
    def join(device: str, **where: Any) -> Group:
        """Join the others; ``where`` are arguments of ``init_process_group``."""
        backend = "nccl" if device == "cuda" else "gloo"
        dist.init_process_group(backend, timeout=_PATIENCE, **where)
        return Group()

    def leave(self) -> None:
        """Leave the others."""
        dist.destroy_process_group()

    def swap(self, rows: Tensor, give: list[int], take: list[int]) -> Tensor:
        """Send some rows to each process, and get rows from each.

        Args:
            rows: ``[sum(give), ...]``, in the order of the processes they go to.
            give: how many go to each.
            take: how many come from each.
        """
        if self.size == 1:
            return rows
        out = rows.new_empty(sum(take), *rows.shape[1:])
        dist.all_to_all_single(out, rows.contiguous(), take, give)
        return out

    def total(self, values: Tensor) -> Tensor:
        """The sum over all processes."""
        out = values.clone(memory_format=torch.contiguous_format)
        if self.size > 1:
            dist.all_reduce(out)
        return out

    def gather(self, value: Any) -> list[Any]:
        """The value of each process."""
        values: list[Any] = [value] * self.size
        if self.size > 1:
            dist.all_gather_object(values, value)
        return values

    def of_first(self, value: Any) -> Any:
        """The value of the first process."""
        values = [value]
        if self.size > 1:
            dist.broadcast_object_list(values)
        return values[0]


class Halo:
    """The nodes outside a block whose rows its products need: fetched by one all-to-all.

    The rows that come back are in the order of the nodes' numbers: those of blocks before, this
    block's own, those of blocks after.

    Args:
        group: the processes.
        outside: the numbers of the nodes that are needed, ascending.
        starts: the number at which each block starts, and the number of nodes.

    Attributes:
        numbers: the numbers of the nodes whose rows come back.
    """

    def __init__(self, group: Group, outside: Tensor, starts: tuple[int, ...]) -> None:
        self.group, self.starts, device = group, starts, outside.device
        first, last = starts[group.rank : group.rank + 2]
        bounds = torch.tensor(starts, device=device)
        self.take = torch.searchsorted(outside, bounds).diff().tolist()
        one_each = [1] * group.size
        given = group.swap(torch.tensor(self.take, device=device), one_each, one_each)
        self.give = given.tolist()
        self.given = group.swap(outside, self.take, self.give) - first  # rows of this block
        self.before = int(torch.searchsorted(outside, first))
        self.own, self.size = last - first, last - first + len(outside)
        here = torch.arange(first, last, device=device)
        self.numbers = torch.cat([outside[: self.before], here, outside[self.before :]])

    def __call__(self, dense: Tensor) -> Tensor:
        """From this block's rows ``[K, own, D]`` to all that it needs, ``[K, size, D]``."""
        return BothWays.apply(dense, self.fetch, self.give_back)

    def return_sums(self, rows: Tensor) -> Tensor:
        """The way back: each process's rows ``[K, size, D]`` are added up where they belong."""
        return BothWays.apply(rows, self.give_back, self.fetch)

    def fetch(self, dense: Tensor) -> Tensor:
        """The rows that others need are sent, and those needed here come in."""
        asked = dense.new_empty(len(self.given), len(dense), dense.shape[-1])
        for k, member in enumerate(dense):  # indices of a first axis are several times as fast
            torch.index_select(member, 0, self.given, out=asked[:, k])
        came = self.group.swap(asked, self.give, self.take).transpose(0, 1)
        del asked  # as large as what came, in a graph without neighbourhoods that keep apart
        rows, end = dense.new_empty(len(dense), self.size, dense.shape[-1]), self.before + self.own
        rows[:, : self.before], rows[:, end:] = came[:, : self.before], came[:, self.before :]
        rows[:, self.before : end] = dense
        return rows

    def give_back(self, rows: Tensor) -> Tensor:
        """What was computed for the rows of others goes to them, and is added up there."""
        end, turned = self.before + self.own, rows.transpose(0, 1)
        of_others = rows.new_empty(self.size - self.own, *turned.shape[1:])
        of_others[: self.before], of_others[self.before :] = turned[: self.before], turned[end:]
        came = self.group.swap(of_others, self.take, self.give)
        del of_others
        sums = rows[:, self.before : end].clone(memory_format=torch.contiguous_format)
        for k, member in enumerate(sums):
            member.index_add_(0, self.given, came[:, k])
        return sums


class LabelledNodes(Peers):
    """The labelled nodes of this block among those of all blocks.

    The loss is computed from their outputs in each process alike: gradients are not added up.

    Args:
        group: the processes.
        nodes: the numbers of this block's nodes.
        labelled: the numbers of the labelled nodes of all blocks, ascending.
    """

    def __init__(self, group: Group, nodes: Tensor, labelled: Tensor) -> None:
        self.group, self.nodes, self.labelled = group, len(nodes), len(labelled)
        places = torch.searchsorted(labelled, nodes).clamp(max=self.labelled - 1)
        self.rows = (labelled[places] == nodes).nonzero().flatten()
        self.at = places[self.rows]  # among all labelled nodes

    def collect(self, outputs: Tensor) -> Tensor:
        """From rows ``[..., N, C]`` of this block to those of all labelled nodes."""
        single = outputs.dim() == 2
        collected = BothWays.apply(outputs[None] if single else outputs, self.gather, self.spread)
        return collected.squeeze(0) if single else collected

    def spread(self, values: Tensor) -> Tensor:
        """From rows ``[B, labelled, C]`` of all labelled nodes to those of this block's nodes."""
        out = values.new_zeros(len(values), self.nodes, values.shape[-1])
        return out.index_copy_(1, self.rows, values.index_select(1, self.at))

    def total(self, gradient: Tensor) -> Tensor:
        """The sum of a gradient over all processes."""
        return self.group.total(gradient)

    def gather(self, outputs: Tensor) -> Tensor:
        """The collected rows; all of them are NaN if an output of any node is not finite."""
        out = outputs.new_zeros(len(outputs), self.labelled + 1, outputs.shape[-1])
        out.index_copy_(1, self.at, outputs.index_select(1, self.rows))
        out[:, -1] = (outputs - outputs).sum(1)  # 0, or NaN
        total = self.group.total(out)
        return total[:, :-1] + total[:, -1:]
