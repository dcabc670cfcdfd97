"""Jumping knowledge, as in the rows that the paper copies: ``gcn+jk``, ``gat+jk``, ..."""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from memohop.networks.base import Backbone, Features, LayeredModel
from memohop.nn import Dropout, Graph, linear_map


class JumpingStack(LayeredModel):
    r"""A classifier on all layers, including one that does not use the graph.

    .. math::
        \mathbf{H}^0 &= \mathrm{ReLU}(\mathrm{drop}(\mathbf{X})\mathbf{W}^0) \\
        \mathbf{H}^l &= \sigma(\mathrm{conv}(\mathrm{drop}(\mathbf{H}^{l-1}))) \\
        \mathbf{Z} &= \mathrm{drop}([\mathbf{H}^0 \Vert \dots \Vert \mathbf{H}^L])\mathbf{W}

    This is the network that H2GCN's authors ran for the row that the paper copies, without biases
    outside the convolutions. Unlike ``JumpingKnowledge`` (Xu et al., 2018), which combines
    convolutions alone, it has the branch :math:`\mathbf{H}^0`, and is therefore much better where
    neighbours disagree.

    Args:
        dropout: rate of dropout on hidden layers and before the classifier.
    """

    def __init__(
        self, in_channels: int, out_channels: int, *, backbone: Backbone, **common: Any
    ) -> None:
        super().__init__(**common)
        self.backbone = backbone
        self.input = linear_map(in_channels, self.width, features=True, dropout=self.input_rate)
        self.convs = nn.ModuleList(backbone.between(self.width, self.depth))
        self.dropout = Dropout(self.rate)
        self.classifier = linear_map(self.width * (self.depth + 1), out_channels)

    def forward(self, x: Features, graph: Graph) -> Tensor:
        """Logits ``[N, out_channels]``."""
        layers = [F.relu(self.input(x))]
        beside = self.backbone.beside(layers[0])
        for conv in self.convs:
            hidden = conv(self.dropout(layers[-1]), graph, *beside)
            layers.append(self.backbone.activation(hidden))
        together = torch.cat(layers, dim=-1)
        return F.linear(self.dropout(together), self.classifier.weight)
