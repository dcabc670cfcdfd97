"""Attention with a sign: ``fagcn``."""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from memohop.errors import real_number
from memohop.networks.base import Features, LayeredModel
from memohop.nn import Dropout, FeatureLinear, Graph, inner, weighted_product

_GAIN = 2**0.5


class SignedAttention(nn.Module):
    r"""A signed sum over the neighbours.

    .. math::
        \mathbf{h}'_i = \sum_j \mathrm{drop}(\alpha_{ij})\,\mathbf{h}_j, \quad
        \alpha_{ij} = a_{ij} \tanh(\mathbf{g}^\top[\mathbf{h}_i \Vert \mathbf{h}_j] + c)

    with :math:`a_{ij}` the entries of the graph. It stores one number per entry, not a vector.
    """

    def __init__(self, channels: int, *, dropout: float = 0.0) -> None:
        super().__init__()
        self.gate = nn.Linear(2 * channels, 1)
        nn.init.xavier_normal_(self.gate.weight, gain=_GAIN)
        nn.init.zeros_(self.gate.bias)
        self.dropout = Dropout(dropout, role="attention")

    def forward(self, hidden: Tensor, graph: Graph) -> Tensor:
        """From ``[N, channels]`` to ``[N, channels]``."""
        receive, send = (hidden @ self.gate.weight.view(2, -1).t()).unbind(-1)
        ones = torch.ones_like(send)
        # The sum r_i + s_j as an inner product of (r_i, 1) and (1, s_j): its gradient is a product
        # with the pattern, not a scatter, which on a GPU would add up in varying order.
        left = torch.stack([receive + self.gate.bias, ones], dim=-1)
        right = torch.stack([ones, send], dim=-1)
        scores = inner(left[None], right[None], graph.pattern)
        attention = self.dropout(graph.matrix.values * scores.tanh())
        return weighted_product(attention, hidden[None], graph.pattern).squeeze(0)


class FAGCN(LayeredModel):
    r"""Attention that may be negative, so that a node can move away from a neighbour.

    From `"Beyond Low-frequency Information in Graph Convolutional Networks"
    <https://arxiv.org/abs/2101.00797>`_ (AAAI 2021):

    .. math::
        \mathbf{H}^0 &= \mathrm{drop}(\mathrm{ReLU}(
            \mathrm{drop}(\mathbf{X})\mathbf{W}_1 + \mathbf{b}_1)) \\
        \mathbf{h}^l_i &= \epsilon\,\mathbf{h}^0_i + \sum_{j \in N(i)} \mathrm{drop}\!\left(
            \frac{\tanh(\mathbf{g}_l^\top[\mathbf{h}^{l-1}_i \Vert \mathbf{h}^{l-1}_j] + c_l)}
            {\sqrt{d_i d_j}}\right)\mathbf{h}^{l-1}_j \\
        \mathbf{Z} &= \mathbf{H}^L\mathbf{W}_2 + \mathbf{b}_2

    This is the authors' network. Their code has one rate for the three kinds of dropout; biases
    start at 0 here.

    PyTorch Geometric's ``FAConv`` without self-loops is the same but for the bias :math:`c_l`. It
    is not used because it stores a vector per arc and member of a population, not a number.

    Args:
        epsilon: weight of a node's first state, at least 0.
        dropout: rate of dropout on the first state.
        attention_dropout: rate of dropout on the attention.
        **common: Self-loops are removed by default: a node keeps its
            own state through :math:`\mathbf{h}^0_i`.
    """

    policies = LayeredModel.policies | {"self_loops": "remove"}

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        *,
        hidden_channels: int = 32,
        epsilon: float = 0.3,
        attention_dropout: float = 0.5,
        **common: Any,
    ) -> None:
        super().__init__(hidden_channels=hidden_channels, **common)
        self.epsilon = real_number("epsilon", epsilon, least=0)
        self.input = FeatureLinear(in_channels, hidden_channels, dropout=self.input_rate)
        nn.init.xavier_normal_(self.input.weight, gain=_GAIN)
        self.dropout = Dropout(self.rate)
        self.rounds = nn.ModuleList(
            SignedAttention(hidden_channels, dropout=attention_dropout) for _ in range(self.depth)
        )
        self.classifier = nn.Linear(hidden_channels, out_channels)
        nn.init.xavier_normal_(self.classifier.weight, gain=_GAIN)
        nn.init.zeros_(self.classifier.bias)

    def forward(self, x: Features, graph: Graph) -> Tensor:
        """Logits ``[N, out_channels]``."""
        hidden = first = self.dropout(F.relu(self.input(x)))
        for attention in self.rounds:
            hidden = self.epsilon * first + attention(hidden, graph)
        return self.classifier(hidden)
