"""Plain stacks of convolutions, with and without DropEdge: ``gcn``, ``sage``, ``gcn+de``, ..."""

from __future__ import annotations

from typing import Any

from torch import Tensor, nn

from memohop.networks.base import Backbone, Features, LayeredModel
from memohop.nn import Dropout, Graph, ReweightedGraph


class DropEdge(nn.Module):
    """Drops arcs while training, and normalises the rest (Rong et al., 2020).

    All layers use the same draw in a forward pass. Arcs are dropped independently with the given
    probability; the authors' code keeps an exact number of arcs instead. Evaluation uses the
    whole graph.
    """

    def __init__(self, rate: float) -> None:
        super().__init__()
        self.dropout = Dropout(rate, role="edge")

    def forward(self, graph: Graph) -> Graph | ReweightedGraph:
        """The graph with some arcs dropped, or as it is in evaluation mode."""
        mask = self.dropout.mask((len(graph.pattern),), graph.weight)
        return graph if mask is None else graph.reweighted((mask > 0).to(mask.dtype))


class Stack(LayeredModel):
    r"""Convolutions one after the other, from the features to the logits.

    .. math::
        \mathbf{H}^l = \sigma(\mathrm{conv}(\mathrm{drop}(\mathbf{H}^{l-1}))), \quad
        \mathbf{H}^0 = \mathbf{X}

    without activation in the last layer. With ``gcn`` layers this is Kipf and Welling (2017),
    with ``gat`` layers Velickovic et al. (2018); with ``edge_dropout`` it is the DropEdge row of
    the paper's table.
    """

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        *,
        backbone: Backbone,
        edge_dropout: float = 0.0,
        **common: Any,
    ) -> None:
        super().__init__(**common)
        widths = [in_channels, *[self.width] * (self.depth - 1), out_channels]
        self.drop_edge = DropEdge(edge_dropout)
        self.dropout = Dropout(self.rate)
        self.activation = backbone.activation
        self.convs = nn.ModuleList(backbone.from_features(widths, input_dropout=self.input_rate))

    def forward(self, x: Features, graph: Graph) -> Tensor:
        """Logits ``[N, out_channels]``."""
        arcs = self.drop_edge(graph)
        hidden = self.convs[0](x, arcs)
        for conv in self.convs[1:]:
            hidden = conv(self.dropout(self.activation(hidden)), arcs)
        return hidden
