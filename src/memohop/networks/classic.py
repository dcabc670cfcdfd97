"""Classic convolutions, tuned: ``gcn-res``, ``gat-res`` and ``sage-res``."""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from memohop.errors import check_choice
from memohop.networks.base import Backbone, Features, LayeredModel
from memohop.nn import BatchNorm, Dropout, FeatureLinear, Graph, linear_map


class TunedStack(LayeredModel):
    r"""Convolutions with residual connections and normalisation.

    From `"Classic GNNs are Strong Baselines" <https://arxiv.org/abs/2406.08993>`_ (NeurIPS 2024):

    .. math::
        \mathbf{H}^l = \mathrm{drop}(\mathrm{ReLU}(\mathrm{norm}(
            \mathrm{conv}(\mathbf{H}^{l-1}) + \mathbf{H}^{l-1}\mathbf{W}^l))), \quad
        \mathbf{Z} = \mathbf{H}^L\mathbf{W} + \mathbf{b}

    with :math:`\mathbf{H}^0` the features, or a linear map of them. Layers have no bias if batch
    normalisation would remove it again. The authors drop no features; if a member does,
    convolution and residual draw a mask each.

    Args:
        projection: whether a linear map of the features comes first.
        residual: whether each layer adds a linear map of its input.
        hidden_norm: ``"batch"``, ``"layer"`` or ``"none"``.
        readout: decide by the ``"last"`` layer, or by the ``"sum"`` of all.
    """

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        *,
        backbone: Backbone,
        num_layers: int = 4,
        input_dropout: float = 0.0,
        projection: bool = False,
        residual: bool = True,
        hidden_norm: str = "batch",
        readout: str = "last",
        **common: Any,
    ) -> None:
        super().__init__(num_layers=num_layers, input_dropout=input_dropout, **common)
        check_choice("hidden_norm", hidden_norm, ("batch", "layer", "none"))
        check_choice("readout", readout, ("last", "sum"))
        self.readout = readout
        backbone = backbone.having(bias=hidden_norm != "batch")
        widths = [in_channels, *[self.width] * num_layers]
        self.projection = None
        if projection:
            self.projection = FeatureLinear(in_channels, self.width, dropout=input_dropout)
            convs = backbone.between(self.width, num_layers)
        else:
            convs = backbone.from_features(widths, input_dropout=input_dropout, logits=False)
        self.convs = nn.ModuleList(convs)
        self.residuals = nn.ModuleList()
        for index in range(num_layers if residual else 0):
            on_features = index == 0 and not projection
            width = in_channels if on_features else self.width
            residual_map = linear_map(
                width, self.width, features=on_features, dropout=input_dropout
            )
            # PyTorch's default, as the authors have it: the convolution has more weight.
            bound = width**-0.5
            nn.init.uniform_(residual_map.weight, -bound, bound)
            self.residuals.append(residual_map)
        norm = {"batch": BatchNorm, "layer": nn.LayerNorm, "none": nn.Identity}[hidden_norm]
        self.norms = nn.ModuleList(norm(self.width) for _ in range(num_layers))
        self.dropout = Dropout(self.rate)
        self.classifier = nn.Linear(self.width, out_channels)

    def forward(self, x: Features, graph: Graph) -> Tensor:
        """Logits ``[N, out_channels]``."""
        first = x if self.projection is None else self.projection(x)
        layers: list[Tensor] = []
        for index, (conv, norm) in enumerate(zip(self.convs, self.norms, strict=True)):
            hidden = layers[-1] if layers else first
            received = conv(hidden, graph)
            if self.residuals:
                received = received + self.residuals[index](hidden)
            layers.append(self.dropout(F.relu(norm(received))))
        return self.classifier(torch.stack(layers).sum(0) if self.readout == "sum" else layers[-1])
