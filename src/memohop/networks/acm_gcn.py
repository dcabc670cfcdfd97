"""Low-pass, high-pass and identity channels, mixed for each node: ``acm-gcn``."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from memohop.errors import check_choice
from memohop.networks.base import Features, LayeredModel
from memohop.nn import Dropout, Graph, linear_map

_CHANNELS = 3


class MixedChannels(nn.Module):
    """One layer of :class:`ACMGCN`, from its three maps side by side."""

    def __init__(self, linear: nn.Module, out_channels: int, order: str) -> None:
        super().__init__()
        self.linear, self.order = linear, order
        self.attention = nn.Parameter(torch.empty(_CHANNELS, out_channels))
        self.mix = nn.Parameter(torch.empty(_CHANNELS, _CHANNELS))
        nn.init.xavier_uniform_(self.attention)
        nn.init.xavier_uniform_(self.mix)

    def forward(self, hidden: Features, graph: Graph) -> Tensor:
        """From ``[N, in_channels]`` to ``[N, out_channels]``."""
        mapped = self.linear(hidden)
        if self.order == "rectify-first":
            mapped = F.relu(mapped)
        width = mapped.shape[-1] // _CHANNELS
        own = mapped[..., width:]
        low, smoothed = (graph @ mapped[..., : 2 * width]).chunk(2, dim=-1)
        high, identity = own.chunk(2, dim=-1)
        channels = torch.stack([low, high - smoothed, identity], dim=-2)  # [N, 3, out_channels]
        if self.order == "filter-first":
            channels = F.relu(channels)
        scores = (channels * self.attention).sum(-1).sigmoid()
        shares = (scores @ self.mix / _CHANNELS).softmax(-1)
        return _CHANNELS * (shares[..., None] * channels).sum(-2)


class ACMGCN(LayeredModel):
    r"""Adaptive channel mixing.

    From `"Revisiting Heterophily For Graph Neural Networks" <https://arxiv.org/abs/2210.07606>`_
    (NeurIPS 2022). With :math:`\mathbf{A}` the mean over a node and its neighbours, a layer is

    .. math::
        \mathbf{H}_L &= \mathrm{ReLU}(\mathbf{A}\mathbf{H}\mathbf{W}_L), \quad
        \mathbf{H}_H = \mathrm{ReLU}((\mathbf{I} - \mathbf{A})\mathbf{H}\mathbf{W}_H), \quad
        \mathbf{H}_I = \mathrm{ReLU}(\mathbf{H}\mathbf{W}_I) \\
        \boldsymbol\alpha &= \mathrm{softmax}(\mathrm{sigmoid}([\mathbf{H}_L\mathbf{a}_L \Vert
            \mathbf{H}_H\mathbf{a}_H \Vert \mathbf{H}_I\mathbf{a}_I])\mathbf{W}_{mix} / 3) \\
        \mathbf{H}' &= 3\,(\alpha_L\mathbf{H}_L + \alpha_H\mathbf{H}_H + \alpha_I\mathbf{H}_I)

    or, rectified first, with the filters after the rectifier (ACMII). The two filters share one
    product. As in the authors' code, the last layer is rectified too, so logits are at least 0.
    Their structure channel (the variants "+" and "++") is left out.

    Args:
        order: ``"filter-first"`` (ACM) or ``"rectify-first"`` (ACMII).
    """

    policies = LayeredModel.policies | {"norm": "row"}

    def __init__(
        self, in_channels: int, out_channels: int, *, order: str = "filter-first", **common: Any
    ) -> None:
        super().__init__(**common)
        check_choice("order", order, ("filter-first", "rectify-first"))
        widths = [in_channels, *[self.width] * (self.depth - 1), out_channels]
        self.layers = nn.ModuleList()
        for index, (width, after) in enumerate(pairwise(widths)):
            linear = linear_map(
                width, after, features=index == 0, dropout=self.input_rate, parts=_CHANNELS
            )
            self.layers.append(MixedChannels(linear, after, order))
        self.dropout = Dropout(self.rate)

    def forward(self, x: Features, graph: Graph) -> Tensor:
        """Logits ``[N, out_channels]``."""
        hidden = self.layers[0](x, graph)
        for layer in self.layers[1:]:
            hidden = layer(self.dropout(F.relu(hidden)), graph)
        return hidden
