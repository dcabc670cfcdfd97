"""How one device holds a larger graph: fewer digits of the states, or fewer of them kept."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

import torch
from torch import Tensor, nn

from memohop.errors import UsageError, check_choice
from memohop.networks import NodeModel
from memohop.training.task import Task


@dataclass(frozen=True)
class Thrift:
    """What a population does to take fewer bytes.

    Attributes:
        states: ``"bfloat16"`` to compute states of nodes, between the features and the logits, with
            16 bits; None for the type of the parameters. Parameters, loss and scores keep their
            type, and so do sums inside of products.
        recompute: whether the backward pass computes each round again, which takes a third more
            products, instead of keeping its results. Members are then trained one at a time.
    """

    states: Literal["bfloat16"] | None = None
    recompute: bool = False

    def __post_init__(self) -> None:
        if self.states is not None:
            check_choice("states", self.states, ("bfloat16",))

    def check(self, network: nn.Module, name: str) -> None:
        """Refuse what a network cannot do."""
        ours = isinstance(network, NodeModel)
        if self.recompute and not (ours and network.recomputes is not None):
            raise UsageError(
                f"recompute=True is for networks with memory, such as gcn+mmp, not for {name}; "
                "leave it out"
            )
        if self.states is not None and not ours:
            raise UsageError(
                f"states={self.states!r} is for networks of this library, not for {name}; "
                "leave it out"
            )

    def of_task(self, task: Task) -> Task:
        """The data, with as few bits for dense features as for the states."""
        features, graph = task.inputs
        if self.states is None or not isinstance(features, Tensor):
            return task
        return replace(task, inputs=(features.to(torch.bfloat16), graph))

    def of_parameters(self, params: dict[str, Tensor]) -> dict[str, Tensor]:
        """Parameters with as few bits as the states; gradients go through to those with more."""
        if self.states is None:
            return params
        return {name: value.to(torch.bfloat16) for name, value in params.items()}

    def of_outputs(
        self, outputs: tuple[Tensor, Tensor | None], dtype: torch.dtype
    ) -> tuple[Tensor, Tensor | None]:
        """Logits and penalty with as many bits as the parameters."""
        if self.states is None:
            return outputs
        logits, penalty = outputs
        return logits.to(dtype), None if penalty is None else penalty.to(dtype)


NO_THRIFT = Thrift()
