"""Outputs of the labelled nodes of all blocks, collected in each process."""

from __future__ import annotations

from typing import Any

from torch import Tensor

from memohop.nn.operation import Operation
from memohop.parts.group import Group
from memohop.training.task import Peers


class LabelledNodes(Peers):
    """The labelled nodes of this block among those of all blocks.

    Args:
        group: the processes.
        rows: the rows of its labelled nodes in this block.
        at: their places among all labelled nodes.
        nodes: how many nodes this block has.
        labelled: how many labelled nodes all blocks have.
    """

    def __init__(self, group: Group, rows: Tensor, at: Tensor, nodes: int, labelled: int) -> None:
        self.group, self.rows, self.at = group, rows, at
        self.nodes, self.labelled = nodes, labelled

    def collect(self, outputs: Tensor) -> Tensor:
        """From rows ``[..., N, C]`` of this block to those of all labelled nodes."""
        single = outputs.dim() == 2
        found = _Collect.apply(outputs[None] if single else outputs, self)
        return found.squeeze(0) if single else found

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
        found = self.group.total(out)
        return found[:, :-1] + found[:, -1:]


class _Collect(Operation):
    """The loss is computed from the result in each process alike: gradients are not added up."""

    tensors = 1

    @staticmethod
    def forward(outputs: Tensor, nodes: LabelledNodes) -> Tensor:
        return nodes.gather(outputs)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
        ctx.nodes = inputs[1]

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, None]:
        return _Spread.apply(grads[0], ctx.nodes), None


class _Spread(Operation):
    tensors = 1

    @staticmethod
    def forward(values: Tensor, nodes: LabelledNodes) -> Tensor:
        return nodes.spread(values)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
        ctx.nodes = inputs[1]

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, None]:
        return _Collect.apply(grads[0], ctx.nodes), None
