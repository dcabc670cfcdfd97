"""Predict, then propagate: ``appnp``."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from memohop.errors import real_number, whole_number
from memohop.networks.base import Features, LayeredModel
from memohop.networks.mlp import MLP
from memohop.nn import Graph


class APPNP(LayeredModel):
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
        hops: int = 10,
        alpha: float = 0.1,
        **common: Any,
    ) -> None:
        super().__init__(**common)
        self.hops = whole_number("hops", hops, least=1)
        self.alpha = real_number("alpha", alpha, least=0, most=1)
        self.mlp = MLP(
            in_channels,
            out_channels,
            hidden_channels=self.width,
            num_layers=self.depth,
            dropout=self.rate,
            input_dropout=self.input_rate,
        )

    def forward(self, x: Features, graph: Graph) -> Tensor:
        """Logits ``[N, out_channels]``."""
        first = logits = self.mlp(x)
        for _ in range(self.hops):
            logits = torch.lerp(graph @ logits, first, self.alpha)
        return logits
