"""The linear graph network: ``sgc``."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from memohop.errors import whole_number
from memohop.networks.base import Features, GraphModel
from memohop.nn import FeatureLinear, Graph


class SGC(GraphModel):
    r"""Several averages and one linear map.

    From `"Simplifying Graph Convolutional Networks" <https://arxiv.org/abs/1902.07153>`_
    (ICML 2019):

    .. math::
        \mathbf{Z} = \mathbf{A}^K \mathbf{X}\mathbf{W} + \mathbf{b}

    The map comes first, which is equivalent: the products are then as wide as the number of
    classes, not of features. The authors multiply once, before training.

    Args:
        hops: the power :math:`K`.
    """

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        *,
        hops: int = 2,
        input_dropout: float = 0.0,
        **policies: str,
    ) -> None:
        super().__init__(**policies)
        self.hops = whole_number("hops", hops, least=1)
        self.linear = FeatureLinear(in_channels, out_channels, bias=False, dropout=input_dropout)
        self.bias = nn.Parameter(torch.zeros(out_channels))

    def forward(self, x: Features, graph: Graph) -> Tensor:
        """Logits ``[N, out_channels]``."""
        logits = self.linear(x)
        for _ in range(self.hops - 1):
            logits = graph @ logits
        return graph.propagate(logits, self.bias)
