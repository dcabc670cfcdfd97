"""Two neighbourhoods apart from the node itself: ``h2gcn``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, NamedTuple

import numpy as np
import scipy.sparse as sp
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from memohop.networks.base import Features, LayeredModel
from memohop.nn import Dropout, FeatureLinear, FixedMatrix, Graph, Pattern, fixed_product

_PER_ROW = 32  # entries that cost as much as a row of two more products and a difference


class TwoSteps:
    r"""The matrix :math:`\bar{\mathbf{A}}_2` of nodes that are exactly two steps away.

    :math:`\mathbf{A}_2` has a 1 for nodes that can be reached in two steps and are neither
    neighbours nor the node itself, and is normalised symmetrically by its own degrees
    :math:`\mathbf{D}`. A node with many neighbours connects all pairs of them, which gives many
    entries, most of them for a single path. Then it is faster to multiply with
    :math:`\mathbf{A}\mathbf{A}`, which counts the paths, in two steps:

    .. math::
        \bar{\mathbf{A}}_2\mathbf{H} = \mathbf{D}^{-1/2}\mathbf{A}\,
            (\mathbf{A}\mathbf{D}^{-1/2}\mathbf{H})
            - \mathbf{D}^{-1/2}\mathbf{S}\mathbf{D}^{-1/2}\mathbf{H},
            \qquad \mathbf{S} = \mathbf{A}\mathbf{A} - \mathbf{A}_2

    with the surplus :math:`\mathbf{S}` of second paths, paths to neighbours and paths back. On
    Actor and graphs like it, a step takes 3.1 times as long without.

    Args:
        near: the graph, without self-loops; its weights are not used.
    """

    def __init__(self, near: Graph) -> None:
        steps = near.pattern.matrix(np.ones(len(near.pattern), dtype=np.int32))
        paths = steps @ steps
        far = (paths > 0) > (steps > 0) + sp.eye_array(near.num_nodes, dtype=bool, format="csr")
        entries = np.stack(far.nonzero()).astype(np.int64)
        device = near.weight.device
        self.graph = Graph(
            torch.from_numpy(entries).to(device), near.num_nodes, direction="out", norm="symmetric"
        )
        surplus = sp.csr_array(paths - far)
        surplus.sort_indices()
        by_detour = 2 * len(near.pattern) + surplus.nnz + _PER_ROW * near.num_nodes
        shorter = 2 * by_detour < len(self.pattern)
        self._detour = self._take_detour(near.pattern, surplus) if shorter else None

    @property
    def pattern(self) -> Pattern:
        """The pairs of nodes that are two steps apart."""
        return self.graph.pattern

    def __matmul__(self, hidden: Tensor) -> Tensor:
        """The product with ``[num_nodes, D]``, differentiable in ``hidden``."""
        if self._detour is None:
            return self.graph @ hidden
        last_step, first_step, surplus = self._detour
        dense = hidden[None]
        paths = fixed_product(fixed_product(dense, first_step), last_step)
        return (paths - fixed_product(dense, surplus)).squeeze(0)

    def _take_detour(
        self, near: Pattern, surplus: sp.csr_array
    ) -> tuple[FixedMatrix, FixedMatrix, FixedMatrix]:
        """The last step, the first step and the surplus, each with its share of the degrees."""
        weight, pattern = self.graph.weight, self.pattern
        rows, columns = (_scale(way, weight.dtype) for way in (pattern, pattern.transpose))
        more, count = Pattern.of(surplus, weight.device), torch.from_numpy(surplus.data).to(weight)
        return (
            FixedMatrix(near, rows[near.row]),
            FixedMatrix(near, columns[near.col]),
            FixedMatrix(more, count * rows[more.row] * columns[more.col]),
        )


def _scale(pattern: Pattern, dtype: torch.dtype) -> Tensor:
    """One over the root of each row's degree, or 0 so that differences there are exactly 0."""
    degree = pattern.pointers.diff().to(dtype)
    return torch.where(degree > 0, degree.clamp(min=1).rsqrt(), 0)


class Neighbourhoods(NamedTuple):
    """The nodes that are one step away, and those that are exactly two steps away."""

    near: Graph
    far: TwoSteps


