"""Attention with a sign: ``fagcn``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from memohop.data.arguments import real_number
from memohop.networks.base import Features, GraphModel
from memohop.nn import Dropout, FeatureLinear, Graph
from memohop.nn._ops.pattern import inner, weighted_product

_GAIN = 2**0.5


class SignedAttention(nn.Module):
    r"""What neighbours say, for or against.

    .. math::
        \mathbf{h}'_i = \sum_j \mathrm{drop}(\alpha_{ij})\,\mathbf{h}_j, \quad
        \alpha_{ij} = a_{ij} \tanh(\mathbf{g}^\top[\mathbf{h}_i \Vert \mathbf{h}_j] + c)

    with :math:`a_{ij}` the entries of the graph. Only numbers, and no vectors, are held for each
    of them.

    Args:
        channels: width of input and output.
        dropout: rate of dropout on the attention.
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
        # The sum r_i + s_j as an inner product, (r_i, 1) and (1, s_j): its gradient is a product
        # with the pattern, and not a scatter whose order changes from run to run on a GPU.
        left = torch.stack([receive + self.gate.bias, ones], dim=-1)
        right = torch.stack([ones, send], dim=-1)
        scores = inner(left[None], right[None], graph.pattern)
        attention = self.dropout(graph.matrix.values * scores.tanh())
        return weighted_product(attention, hidden[None], graph.pattern).squeeze(0)


class FAGCN(GraphModel):
    r"""Attention that can take a neighbour's word for its contrary.

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

    PyTorch Geometric's ``FAConv`` is the same without the bias :math:`c_l`, if told to add no
    self-loops. It is not used because it keeps a vector per arc and member of a population,
    where this one keeps a number.

    Args:
        in_channels: number of features.
        out_channels: number of classes.
        hidden_channels: width of every layer.
        num_layers: number of rounds.
        epsilon: how much of its first state a node keeps, at least 0.
        dropout: rate of dropout on the first state.
        input_dropout: rate of dropout on the features.
        attention_dropout: rate of dropout on the attention.
        **policies: see :class:`GraphModel`. Self-loops are left out by default: a node keeps
            itself through its first state.
    """

    policies: ClassVar[Mapping[str, str]] = {
        "direction": "undirected",
        "self_loops": "remove",
        "norm": "symmetric",
    }

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        *,
        hidden_channels: int = 32,
        num_layers: int = 2,
        epsilon: float = 0.3,
        dropout: float = 0.5,
        input_dropout: float = 0.5,
        attention_dropout: float = 0.5,
        **policies: str,
    ) -> None:
        super().__init__(**policies)
        self.epsilon = real_number("epsilon", epsilon, least=0)
        self.input = FeatureLinear(in_channels, hidden_channels, dropout=input_dropout)
        nn.init.xavier_normal_(self.input.weight, gain=_GAIN)
        self.dropout = Dropout(dropout)
        self.rounds = nn.ModuleList(
            SignedAttention(hidden_channels, dropout=attention_dropout) for _ in range(num_layers)
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
