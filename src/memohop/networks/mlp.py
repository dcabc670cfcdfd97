"""The network that does not use the graph: ``mlp``."""

from __future__ import annotations

from itertools import pairwise

import torch.nn.functional as F
from torch import Tensor, nn

from memohop.networks.base import Features, NodeModel
from memohop.nn import Dropout, FeatureLinear


class MLP(NodeModel):
    r"""A multi-layer perceptron on the features of each node alone.

    .. math::
        \mathbf{H}^0 = \mathbf{X}, \quad
        \mathbf{H}^l = \mathrm{ReLU}(\mathrm{drop}(\mathbf{H}^{l-1})\mathbf{W}^l + \mathbf{b}^l)

    without the rectifier in the last layer. H2GCN's authors ran the row that the paper copies
    without biases, and tried it with and without the rectifier; without, it is a linear map.

    Args:
        relu: whether hidden layers are rectified.
        bias: whether layers add a learned vector.
    """

    looks_at_graph = False

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        *,
        hidden_channels: int = 64,
        num_layers: int = 2,
        dropout: float = 0.5,
        input_dropout: float = 0.5,
        relu: bool = True,
        bias: bool = True,
    ) -> None:
        super().__init__()
        self.relu = relu
        widths = [hidden_channels] * (num_layers - 1) + [out_channels]
        self.first = FeatureLinear(in_channels, widths[0], bias=bias, dropout=input_dropout)
        self.dropout = Dropout(dropout)
        self.later = nn.ModuleList(
            nn.Linear(width, after, bias=bias) for width, after in pairwise(widths)
        )

    def prepare(self, edge_index: Tensor, num_nodes: int, weights: Tensor | None = None) -> None:
        """Nothing: the graph is not used."""

    def forward(self, x: Features, graph: None = None) -> Tensor:
        """Logits ``[N, out_channels]``."""
        hidden = self.first(x)
        for linear in self.later:
            assert isinstance(linear, nn.Linear)
            hidden = F.relu(hidden) if self.relu else hidden
            hidden = linear(self.dropout(hidden))
        return hidden