class H2GCN(LayeredModel):
    r"""Neighbours one and two steps away, apart from each other and from the node itself.

    From `"Beyond Homophily in Graph Neural Networks: Current Limitations and Effective Designs"
    <https://arxiv.org/abs/2006.11468>`_ (NeurIPS 2020):

    .. math::
        \mathbf{R}^0 &= \mathrm{ReLU}(\mathrm{drop}(\mathbf{X})\mathbf{W}_e) \\
        \mathbf{R}^k &= \bar{\mathbf{A}}_1\mathbf{R}^{k-1} \Vert \bar{\mathbf{A}}_2\mathbf{R}^{k-1}
            \\
        \mathbf{Z} &= \mathrm{drop}(\mathbf{R}^0 \Vert \dots \Vert \mathbf{R}^K)\mathbf{W}_c

    :math:`\mathbf{A}_1` is the graph without self-loops; :math:`\mathbf{A}_2` has a 1 for nodes
    that can be reached in two steps and are neither neighbours nor the node itself. Each is
    normalised symmetrically by its own degrees. The rounds have no weights, and there are no
    biases; the width doubles with each round.

    This is the authors' network, and they drop no features. Keras's L2 penalty of ``5e-4`` in
    their code is a weight decay of ``1e-3``. PyTorch Geometric has no such operator.

    Args:
        hidden_channels: width of the first layer.
        relu: whether the first layer is rectified.
        dropout: rate of dropout before the classifier.
        **common: of the policies ``direction`` of both steps.
    """

    policies: ClassVar[dict[str, str]] = {"direction": "undirected"}

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        *,
        num_layers: int = 1,
        relu: bool = True,
        input_dropout: float = 0.0,
        **common: Any,
    ) -> None:
        super().__init__(num_layers=num_layers, input_dropout=input_dropout, **common)
        self.relu = relu
        self.input = FeatureLinear(in_channels, self.width, bias=False, dropout=input_dropout)
        self.dropout = Dropout(self.rate)
        width = self.width * (2 ** (num_layers + 1) - 1)
        self.classifier = nn.Linear(width, out_channels, bias=False)
        nn.init.xavier_uniform_(self.classifier.weight)

    def prepare(  # type: ignore[override]
        self, edge_index: Tensor, num_nodes: int, weights: Tensor | None = None
    ) -> Neighbourhoods:
        """The graph and its second neighbourhood, each normalised by its own degrees.

        Weights count in the graph; all nodes two steps away count alike.
        """
        policies = {**self.policies_in_force, "self_loops": "remove", "norm": "symmetric"}
        near = Graph(edge_index, num_nodes, weights=weights, **policies)
        return Neighbourhoods(near, TwoSteps(near))

    def forward(self, x: Features, graph: Neighbourhoods) -> Tensor:
        """Logits ``[N, out_channels]``."""
        first = self.input(x)
        if self.relu:
            first = F.relu(first)
        if not (self.training and self.dropout.active):
            return self._classify_first(first, graph)
        parts = of_round = [first]
        for _ in range(self.depth):
            of_round = [step @ part for step in graph for part in of_round]
            parts = parts + of_round
        weights = self.classifier.weight.chunk(len(parts), dim=1)
        classified = [
            F.linear(self.dropout(part), weight)
            for part, weight in zip(parts, weights, strict=True)
        ]
        return torch.stack(classified).sum(0)

    def _classify_first(self, first: Tensor, graph: Neighbourhoods) -> Tensor:
        r"""The logits without dropout, by products only as wide as the number of classes.

        Everything after the first layer is linear, so the classifier can come before the rounds:
        :math:`\mathbf{R}^k\mathbf{W} = \bar{\mathbf{A}}_1(\mathbf{R}^{k-1}\mathbf{W}_1) +
        \bar{\mathbf{A}}_2(\mathbf{R}^{k-1}\mathbf{W}_2)` with the halves of :math:`\mathbf{W}`.
        """

        def collected(classified: Sequence[Tensor]) -> Tensor:
            if len(classified) == 1:
                return classified[0]
            half = len(classified) // 2
            near, far = collected(classified[:half]), collected(classified[half:])
            return graph.near @ near + graph.far @ far

        weights = self.classifier.weight.unflatten(1, (-1, first.shape[-1]))  # [classes, parts, .]
        parts = F.linear(first, weights.transpose(0, 1).flatten(0, 1))
        classified = parts.unflatten(-1, (weights.shape[1], -1)).unbind(-2)
        rounds = [classified[2**k - 1 : 2 ** (k + 1) - 1] for k in range(self.depth + 1)]
        return torch.stack([collected(of_round) for of_round in rounds]).sum(0)
