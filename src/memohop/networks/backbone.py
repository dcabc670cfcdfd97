"""The layers that the plug-ins of the paper's table go round: ``gcn`` and ``gat``."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import torch.nn.functional as F
from torch import Tensor, nn

from memohop.nn import GraphAttention, GraphConv


@dataclass(frozen=True)
class Backbone:
    """A kind of convolution: how to make a layer of it, and what follows the layer.

    Attributes:
        layer: from ``(in_channels, out_channels, *, features, input_dropout)`` to a module.
        activation: what comes between two layers.
        options: keyword arguments of a layer that a user may set.
        last: arguments with which the layer that gives the logits differs from the others.
    """

    layer: Callable[..., nn.Module]
    activation: Callable[[Tensor], Tensor]
    options: tuple[str, ...]
    last: Mapping[str, Any] = field(default_factory=dict)

    def having(self, **options: Any) -> Backbone:
        """The same kind with some options of its layers set."""
        layer = partial(self.layer, **options)
        return Backbone(layer, self.activation, self.options, self.last)


GCN = Backbone(GraphConv, F.relu, ("bias",))
GAT = Backbone(
    GraphAttention,
    F.elu,
    ("bias", "heads", "attention_dropout", "negative_slope"),
    {"heads": 1, "concat": False},
)
