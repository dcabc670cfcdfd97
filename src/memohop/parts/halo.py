"""Rows that a process needs of others, and differentiable sums over all processes."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from memohop.nn.operation import Operation
from memohop.nn.part import Axis, Part
from memohop.parts.group import Group


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
        self.group, device = group, outside.device
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
        return _Fetch.apply(dense, self)

    def return_sums(self, rows: Tensor) -> Tensor:
        """The way back: each process's rows ``[K, size, D]`` are added up where they belong."""
        return _Return.apply(rows, self)

    def fetch(self, dense: Tensor) -> Tensor:
        """The rows that others need are sent, and those needed here come in."""
        asked = dense.new_empty(len(self.given), len(dense), dense.shape[-1])
        for k, one in enumerate(dense):  # along the first axis, indices are several times as fast
            torch.index_select(one, 0, self.given, out=asked[:, k])
        came = self.group.swap(asked, self.give, self.take).transpose(0, 1)
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
        sums = rows[:, self.before : end].clone(memory_format=torch.contiguous_format)
        for k, one in enumerate(sums):
            one.index_add_(0, self.given, came[:, k])
        return sums


class _Fetch(Operation):
    tensors = 1

    @staticmethod
    def forward(dense: Tensor, halo: Halo) -> Tensor:
        return halo.fetch(dense)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
        ctx.halo = inputs[1]

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, None]:
        return _Return.apply(grads[0], ctx.halo), None


class _Return(Operation):
    tensors = 1

    @staticmethod
    def forward(rows: Tensor, halo: Halo) -> Tensor:
        return halo.give_back(rows)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
        ctx.halo = inputs[1]

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, None]:
        return _Fetch.apply(grads[0], ctx.halo), None


class BlockPart(Part):
    """The part of one block.

    Args:
        group: the processes.
        nodes, arcs, stored: see :class:`~memohop.nn.part.Part`.
    """

    def __init__(self, group: Group, nodes: Axis, arcs: Axis, stored: Axis) -> None:
        super().__init__(nodes, arcs, stored)
        self.group = group

    def total(self, values: Tensor) -> Tensor:
        """The sum over all processes; gradients that reach it are added up too."""
        return _Total.apply(values[None], self.group, True)[0]

    def outcome(self, values: Tensor) -> Tensor:
        """The sum over all processes; its gradient is the same in all of them."""
        return _Total.apply(values[None], self.group, False)[0]


class _Total(Operation):
    tensors = 1

    @staticmethod
    def forward(values: Tensor, group: Group, adds_gradients: bool) -> Tensor:
        return group.total(values)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
        _, ctx.group, ctx.adds_gradients = inputs

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, None, None]:
        grad = grads[0]
        if ctx.adds_gradients:
            grad = _Total.apply(grad, ctx.group, True)
        return grad, None, None
