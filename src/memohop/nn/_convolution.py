"""Convolutions that take their weights from the graph, on the graph product of this library.

None of them has an activation. If a layer has several linear maps of one input, they are one
wider map: the input is read, and dropped out, once.
"""

from __future__ import annotations

import math
from typing import Any, ClassVar

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from memohop.errors import real_number
from memohop.nn._features import SparseFeatures, linear_map
from memohop.nn._graph import Graph, ReweightedGraph, WeighedGraph

Hidden = Tensor | SparseFeatures
Arcs = Graph | ReweightedGraph
WeighedArcs = Arcs | WeighedGraph


class Convolution(nn.Module):
    """Linear maps of the input, ``parts`` of them side by side, and a bias."""

    parts: ClassVar[int] = 1

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        *,
        bias: bool = True,
        features: bool = False,
        input_dropout: float = 0.0,
    ) -> None:
        super().__init__()
        self.linear = linear_map(
            in_channels, out_channels, features=features, dropout=input_dropout, parts=self.parts
        )
        self.bias = zeros(out_channels) if bias else None


def zeros(width: int) -> nn.Parameter:
    """A bias before training."""
    return nn.Parameter(torch.zeros(width))


class GraphConv(Convolution):
    r"""A convolution without activation: :math:`\mathbf{A}\mathbf{H}\mathbf{W} + \mathbf{b}`.

    With a symmetric graph and self-loops this is Kipf and Welling's GCN layer; with a row-wise
    mean over out-neighbours it is the convolution of MMP's released code.

    Args:
        in_channels: width of the input.
        out_channels: width of the output.
        bias: whether to add a learned vector.
        features: whether the input is the node features, which may be sparse and are dropped
            out here, or a hidden state.
        input_dropout: rate of dropout on node features.

    Example:
        >>> import torch, memohop
        >>> from memohop.nn import GraphConv
        >>> graph = memohop.Graph(torch.tensor([[0, 1], [1, 2]]), 3, direction="out", norm="row")
        >>> GraphConv(8, 4)(torch.randn(3, 8), graph).shape
        torch.Size([3, 4])
    """

    def forward(self, hidden: Hidden, graph: WeighedArcs) -> Tensor:
        """From ``[N, in_channels]`` to ``[N, out_channels]``."""
        return graph.propagate(self.linear(hidden), self.bias)


class SageConv(Convolution):
    r"""GraphSAGE's layer (Hamilton et al., 2017).

    .. math::
        \mathbf{H}' = \mathbf{H}\mathbf{W}_1 + \mathbf{A}\mathbf{H}\mathbf{W}_2 + \mathbf{b}

    with :math:`\mathbf{A}` the mean over the neighbours: ``norm="row"`` without self-loops.

    Args:
        in_channels, out_channels, bias, features, input_dropout: as for :class:`GraphConv`.

    Example:
        >>> import torch, memohop
        >>> from memohop.nn import SageConv
        >>> graph = memohop.Graph(torch.tensor([[0, 1], [1, 2]]), 3, direction="out", norm="row")
        >>> SageConv(8, 4)(torch.randn(3, 8), graph).shape
        torch.Size([3, 4])
    """

    parts = 2

    def forward(self, hidden: Hidden, graph: WeighedArcs) -> Tensor:
        """From ``[N, in_channels]`` to ``[N, out_channels]``."""
        own, neighbours = self.linear(hidden).chunk(2, dim=-1)
        return own + graph.propagate(neighbours, self.bias)


class IsomorphismConv(Convolution):
    r"""The layer of graph isomorphism networks, GIN (Xu et al., 2019).

    .. math::
        \mathbf{H}' = \mathrm{ReLU}(((1 + \epsilon)\mathbf{H} + \mathbf{A}\mathbf{H})\mathbf{W}_1
            + \mathbf{b}_1)\mathbf{W}_2 + \mathbf{b}_2

    with a learned :math:`\epsilon` and :math:`\mathbf{A}` the sum over the neighbours:
    ``norm="none"`` without self-loops. The first map is applied before the product, which gives
    the same result. It is as wide as the output in a layer on features, and as the input in later
    ones.

    Args:
        in_channels, out_channels, bias, features, input_dropout: as for :class:`GraphConv`.

    Example:
        >>> import torch, memohop
        >>> from memohop.nn import IsomorphismConv
        >>> graph = memohop.Graph(torch.tensor([[0, 1], [1, 2]]), 3, direction="out", norm="row")
        >>> IsomorphismConv(8, 4)(torch.randn(3, 8), graph).shape
        torch.Size([3, 4])
    """

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        *,
        bias: bool = True,
        features: bool = False,
        **common: Any,
    ) -> None:
        width = out_channels if features else in_channels
        super().__init__(in_channels, width, bias=False, features=features, **common)
        self.inner_bias = zeros(width) if bias else None
        self.second = linear_map(width, out_channels)
        self.bias = zeros(out_channels) if bias else None
        self.epsilon = nn.Parameter(torch.zeros(()))

    def forward(self, hidden: Hidden, graph: WeighedArcs) -> Tensor:
        """From ``[N, in_channels]`` to ``[N, out_channels]``."""
        first = self.linear(hidden)
        first = (1 + self.epsilon) * first + graph.propagate(first, self.inner_bias)
        second = self.second(F.relu(first))
        return second if self.bias is None else second + self.bias


