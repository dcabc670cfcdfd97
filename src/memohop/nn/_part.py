"""A process that holds some nodes of a graph: which ones, and sums over the nodes of all processes.

A network computes row by row, except where it calls the graph. The exceptions are here: a mean over
the nodes, such as that of batch normalisation, and dropout masks, which depend on the position of
an element in the whole graph's tensor. Outside :func:`in_part` a process holds all nodes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from math import prod
from typing import Any

import torch
from torch import Tensor

from memohop.nn._operation import Operation


class BothWays(Operation):
    """A linear function of rows, with the one that takes gradients back."""

    tensors = 1

    @staticmethod
    def forward(
        rows: Tensor, there: Callable[[Tensor], Tensor], back: Callable[[Tensor], Tensor]
    ) -> Tensor:
        return there(rows)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
        _, ctx.there, ctx.back = inputs

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, None, None]:
        return BothWays.apply(grads[0], ctx.back, ctx.there), None, None


class Axis:
    """Which indices of an axis of the whole graph's tensors are here.

    Args:
        index: the indices, int64, in the order in which they are here.
        size: the length of the whole axis.

    Attributes:
        hashed: the pairs of tensors that had a mask, prepared for the next one.
    """

    def __init__(self, index: Tensor, size: int) -> None:
        self.index, self.size = index, size
        self.hashed: dict[tuple[int, int], tuple[Tensor, Tensor | None]] = {}

    def pairs(self, outer: int, inner: int) -> tuple[Tensor, Tensor | None]:
        """Where the elements of a tensor ``[outer, axis, inner]`` lie in the whole one.

        Elements 2k and 2k + 1 of the flat tensor are the pair k.

        Returns:
            The number of each pair, int64, and None, if no pair is torn apart; or the number of
            each element's pair, and whether the element is its second.
        """
        device = self.index.device
        rows = torch.arange(outer, device=device)[:, None] * self.size + self.index
        width = inner // 2 if inner % 2 == 0 else inner
        numbers = (rows.flatten()[:, None] * width + torch.arange(width, device=device)).ravel()
        if inner % 2 == 0:
            return numbers, None
        return numbers >> 1, (numbers & 1).bool()


class Part:
    """The nodes that a process holds, and how it adds up over all processes.

    Args:
        nodes: its nodes.
        arcs: the entries of the graph in the rows of these nodes.
        stored: the stored values of sparse features in these rows.
        add_up: gives the sum of a tensor over all processes.
    """

    def __init__(
        self, nodes: Axis, arcs: Axis, stored: Axis, add_up: Callable[[Tensor], Tensor]
    ) -> None:
        self.nodes, self.arcs, self.stored, self._add_up = nodes, arcs, stored, add_up

    def axis(self, role: str, shape: tuple[int, ...]) -> tuple[Axis, int, int]:
        """The axis that a tensor has in part here, and the sizes before and after it.

        The role is that of the dropout, the shape that of what is here of the tensor.
        """
        axis, at = self.nodes, 0
        if role in ("attention", "edge"):
            axis, at = self.arcs, len(shape) - 1
        elif role == "value":  # heads first
            at = len(shape) - 2
        elif role == "input" and len(shape) == 1:
            axis = self.stored
        assert shape[at] == len(axis.index), f"{role}: {shape} has not {len(axis.index)} at {at}"
        return axis, prod(shape[:at]), prod(shape[at + 1 :])

    def total(self, values: Tensor) -> Tensor:
        """The sum over all processes, for each one's nodes to use: gradients are added up too."""
        return BothWays.apply(values[None], self._add_up, self._add_up)[0]

    def outcome(self, values: Tensor) -> Tensor:
        """The sum over all processes for the loss, which all compute alike, as is its gradient."""
        return BothWays.apply(values[None], self._add_up, torch.clone)[0]


held_part: ContextVar[Part | None] = ContextVar("memohop_part", default=None)
"""The part that this process holds; None if it holds the whole graph."""


@contextmanager
def in_part(part: Part | None) -> Iterator[None]:
    """Inside the block, tensors of nodes hold the rows of this part; of the whole if it is None."""
    token = held_part.set(part)
    try:
        yield
    finally:
        held_part.reset(token)


def node_moments(hidden: Tensor) -> tuple[Tensor, Tensor, int]:
    """Mean and variance of each channel over all nodes, and how many these are."""
    part = held_part.get()
    if part is None:
        variance, mean = torch.var_mean(hidden, dim=0, correction=0)
        return mean, variance, len(hidden)
    count = part.nodes.size
    mean = part.total(hidden.sum(0)) / count
    return mean, part.total((hidden - mean).square().sum(0)) / count, count


def sum_for_loss(values: Tensor) -> Tensor:
    """The sum over all nodes of a vector with a number for each node."""
    part = held_part.get()
    return values.sum() if part is None else part.outcome(values.sum())


def mean_for_loss(values: Tensor) -> Tensor:
    """The mean over all nodes of a vector with a number for each node."""
    part = held_part.get()
    return values.mean() if part is None else part.outcome(values.sum()) / part.nodes.size
