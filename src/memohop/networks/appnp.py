"""Predict, then propagate: ``appnp``."""

from __future__ import annotations

import torch
from torch import Tensor

from memohop.errors import real_number, whole_number
from memohop.networks.base import Features, GraphModel
from memohop.networks.mlp import MLP
from memohop.nn import Graph


class APPNP(GraphModel):
    r"""A perceptron, and random walks of its logits over the graph that may return to the start.

    From `"Predict then Propagate" <https://arxiv.org/abs/1810.05997>`_ (ICLR 2019):

    .. math::
        \mathbf{Z}^0 = \mathrm{MLP}(\mathbf{X}), \quad
        \mathbf{Z}^k = (1 - \alpha)\mathbf{A}\mathbf{Z}^{k-1} + \alpha\mathbf{Z}^0

    The authors also drop entries of :math:`\mathbf{A}`, anew in each step, and decay the first
    matrix alone.

    Args:
        hops: number of steps.
        alpha: probability of returning to the start, from 0 to 1.
    """

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        *,
        hidden_channels: int = 64,
        num_layers: int = 2,
        hops: int = 10,
        alpha: float = 0.1,
        dropout: float = 0.5,
        input_dropout: float = 0.5,
        **policies: str,
    ) -> None:
        super().__init__(**policies)
        self.hops = whole_number("hops", hops, least=1)
        self.alpha = real_number("alpha", alpha, least=0, most=1)
        self.mlp = MLP(
            in_channels,
            out_channels,
            hidden_channels=hidden_channels,
            num_layers=num_layers,
            dropout=dropout,
            input_dropout=input_dropout,
        )

    def forward(self, x: Features, graph: Graph) -> Tensor:
        """Logits ``[N, out_channels]``."""
        first = logits = self.mlp(x)
        for _ in range(self.hops):
            logits = torch.lerp(graph @ logits, first, self.alpha)
        return logits