class DirectedConv(Convolution):
    r"""Separate maps for out- and in-neighbours: the layer of Dir-GCN (Rossi et al., 2023).

    .. math::
        \mathbf{H}' = \alpha\,\mathbf{A}\mathbf{H}\mathbf{W}_1
            + (1 - \alpha)\,\mathbf{A}^\top\mathbf{H}\mathbf{W}_2 + \mathbf{b}

    with :math:`\mathbf{A} = \mathbf{D}_{out}^{-1/2}\mathbf{E}\mathbf{D}_{in}^{-1/2}` over
    out-neighbours: ``direction="out"`` and ``norm="symmetric"``, without self-loops.

    Args:
        in_channels, out_channels, bias, features, input_dropout: as for :class:`GraphConv`.
        alpha: the share of the out-neighbours, from 0 to 1.

    Example:
        >>> import torch, memohop
        >>> from memohop.nn import DirectedConv
        >>> graph = memohop.Graph(torch.tensor([[0, 1], [1, 2]]), 3, direction="out", norm="row")
        >>> DirectedConv(8, 4)(torch.randn(3, 8), graph).shape
        torch.Size([3, 4])
    """

    parts = 2

    def __init__(
        self, in_channels: int, out_channels: int, *, alpha: float = 0.5, **common: Any
    ) -> None:
        super().__init__(in_channels, out_channels, **common)
        self.alpha = real_number("alpha", alpha, least=0, most=1)

    def forward(self, hidden: Hidden, graph: Arcs) -> Tensor:
        """From ``[N, in_channels]`` to ``[N, out_channels]``."""
        out, into = self.linear(hidden).chunk(2, dim=-1)
        into = graph.reversed.propagate((1 - self.alpha) * into, self.bias)
        return graph.propagate(self.alpha * out) + into


class InitialResidualConv(nn.Module):
    r"""The layer of GCNII (Chen et al., 2020), which adds a share of the first layer.

    .. math::
        \mathbf{Z} = (1 - \alpha)\mathbf{A}\mathbf{H} + \alpha\mathbf{H}^0, \quad
        \mathbf{H}' = (1 - \beta_l)\mathbf{Z} + \beta_l\mathbf{Z}\mathbf{W}, \quad
        \beta_l = \log(\theta / l + 1)

    Without shared weights (the authors' GCNII*), the two terms of :math:`\mathbf{Z}` have a
    matrix each.

    Args:
        in_channels: width of input and output.
        out_channels: the same width.
        place: the number :math:`l` of the layer, from 1.
        alpha: the share of the first layer, from 0 to 1.
        theta: how fast deeper layers approach the identity, at least 0.
        shared_weights: whether both terms are multiplied by the same matrix.

    Example:
        >>> import torch, memohop
        >>> from memohop.nn import InitialResidualConv
        >>> graph = memohop.Graph(torch.tensor([[0, 1], [1, 2]]), 3, direction="undirected")
        >>> first = torch.randn(3, 8)
        >>> InitialResidualConv(8, 8)(first, graph, first).shape
        torch.Size([3, 8])
    """

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        *,
        place: int = 1,
        alpha: float = 0.1,
        theta: float = 0.5,
        shared_weights: bool = True,
    ) -> None:
        super().__init__()
        self.alpha = real_number("alpha", alpha, least=0, most=1)
        self.beta = math.log(real_number("theta", theta, least=0) / place + 1)
        self.linear = linear_map(in_channels, out_channels)
        self.of_initial = None if shared_weights else linear_map(in_channels, out_channels)

    def forward(self, hidden: Tensor, graph: WeighedArcs, initial: Tensor) -> Tensor:
        """From ``[N, in_channels]`` to the same shape; ``initial`` is the first hidden state."""
        received, kept = (1 - self.alpha) * (graph @ hidden), self.alpha * initial
        combined = received + kept
        if self.of_initial is None:
            mapped = self.linear(combined)
        else:
            mapped = self.linear(received) + self.of_initial(kept)
        return torch.lerp(combined, mapped, self.beta)
