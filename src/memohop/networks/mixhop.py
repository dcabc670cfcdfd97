"""Several powers of the graph side by side: ``mixhop``."""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from memohop.errors import UsageError
from memohop.networks.base import Features, LayeredModel
from memohop.nn import BatchNorm, Dropout, FeatureLinear, Graph, SparseFeatures, weighted_product

_POWERS = 3  # 0, 1 and 2


class UnitFeatureLinear(FeatureLinear):
    r"""A linear map of features after dropout and scaling to length 1 in each row.

    .. math::
        \mathbf{z}_i = \frac{\mathrm{drop}(\mathbf{x}_i)}{|\mathrm{drop}(\mathbf{x}_i)|}\mathbf{W}

    Rows of zeros stay zeros.
    """

    def forward(self, features: Features) -> Tensor:
        """From ``[N, in_channels]`` to ``[N, out_channels]``."""
        if not isinstance(features, SparseFeatures):
            return F.normalize(self.dropout(features), dim=-1) @ self.weight
        values, pattern = self.dropout(features.values), features.pattern
        ones = values.new_ones(1, self.in_channels, 1)
        squares = weighted_product(values.square()[None], ones, pattern)[0, :, 0]
        length = squares.sqrt().clamp(min=1e-12).index_select(0, pattern.row)
        return weighted_product((values / length)[None], self.weight[None], pattern).squeeze(0)


class MixHop(LayeredModel):
    r"""Layers of three maps side by side: of the node, of one step and of two steps away.

    From `"MixHop: Higher-Order Graph Convolutional Architectures via Sparsified Neighborhood
    Mixing" <https://arxiv.org/abs/1905.00067>`_ (ICML 2019):

    .. math::
        \mathbf{H}^l &= \mathrm{drop}(\mathrm{ReLU}(\mathrm{BN}(
            \mathbf{H}^{l-1}\mathbf{W}^l_0 \Vert \mathbf{S}\mathbf{H}^{l-1}\mathbf{W}^l_1 \Vert
            \mathbf{S}^2\mathbf{H}^{l-1}\mathbf{W}^l_2))) \\
        \mathbf{Z} &= \sum_{p=0}^2 \mathrm{softmax}(\mathbf{q})_p\,
            \mathbf{S}^p\mathbf{H}^{L-1}\mathbf{W}^L_p

    where :math:`\mathbf{S}` is the symmetrically normalised graph with self-loops,
    :math:`\mathbf{H}^0` are the features after dropout, scaled to length 1 in each row, and the
    batch normalisation has no factor and uses the nodes' own statistics, also in evaluation. The
    only bias is that of the normalisation.

    This is the network of the authors' code with its default arguments, which H2GCN's authors
    ran for the row that the paper copies. Their loss has a term
    :math:`10^{-3}\,\mathrm{mean}(\mathbf{q}^2)`. Its gradient,
    :math:`\frac{2}{3} 10^{-3}\mathbf{q}`, is that of a weight decay of 0.00067; here
    :math:`\mathbf{q}` is decayed with all other parameters instead. Theirs decays the maps alone,
    with Keras's L2 penalty of ``5e-4``, which is a weight decay of ``1e-3``.

    PyTorch Geometric's ``MixHopConv`` computes the same layer if the three parts are equally
    wide. It is not used because it stores a vector per arc and member of a population.

    Args:
        hidden_channels: width of the hidden layers, divided among the three powers as evenly as
            possible, with the rest for the last one.
        unit_features: whether the features of each node are scaled to length 1.
    """

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        *,
        dropout: float = 0.9,
        input_dropout: float = 0.7,
        unit_features: bool = True,
        **common: Any,
    ) -> None:
        super().__init__(dropout=dropout, input_dropout=input_dropout, **common)
        if self.width < _POWERS:
            raise UsageError(
                f"hidden_channels={self.width} is divided among {_POWERS} powers of the graph; "
                f"give at least {_POWERS}"
            )
        each = round(self.width / _POWERS)
        hidden = [each, each, self.width - 2 * each]
        self.widths = [hidden] * (self.depth - 1) + [[out_channels] * _POWERS]
        kind = UnitFeatureLinear if unit_features else FeatureLinear
        first = kind(in_channels, sum(self.widths[0]), bias=False, dropout=input_dropout)
        _start(first.weight, self.widths[0], dim=1)
        self.linears = nn.ModuleList([first])
        for widths in self.widths[1:]:
            linear = nn.Linear(self.width, sum(widths), bias=False)
            _start(linear.weight, widths, dim=0)
            self.linears.append(linear)
        self.norms = nn.ModuleList(
            BatchNorm(self.width, scale=False, running=False, epsilon=1e-3) for _ in self.widths[1:]
        )
        self.dropout = Dropout(dropout)
        self.scores = nn.Parameter(torch.zeros(_POWERS))

    def forward(self, x: Features, graph: Graph) -> Tensor:
        """Logits ``[N, out_channels]``."""
        parts = self._mix(0, x, graph)
        for index, norm in enumerate(self.norms, start=1):
            hidden = self.dropout(F.relu(norm(torch.cat(parts, dim=-1))))
            parts = self._mix(index, hidden, graph)
        return (torch.stack(parts, dim=-1) * self.scores.softmax(0)).sum(-1)

    def _mix(self, index: int, hidden: Features, graph: Graph) -> tuple[Tensor, Tensor, Tensor]:
        """The parts of a layer for the powers 0, 1 and 2 of the graph."""
        here, near, far = self.widths[index]
        own, others = self.linears[index](hidden).split([here, near + far], dim=-1)
        once, twice = (graph @ others).split([near, far], dim=-1)
        return own, once, graph @ twice


def _start(weight: Tensor, widths: list[int], *, dim: int) -> None:
    """Glorot weights for each of the maps side by side."""
    for part in weight.detach().split(widths, dim=dim):
        nn.init.xavier_uniform_(part)
