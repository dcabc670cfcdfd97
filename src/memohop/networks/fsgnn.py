"""Soft selection among features of several hops: ``fsgnn``."""

from __future__ import annotations

import math
from functools import partial
from typing import ClassVar

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from memohop.errors import whole_number
from memohop.networks.base import Features, GraphModel
from memohop.nn import Dropout, Graph, linear_map


class FSGNN(GraphModel):
    r"""A separate linear map and a weight for each hop.

    From `"Improving Graph Neural Networks with Simple Architecture Design"
    <https://arxiv.org/abs/2105.07634>`_ (2021). With :math:`\mathbf{A}` the graph without
    self-loops, :math:`\hat{\mathbf{A}}` that with them, and :math:`\mathbf{X}_0, \dots,
    \mathbf{X}_{2K}` the features :math:`\mathbf{X}, \mathbf{A}^k\mathbf{X},
    \hat{\mathbf{A}}^k\mathbf{X}` for :math:`k = 1, \dots, K`:

    .. math::
        \mathbf{H}_i &= \mathrm{softmax}(\boldsymbol\alpha)_i\,
            \mathrm{norm}(\mathbf{X}_i\mathbf{W}_i + \mathbf{b}_i) \\
        \mathbf{Z} &= \mathrm{drop}(\mathrm{ReLU}([\mathbf{H}_0 \Vert \dots \Vert
            \mathbf{H}_{2K}]))\mathbf{W} + \mathbf{b}

    where *norm* divides each row by its length. The maps come before the products, which is
    equivalent and makes each hop one product of hidden width. The authors train
    :math:`\boldsymbol\alpha` with a separate learning rate.

    Args:
        hidden_channels: width of the map of each hop.
        hops: the number :math:`K`.
        dropout: rate of dropout before the classifier.
        normalise: whether rows are divided by their lengths.
        **policies: ``direction`` and ``norm``, see :class:`GraphModel`.
    """

    policies: ClassVar[dict[str, str]] = {"direction": "undirected", "norm": "symmetric"}

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        *,
        hidden_channels: int = 64,
        hops: int = 3,
        dropout: float = 0.5,
        input_dropout: float = 0.0,
        normalise: bool = True,
        **policies: str,
    ) -> None:
        super().__init__(**policies)
        self.hops, self.normalise = whole_number("hops", hops, least=1), normalise
        count = 2 * hops + 1
        self.linear = linear_map(
            in_channels, hidden_channels, features=True, dropout=input_dropout, parts=count
        )
        self.bias = nn.Parameter(torch.empty(count, hidden_channels))
        self.selection = nn.Parameter(torch.ones(count))
        self.dropout = Dropout(dropout)
        self.classifier = nn.Linear(count * hidden_channels, out_channels)
        # Not 0: a node without neighbours has only its biases, divided by their length.
        bound = 1 / math.sqrt(in_channels)
        nn.init.uniform_(self.bias, -bound, bound)

    def prepare(  # type: ignore[override]
        self, edge_index: Tensor, num_nodes: int, weights: Tensor | None = None
    ) -> tuple[Graph, Graph]:
        """The graph without and with self-loops."""
        make = partial(Graph, edge_index, num_nodes, weights=weights, **self.policies_in_force)
        return make(self_loops="remove"), make(self_loops="add")

    def forward(self, x: Features, graphs: tuple[Graph, Graph]) -> Tensor:
        """Logits ``[N, out_channels]``."""
        width = self.bias.shape[-1]
        own, *rest = self.linear(x).split([width, self.hops * width, self.hops * width], dim=-1)
        maps = [own]
        for part, graph in zip(rest, graphs, strict=True):
            maps += self._walk(part, graph)
        hidden = torch.stack(maps, dim=-2) + self.bias  # [N, 2 K + 1, hidden_channels]
        if self.normalise:
            hidden = F.normalize(hidden, dim=-1)
        hidden = hidden * self.selection.softmax(0)[:, None]
        return self.classifier(self.dropout(F.relu(hidden.flatten(-2))))

    def _walk(self, maps: Tensor, graph: Graph) -> list[Tensor]:
        """The first of ``hops`` maps after one step, the second after two, and so on."""
        width, parts = maps.shape[-1] // self.hops, []
        for _ in range(self.hops):
            maps = graph @ maps
            parts.append(maps[..., :width])
            maps = maps[..., width:]
        return parts
