"""Channels ordered by distance of the neighbourhood: ``ordered-gnn``."""

from __future__ import annotations

from itertools import cycle
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from memohop.errors import UsageError, check_choice, whole_number
from memohop.networks.base import Features, LayeredModel
from memohop.nn import Dropout, FeatureLinear, Graph


class OrderedGNN(LayeredModel):
    r"""In each round, a node closes more of its channels to the messages that it receives.

    From `"Ordered GNN: Ordering Message Passing to Deal with Heterophily and Over-smoothing"
    <https://arxiv.org/abs/2302.01524>`_ (ICLR 2023). With :math:`\mathbf{H}^0 =
    \mathrm{LN}(\mathrm{ReLU}(\mathrm{drop}(\mathbf{X})\mathbf{W}_{in} + \mathbf{b}_{in}))` and
    :math:`\mathbf{G}^0 = 0`, round :math:`l` is

    .. math::
        \mathbf{H} &= \mathrm{drop}(\mathbf{H}^{l-1}), \quad \mathbf{M} = \mathbf{A}\mathbf{H} \\
        \mathbf{G}^l &= \mathbf{G}^{l-1} + (1 - \mathbf{G}^{l-1}) \odot \mathrm{cumsum}(
            \mathrm{softmax}([\mathbf{H} \Vert \mathbf{M}]\mathbf{W}_g^l + \mathbf{b}_g^l)) \\
        \mathbf{H}^l &= \mathrm{LN}(\mathbf{G}^l \odot \mathbf{H}
            + (1 - \mathbf{G}^l) \odot \mathbf{M})

    with :math:`\mathbf{A}` the mean over the neighbours, and a gate for each chunk of channels.
    The logits are a linear map of :math:`\mathbf{H}^L`. The authors' network is 256 wide with 64
    chunks and has up to three input layers, two weight decays, and, for Chameleon and Squirrel,
    the identity matrix instead of the features and out-neighbours alone.

    Args:
        chunks: number of gates per node; it must divide the width.
        gate_sharing: a gate for each ``"layer"``, or one ``"shared"`` by all.
        dropout: rate of dropout before each round.
    """

    policies = LayeredModel.policies | {"self_loops": "remove", "norm": "row"}

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        *,
        num_layers: int = 8,
        chunks: int = 16,
        gate_sharing: str = "layer",
        **common: Any,
    ) -> None:
        super().__init__(num_layers=num_layers, **common)
        check_choice("gate_sharing", gate_sharing, ("layer", "shared"))
        if self.width % whole_number("chunks", chunks, least=1):
            raise UsageError(f"chunks={chunks} must divide the width {self.width}")
        self.input = FeatureLinear(in_channels, self.width, dropout=self.input_rate)
        self.gates = nn.ModuleList(
            nn.Linear(2 * self.width, chunks)
            for _ in range(num_layers if gate_sharing == "layer" else 1)
        )
        self.norms = nn.ModuleList(nn.LayerNorm(self.width) for _ in range(num_layers + 1))
        self.dropout = Dropout(self.rate)
        self.classifier = nn.Linear(self.width, out_channels)
        self.repeats = self.width // chunks

    def forward(self, x: Features, graph: Graph) -> Tensor:
        """Logits ``[N, out_channels]``."""
        hidden = self.norms[0](F.relu(self.input(x)))
        closed: Tensor | float = 0.0
        for linear, norm in zip(cycle(self.gates), self.norms[1:], strict=False):
            hidden = self.dropout(hidden)
            message = graph @ hidden
            scores = linear(torch.cat([hidden, message], dim=-1))
            gate = closed + (1 - closed) * scores.softmax(-1).cumsum(-1)
            hidden = norm(torch.lerp(message, hidden, gate.repeat_interleave(self.repeats, -1)))
            closed = gate
        return self.classifier(hidden)
