"""The convolutions from which networks are stacked and around which plug-ins go."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import pairwise
from typing import Any

import torch.nn.functional as F
from torch import Tensor, nn

from memohop.nn import (
    DirectedConv,
    DynamicGraphAttention,
    GraphAttention,
    GraphConv,
    InitialResidualConv,
    IsomorphismConv,
    SageConv,
)


@dataclass(frozen=True)
class Backbone:
    """A kind of convolution: how to make its layers, and the activation after them.

    Attributes:
        layer: from ``(in_channels, out_channels, *, features, input_dropout)`` to a module.
        activation: the function between two layers.
        options: keyword arguments of a layer that a user may set.
        last: arguments in which the layer of the logits differs from the others.
        policies: the graph that the layer needs, if it differs from the network's default.
        initial: whether a layer takes its number, counted from 1, when it is made, and the
            network's first hidden state when it is called. Such layers have one width, and do
            not take features.
    """

    layer: Callable[..., nn.Module]
    activation: Callable[[Tensor], Tensor] = F.relu
    options: tuple[str, ...] = ("bias",)
    last: Mapping[str, Any] = field(default_factory=dict)
    policies: Mapping[str, str] = field(default_factory=dict)
    initial: bool = False

    def having(self, **options: Any) -> Backbone:
        """The same kind with some options of its layers set."""
        return replace(self, layer=partial(self.layer, **options))

    def from_features(
        self, widths: Sequence[int], *, input_dropout: float, logits: bool = True
    ) -> list[nn.Module]:
        """Layers from the features, of width ``widths[0]``, to logits or a hidden state."""
        layers = []
        for number, (width, after) in enumerate(pairwise(widths), start=1):
            first, last = number == 1, number == len(widths) - 1
            arguments = {"features": True, "input_dropout": input_dropout} if first else {}
            special = self.last if last and logits else {}
            layers.append(self.layer(width, after, **arguments, **special))
        return layers

    def between(self, channels: int, num_layers: int) -> list[nn.Module]:
        """Layers of one width, for a network that has other layers at both ends."""
        numbers = ({"place": n} if self.initial else {} for n in range(1, num_layers + 1))
        return [self.layer(channels, channels, **number) for number in numbers]

    def beside(self, initial: Tensor) -> tuple[Tensor, ...]:
        """The arguments of the layers beside hidden state and graph."""
        return (initial,) if self.initial else ()


_ATTENTION = ("bias", "heads", "value_dropout", "attention_dropout", "negative_slope")
_ONE_HEAD = {"heads": 1, "concat": False}

GCN = Backbone(GraphConv)
GAT = Backbone(GraphAttention, F.elu, _ATTENTION, _ONE_HEAD)
GATV2 = Backbone(DynamicGraphAttention, F.elu, _ATTENTION, _ONE_HEAD)
SAGE = Backbone(SageConv, policies={"self_loops": "remove", "norm": "row"})
GIN = Backbone(IsomorphismConv, policies={"self_loops": "remove", "norm": "none"})
DIR_GCN = Backbone(
    DirectedConv,
    options=("bias", "alpha"),
    policies={"direction": "out", "self_loops": "remove", "norm": "symmetric"},
)
GCNII = Backbone(InitialResidualConv, options=("alpha", "theta", "shared_weights"), initial=True)
