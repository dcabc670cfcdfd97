"""Features and rows of the adjacency matrix, each through a perceptron: ``linkx``."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from memohop.errors import UsageError, whole_number
from memohop.networks.base import Features, LayeredModel
from memohop.nn import BatchNorm, Dropout, FeatureLinear, Graph


class AdjacencyLinear(nn.Module):
    r"""A linear map of the adjacency matrix's rows: :math:`\mathbf{A}\mathbf{W} + \mathbf{b}`."""

    bias: Tensor | None

    def __init__(self, num_nodes: int, out_channels: int, *, bias: bool = True) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(num_nodes, out_channels))
        self.register_parameter("bias", nn.Parameter(torch.zeros(out_channels)) if bias else None)
        nn.init.xavier_uniform_(self.weight)

    def forward(self, graph: Graph) -> Tensor:
        """Embeddings ``[N, out_channels]``."""
        return graph.propagate(self.weight, self.bias)


class LaterLayers(nn.Module):
    """The later layers of a perceptron: ReLU, batch norm, dropout, linear map, and so on.

    ``widths`` are those of the results of the first map and of each later one.
    """

    def __init__(self, widths: list[int], *, dropout: float | None = None) -> None:
        super().__init__()
        self.norms = nn.ModuleList(BatchNorm(width) for width in widths[:-1])
        self.linears = nn.ModuleList(nn.Linear(width, after) for width, after in pairwise(widths))
        self.dropout = nn.Identity() if dropout is None else Dropout(dropout)

    def forward(self, hidden: Tensor) -> Tensor:
        """From the first width to the last."""
        for norm, linear in zip(self.norms, self.linears, strict=True):
            hidden = linear(self.dropout(norm(F.relu(hidden))))
        return hidden


class LINKX(LayeredModel):
    r"""A perceptron on features and neighbour lists, without message passing.

    From `"Large Scale Learning on Non-Homophilous Graphs" <https://arxiv.org/abs/2110.14446>`_
    (NeurIPS 2021):

    .. math::
        \mathbf{H}_A = \mathrm{MLP}_A(\mathbf{A}), \quad
        \mathbf{H}_X = \mathrm{MLP}_X(\mathbf{X}), \quad
        \mathbf{Z} = \mathrm{MLP}_f(\mathrm{ReLU}([\mathbf{H}_A \Vert \mathbf{H}_X]\mathbf{W}
            + \mathbf{b} + \mathbf{H}_A + \mathbf{H}_X))

    The first map of :math:`\mathrm{MLP}_A` has a row for each node, so the network works only on
    the graph it was built for. Perceptrons of several layers have ReLU, batch normalisation and
    dropout between them, in this order; only the last perceptron has dropout.

    Args:
        num_nodes: number of nodes of the graph.
        num_layers: number of layers of the last perceptron.
        edge_layers: number of layers of the perceptron on neighbours.
        node_layers: number of layers of the perceptron on features.
        dropout: rate of dropout between the last layers.
    """

    policies = LayeredModel.policies | {"self_loops": "keep", "norm": "none"}
    per_node = ("neighbours.weight",)

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        *,
        num_nodes: int,
        edge_layers: int = 1,
        node_layers: int = 1,
        input_dropout: float = 0.0,
        **common: Any,
    ) -> None:
        super().__init__(input_dropout=input_dropout, **common)
        edge_layers = whole_number("edge_layers", edge_layers, least=1)
        node_layers = whole_number("node_layers", node_layers, least=1)
        self.num_nodes = whole_number("num_nodes", num_nodes, least=1)
        self.neighbours = AdjacencyLinear(num_nodes, self.width)
        self.features = FeatureLinear(in_channels, self.width, dropout=input_dropout)
        self.later_neighbours = LaterLayers([self.width] * edge_layers)
        self.later_features = LaterLayers([self.width] * node_layers)
        self.combine = nn.Linear(2 * self.width, self.width)
        widths = [self.width] * (self.depth - 1) + [out_channels]
        self.decide = nn.Linear(self.width, widths[0])
        self.later = LaterLayers(widths, dropout=self.rate)

    def prepare(self, edge_index: Tensor, num_nodes: int, weights: Tensor | None = None) -> Graph:
        """The graph, if it has as many nodes as the network was built for."""
        if num_nodes != self.num_nodes:
            raise UsageError(
                f"this linkx was built for num_nodes={self.num_nodes}, and the graph has "
                f"{num_nodes}: it has a row of weights for each node and cannot be used on "
                "another graph; build it anew, or take a model that can, such as gcn+mmp"
            )
        return super().prepare(edge_index, num_nodes, weights)

    def forward(self, x: Features, graph: Graph) -> Tensor:
        """Logits ``[N, out_channels]``."""
        of_neighbours = self.later_neighbours(self.neighbours(graph))
        of_features = self.later_features(self.features(x))
        for_neighbours, for_features = self.combine.weight.chunk(2, dim=1)
        combined = F.linear(of_neighbours, for_neighbours, self.combine.bias)
        combined = combined + F.linear(of_features, for_features) + of_neighbours + of_features
        return self.later(self.decide(F.relu(combined)))
