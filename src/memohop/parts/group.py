"""The processes that share a graph, and what they send each other."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor

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
