"""Out- and in-neighbours apart: ``dir-gcn`` and ``dir-gcn+de``."""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from memohop.errors import check_choice
from memohop.networks.base import Backbone, Features, LayeredModel
from memohop.networks.stack import DropEdge
from memohop.nn import Dropout, Graph


class ReadoutStack(LayeredModel):
    r"""Convolutions from the features, and a classifier on all of them.

    From `"Edge Directionality Improves Learning on Heterophilic Graphs"
    <https://arxiv.org/abs/2305.10498>`_ (LoG 2023), with the layer of
    :class:`memohop.nn.DirectedConv`:

    .. math::
        \mathbf{H}^0 &= \mathrm{drop}(\mathbf{X}), \quad \mathbf{H}^l =
            \mathrm{norm}(\mathrm{drop}(\mathrm{ReLU}(\mathrm{conv}(\mathbf{H}^{l-1})))) \\
        \mathbf{Z} &= \mathrm{read}(\mathbf{H}^1, \dots, \mathbf{H}^L)\mathbf{W} + \mathbf{b}

    where *norm*, if requested, divides each row by its length, and *read* takes the maximum, the
    concatenation or the last. The authors' code has one bias per direction; their weighted sum
    here is equivalent. It drops no features, and picks its epoch by a validation accuracy
    computed with dropout.

    Args:
        readout: ``"max"``, ``"concat"`` or ``"last"``.
        normalise: whether each row of each layer is divided by its length.
    """

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        *,
        backbone: Backbone,
        num_layers: int = 3,
        edge_dropout: float = 0.0,
        readout: str = "max",
        normalise: bool = False,
        **common: Any,
    ) -> None:
        super().__init__(num_layers=num_layers, **common)
        check_choice("readout", readout, ("max", "concat", "last"))
        self.activation, self.readout, self.normalise = backbone.activation, readout, normalise
        widths = [in_channels, *[self.width] * num_layers]
        self.convs = nn.ModuleList(
            backbone.from_features(widths, input_dropout=self.input_rate, logits=False)
        )
        self.drop_edge = DropEdge(edge_dropout)
        self.dropout = Dropout(self.rate)
        parts = num_layers if readout == "concat" else 1
        self.classifier = nn.Linear(parts * self.width, out_channels)

    def forward(self, x: Features, graph: Graph) -> Tensor:
        """Logits ``[N, out_channels]``."""
        arcs = self.drop_edge(graph)
        layers: list[Tensor] = []
        for conv in self.convs:
            received = self.activation(conv(layers[-1] if layers else x, arcs))
            hidden = self.dropout(received)
            layers.append(F.normalize(hidden) if self.normalise else hidden)
        return self.classifier(self._read(layers))

    def _read(self, layers: list[Tensor]) -> Tensor:
        if self.readout == "max":
            return torch.stack(layers).amax(0)
        return torch.cat(layers, dim=-1) if self.readout == "concat" else layers[-1]
