"""Convolutions that learn the weights of the arcs: graph attention and its second version."""

from __future__ import annotations

from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from memohop.errors import UsageError
from memohop.nn._convolution import Arcs, Convolution, Hidden, zeros
from memohop.nn._dropout import Dropout
from memohop.nn._edges import entry_attributes_of, of_both_ways
from memohop.nn._ops.attention import attend, attend_dynamically
from memohop.nn._ops.products import weighted_product


class _AttentionLayer(Convolution):
    """The common part of both versions: heads, vectors that score arcs, and how heads collect."""

    vectors: ClassVar[tuple[str, ...]]

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        *,
        heads: int = 8,
        concat: bool = True,
        bias: bool = True,
        value_dropout: float = 0.0,
        attention_dropout: float = 0.0,
        negative_slope: float = 0.2,
        **common: Any,
    ) -> None:
        if concat and out_channels % heads:
            raise UsageError(f"heads={heads} must divide the width {out_channels}")
        width = out_channels // heads if concat else out_channels
        super().__init__(in_channels, heads * width, bias=False, **common)
        self.bias = zeros(out_channels) if bias else None
        self.heads, self.width, self.concat = heads, width, concat
        self.negative_slope = negative_slope
        self.value_dropout = Dropout(value_dropout, role="value")
        self.attention_dropout = Dropout(attention_dropout, role="attention")
        for name in self.vectors:
            vector = nn.Parameter(torch.empty(heads, self.width))
            self.register_parameter(name, vector)
            nn.init.xavier_uniform_(vector)

    def _by_head(self, mapped: Tensor) -> Tensor:
        return mapped.unflatten(-1, (self.heads, self.width)).transpose(0, 1)

    def _collect(self, attention: Tensor, values: Tensor, graph: Arcs) -> Tensor:
        weights = self.attention_dropout(attention)
        collected = weighted_product(weights, self.value_dropout(values), graph.pattern)
        combined = collected.transpose(0, 1).flatten(1) if self.concat else collected.mean(0)
        return combined if self.bias is None else combined + self.bias


class GraphAttention(_AttentionLayer):
    r"""Graph attention without activation (Velickovic et al., 2018).

    .. math::
        \mathbf{h}'_i = \sum_j \alpha_{ij} \mathbf{W}\mathbf{h}_j, \quad
        \alpha_{ij} = \mathrm{softmax}_j\,
            \mathrm{LeakyReLU}(\mathbf{a}^\top[\mathbf{W}\mathbf{h}_i \Vert \mathbf{W}\mathbf{h}_j])

    over the entries of row :math:`i` of the graph; the weights of the graph itself are not used.

    Args:
        in_channels: width of the input.
        out_channels: width of the output, all heads together if they are concatenated.
        heads: number of attention heads.
        concat: whether to concatenate the heads or to average them.
        bias: whether to add a learned vector.
        value_dropout: rate of dropout on the values the heads collect.
        attention_dropout: rate of dropout on the attention weights.
        negative_slope: slope of the leaky rectifier below 0.
        features, input_dropout: as for :class:`GraphConv`.

    Example:
        >>> import torch, memohop
        >>> from memohop.nn import GraphAttention
        >>> graph = memohop.Graph(torch.tensor([[0, 1], [1, 2]]), 3, direction="undirected")
        >>> GraphAttention(8, 4, heads=2)(torch.randn(3, 8), graph).shape
        torch.Size([3, 4])
    """

    parts, vectors = 1, ("receive", "send")
    receive: Tensor
    send: Tensor

    def forward(self, hidden: Hidden, graph: Arcs) -> Tensor:
        """From ``[N, in_channels]`` to ``[N, out_channels]``."""
        projected = self._by_head(self.linear(hidden))
        receive = (projected * self.receive[:, None]).sum(-1)
        send = (projected * self.send[:, None]).sum(-1)
        attention = attend(
            receive, send, graph.pattern, negative_slope=self.negative_slope, keep=graph.keep
        )
        return self._collect(attention, projected, graph)


class DynamicGraphAttention(_AttentionLayer):
    r"""GATv2 without activation (Brody et al., 2022): each node has its own ranking of neighbours.

    .. math::
        \mathbf{h}'_i = \sum_j \alpha_{ij} \mathbf{W}_2\mathbf{h}_j, \quad
        \alpha_{ij} = \mathrm{softmax}_j\,
            \mathbf{a}^\top\mathrm{LeakyReLU}(\mathbf{W}_1\mathbf{h}_i + \mathbf{W}_2\mathbf{h}_j
            + \mathbf{W}_e\mathbf{x}_{ij})

    The weights of the graph itself are not used. The last term is there for graphs with
    attributes of arcs alone, with :math:`\mathbf{x}_{ij}` as in
    :attr:`memohop.Graph.entry_attributes`; :math:`\mathbf{W}_e` is 0 before training, so it begins
    as without them.

    Args:
        in_channels, out_channels, heads, concat, bias: as for :class:`GraphAttention`.
        value_dropout, attention_dropout, negative_slope: as there.
        features, input_dropout: as there.
        arc_attributes: the number of attributes of an arc; None to learn from none.

    Example:
        >>> import torch, memohop
        >>> from memohop.nn import DynamicGraphAttention
        >>> graph = memohop.Graph(torch.tensor([[0, 1], [1, 2]]), 3, direction="undirected")
        >>> DynamicGraphAttention(8, 4, heads=2)(torch.randn(3, 8), graph).shape
        torch.Size([3, 4])
    """

    parts, vectors = 2, ("score",)
    score: Tensor

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        *,
        arc_attributes: int | None = None,
        **common: Any,
    ) -> None:
        super().__init__(in_channels, out_channels, **common)
        self.edge_map: nn.Parameter | None = None
        if arc_attributes is not None:
            self.edge_map = nn.Parameter(
                torch.zeros(self.heads, of_both_ways(arc_attributes), self.width)
            )

    def forward(self, hidden: Hidden, graph: Arcs) -> Tensor:
        """From ``[N, in_channels]`` to ``[N, out_channels]``."""
        receive, send = (self._by_head(part) for part in self.linear(hidden).chunk(2, dim=-1))
        attributes = None
        if self.edge_map is not None:
            attributes = entry_attributes_of(graph, self.edge_map.shape[1])
        attention = attend_dynamically(
            receive,
            send,
            self.score,
            graph.pattern,
            negative_slope=self.negative_slope,
            keep=graph.keep,
            edge_map=self.edge_map,
            attributes=attributes,
        )
        return self._collect(attention, send, graph)
