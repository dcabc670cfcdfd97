"""Attributes of the arcs in a convolution: learned weights of the arcs, and relations."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

from memohop.errors import UsageError
from memohop.nn._features import linear_map
from memohop.nn._ops.pattern import fixed_product

if TYPE_CHECKING:
    from memohop.nn._convolution import Arcs, Hidden


_STEEPNESS = 10  # of weights of arcs


class ArcWeightConv(nn.Module):
    r"""A convolution in which the weight of each arc is learned from its attributes.

    .. math::
        \mathbf{M}_i = \sum_j s(\theta^\top\mathbf{x}_{ij})\,\mathbf{A}_{ij}\mathbf{C}_j\mathbf{W}
            + \mathbf{b}, \qquad s(z) = \frac{2}{1 + e^{-10 z}}

    for a convolution :math:`\mathbf{A}\mathbf{C}\mathbf{W} + \mathbf{b}`, with
    :math:`\mathbf{x}_{ij}` as in :attr:`memohop.Graph.entry_attributes`, whose 1 for each
    direction makes part of :math:`\theta` a bias. :math:`\theta` is 0 before training, so all
    arcs begin with weight 1, as without attributes. Weights stay between 0 and 2: an arc can be
    switched off, and no message grows beyond twice the plain one. The 10 lets :math:`\theta` be of
    the size of other weights, about 0.2: Adam changes all by the same amount in a step, whatever
    their gradient, and without it arcs would differ little when training ends. The
    :math:`\mathbf{A}_{ij}` are not normalised again, so a node whose arcs all count little
    receives little.

    Args:
        conv: a convolution that takes a product with the graph; it is used unchanged.
        arc_attributes: the number of attributes of an arc.

    Example:
        >>> import torch, memohop
        >>> from memohop.nn import ArcWeightConv, GraphConv
        >>> arcs, attributes = torch.tensor([[0, 1], [1, 2]]), torch.randn(2, 3)
        >>> graph = memohop.Graph(arcs, 3, direction="out", norm="row")
        >>> graph = graph.with_attributes(arcs, attributes)
        >>> ArcWeightConv(GraphConv(8, 4), 3)(torch.randn(3, 8), graph).shape
        torch.Size([3, 4])
    """

    def __init__(self, conv: nn.Module, arc_attributes: int) -> None:
        super().__init__()
        self.conv = conv
        self.theta = nn.Parameter(torch.zeros(of_both_ways(arc_attributes)))

    def forward(self, hidden: Hidden, graph: Arcs, *conv_args: Any) -> Tensor:
        """From ``[N, in_channels]`` to ``[N, out_channels]``."""
        scores = entry_attributes_of(graph, len(self.theta)).to(self.theta.dtype) @ self.theta
        return self.conv(hidden, graph.weighed(2 * (_STEEPNESS * scores).sigmoid()), *conv_args)


class RelationConv(nn.Module):
    r"""A convolution with a message for each relation, in both directions, beside its own.

    .. math::
        \mathbf{M} = \mathrm{conv}(\mathbf{C}) + \sum_r (\mathbf{A}_r\mathbf{C}\mathbf{W}_r
            + \mathbf{A}_r'\mathbf{C}\mathbf{W}_r')

    :math:`\mathbf{A}_r` is the graph of the arcs of relation :math:`r` from a node,
    :math:`\mathbf{A}_r'` that of the arcs to it, each normalised by itself. The
    :math:`\mathbf{W}_r` are 0 before training, so it begins as the convolution alone: each
    relation learns in what it differs, as far as weight decay lets it. All of them are one linear
    map and one product. With the identity for the convolution, this is the layer of relational GCN
    (Schlichtkrull et al., 2018) but for a node's own term.

    Args:
        conv: any convolution; it is used unchanged.
        in_channels, out_channels: its widths.
        relations: the number of relations.
        features, input_dropout: as for :class:`GraphConv`.

    Example:
        >>> import torch, memohop
        >>> from memohop.nn import GraphConv, RelationConv
        >>> arcs, attributes = torch.tensor([[0, 1], [1, 2]]), torch.eye(2)
        >>> graph = memohop.Graph(arcs, 3, direction="out", norm="row")
        >>> graph = graph.with_attributes(arcs, attributes, relations=[0, 1])
        >>> RelationConv(GraphConv(8, 4), 8, 4, relations=2)(torch.randn(3, 8), graph).shape
        torch.Size([3, 4])
    """

    def __init__(
        self,
        conv: nn.Module,
        in_channels: int,
        out_channels: int,
        *,
        relations: int,
        features: bool = False,
        input_dropout: float = 0.0,
    ) -> None:
        super().__init__()
        self.conv, self.out_channels, self.relations = conv, out_channels, relations
        with torch.random.fork_rng(devices=[]):  # all other weights begin as without relations
            self.linear = linear_map(
                in_channels,
                2 * relations * out_channels,
                features=features,
                dropout=input_dropout,
            )
        nn.init.zeros_(self.linear.weight)

    def forward(self, hidden: Hidden, graph: Arcs, *conv_args: Any) -> Tensor:
        """From ``[N, in_channels]`` to ``[N, out_channels]``."""
        matrix, width = graph.related(), 2 * self.relations
        has = 0 if matrix is None else matrix.pattern.shape[1] // max(graph.num_nodes, 1)
        if matrix is None or (graph.num_nodes and has != width):
            raise UsageError(
                f"the network has weights for {self.relations} relation(s), and the graph has "
                f"{has // 2}: give it the same attributes of arcs with Graph.with_attributes"
            )
        sent = self.linear(hidden).reshape(-1, self.out_channels)
        related = fixed_product(sent[None], matrix).squeeze(0)
        return self.conv(hidden, graph, *conv_args) + related


def of_both_ways(arc_attributes: int) -> int:
    r"""The length of :math:`\mathbf{x}_{ij}`."""
    return 2 * (1 + arc_attributes)


def entry_attributes_of(graph: Arcs, width: int) -> Tensor:
    """Those of a graph's entries, if they have this width."""
    if (attributes := graph.entry_attributes) is None or attributes.shape[1] != width:
        has = "none" if attributes is None else attributes.shape[1] // 2 - 1
        raise UsageError(
            f"the network learns from {width // 2 - 1} attribute(s) of the arcs, and the graph has "
            f"{has}: give it the same attributes of arcs with Graph.with_attributes"
        )
    return attributes
