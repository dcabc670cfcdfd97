"""The two convolutions of the paper, on the graph product of this library."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from memohop.errors import UsageError
from memohop.nn.attention import attend
from memohop.nn.dropout import Dropout
from memohop.nn.features import FeatureLinear, SparseFeatures
from memohop.nn.graph import Graph, ReweightedGraph
from memohop.nn.pattern import weighted_product


class GraphConv(nn.Module):
    r"""A convolution without activation: :math:`\mathbf{A}\mathbf{H}\mathbf{W} + \mathbf{b}`.

    With a symmetric graph and self-loops this is Kipf and Welling's GCN layer; with a row-wise
    mean over out-neighbours it is the convolution of MMP's released code.

    Args:
        in_channels: width of the input.
        out_channels: width of the output.
        bias: whether to add a learned vector.
        features: whether the input is the node features, which may be sparse and are dropped
            out here, or a hidden state.
        input_dropout: rate of dropout on node features.
    """

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        *,
        bias: bool = True,
        features: bool = False,
        input_dropout: float = 0.0,
    ) -> None:
        super().__init__()
        self.linear = _linear(in_channels, out_channels, features, input_dropout)
        self.bias = nn.Parameter(torch.zeros(out_channels)) if bias else None

    def forward(self, hidden: Tensor | SparseFeatures, graph: Graph | ReweightedGraph) -> Tensor:
        """From ``[N, in_channels]`` to ``[N, out_channels]``."""
        return graph.propagate(self.linear(hidden), self.bias)


class GraphAttention(nn.Module):
    r"""Graph attention without activation (Velickovic et al., 2018).

    .. math::
        \mathbf{h}'_i = \sum_j \alpha_{ij} \mathbf{W}\mathbf{h}_j, \quad
        \alpha_{ij} = \mathrm{softmax}_j\,
            \mathrm{LeakyReLU}(\mathbf{a}^\top[\mathbf{W}\mathbf{h}_i \Vert \mathbf{W}\mathbf{h}_j])

    over the entries of row :math:`i` of the graph; the weights of the graph itself play no part.

    Args:
        in_channels: width of the input.
        out_channels: width of the output, all heads together where they are concatenated.
        heads: number of attention heads.
        concat: concatenate the heads, or average them.
        bias: whether to add a learned vector.
        dropout: rate of dropout on the values the heads collect.
        attention_dropout: rate of dropout on the attention weights.
        negative_slope: of the leaky rectifier.
        features, input_dropout: as for :class:`GraphConv`.
    """

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        *,
        heads: int = 8,
        concat: bool = True,
        bias: bool = True,
        dropout: float = 0.0,
        attention_dropout: float = 0.0,
        negative_slope: float = 0.2,
        features: bool = False,
        input_dropout: float = 0.0,
    ) -> None:
        super().__init__()
        if concat and out_channels % heads:
            raise UsageError(f"heads={heads} must divide the width {out_channels}")
        self.heads, self.concat, self.negative_slope = heads, concat, negative_slope
        self.width = out_channels // heads if concat else out_channels
        self.linear = _linear(in_channels, heads * self.width, features, input_dropout)
        self.receive = nn.Parameter(torch.empty(heads, self.width))
        self.send = nn.Parameter(torch.empty(heads, self.width))
        self.bias = nn.Parameter(torch.zeros(out_channels)) if bias else None
        self.dropout = Dropout(dropout)
        self.attention_dropout = Dropout(attention_dropout, role="attention")
        nn.init.xavier_uniform_(self.receive)
        nn.init.xavier_uniform_(self.send)

    def forward(self, hidden: Tensor | SparseFeatures, graph: Graph | ReweightedGraph) -> Tensor:
        """From ``[N, in_channels]`` to ``[N, out_channels]``."""
        projected = self.linear(hidden).unflatten(-1, (self.heads, self.width)).transpose(0, 1)
        receive = (projected * self.receive[:, None]).sum(-1)
        send = (projected * self.send[:, None]).sum(-1)
        keep = graph.keep if isinstance(graph, ReweightedGraph) else None
        attention = attend(
            receive, send, graph.pattern, negative_slope=self.negative_slope, keep=keep
        )
        collected = self._collect(attention, projected, graph)
        combined = collected.transpose(0, 1).flatten(1) if self.concat else collected.mean(0)
        return combined if self.bias is None else combined + self.bias

    def _collect(
        self, attention: Tensor, projected: Tensor, graph: Graph | ReweightedGraph
    ) -> Tensor:
        weights = self.attention_dropout(attention)
        return weighted_product(weights, self.dropout(projected), graph.pattern)


def _linear(in_channels: int, out_channels: int, features: bool, dropout: float) -> nn.Module:
    if features:
        return FeatureLinear(in_channels, out_channels, bias=False, dropout=dropout)
    linear = nn.Linear(in_channels, out_channels, bias=False)
    nn.init.xavier_uniform_(linear.weight)
    return linear
