"""Deep networks with residuals from their first layer: ``gcnii`` and ``gcnii+de``."""

from __future__ import annotations

from typing import Any

import torch.nn.functional as F
from torch import Tensor, nn

from memohop.networks.base import Backbone, Features, LayeredModel
from memohop.networks.stack import DropEdge
from memohop.nn import Dropout, FeatureLinear, Graph


class DeepStack(LayeredModel):
    r"""Convolutions of one width between a linear input layer and a linear classifier.

    From `"Simple and Deep Graph Convolutional Networks" <https://arxiv.org/abs/2007.02133>`_
    (ICML 2020), with the layer of :class:`memohop.nn.InitialResidualConv`:

    .. math::
        \mathbf{H}^0 &= \mathrm{ReLU}(\mathrm{drop}(\mathbf{X})\mathbf{W}_{in} + \mathbf{b}_{in}) \\
        \mathbf{H}^l &= \mathrm{ReLU}(
            \mathrm{conv}(\mathrm{drop}(\mathbf{H}^{l-1}), \mathbf{H}^0)) \\
        \mathbf{Z} &= \mathrm{drop}(\mathbf{H}^L)\mathbf{W}_{out} + \mathbf{b}_{out}

    The authors' settings have 8 to 64 layers, and a share :math:`\alpha` of .1 to .5. Their code
    normalises directed graphs by row sums on both sides, this one by row and column sums.
    """

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        *,
        backbone: Backbone,
        num_layers: int = 8,
        edge_dropout: float = 0.0,
        **common: Any,
    ) -> None:
        super().__init__(num_layers=num_layers, **common)
        self.backbone = backbone
        self.drop_edge = DropEdge(edge_dropout)
        self.input = FeatureLinear(in_channels, self.width, dropout=self.input_rate)
        self.convs = nn.ModuleList(backbone.between(self.width, num_layers))
        self.dropout = Dropout(self.rate)
        self.classifier = nn.Linear(self.width, out_channels)

    def forward(self, x: Features, graph: Graph) -> Tensor:
        """Logits ``[N, out_channels]``."""
        arcs = self.drop_edge(graph)
        hidden = F.relu(self.input(x))
        beside = self.backbone.beside(hidden)
        for conv in self.convs:
            hidden = self.backbone.activation(conv(self.dropout(hidden), arcs, *beside))
        return self.classifier(self.dropout(hidden))
