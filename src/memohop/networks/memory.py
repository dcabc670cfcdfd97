"""The paper's network, on any backbone: ``gcn+mmp``, ``gat+mmp``, ``sage+mmp``, ..."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from itertools import cycle
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from memohop.errors import check_choice
from memohop.networks.backbone import Backbone
from memohop.networks.base import Features, GraphModel
from memohop.networks.passing import AllNodes, MeanGates, Nodes, Watch
from memohop.networks.released import start_as_released
from memohop.nn import MMP, Dropout, FeatureLinear, Graph, MemoryGate
from memohop.nn.decoupling import FORMS, network_decoupling_loss
from memohop.nn.mmp import Gates


class MemoryOutput(NamedTuple):
    """The result of a :class:`MemoryNetwork`; there is no penalty in evaluation mode."""

    logits: Tensor
    penalty: Tensor | None


class MemoryNetwork(GraphModel):
    r"""Memory-based message passing between a linear input layer and a linear classifier.

    .. math::
        \mathbf{H}^0 &= \mathrm{ReLU}(\mathrm{drop}(\mathbf{X})\mathbf{W}_{in} + \mathbf{b}_{in}),
            \quad \mathbf{C}^0 = \mathbf{H}^0 \\
        \mathbf{H}^l, \mathbf{C}^l &= \mathrm{MMP}^l(\mathbf{H}^{l-1}, \mathbf{C}^{l-1}) \\
        \mathbf{Z} &= \mathbf{H}^L\mathbf{W}_{out} + \mathbf{b}_{out}

    The decoupling loss over the pairs :math:`(\mathbf{H}^l, \mathbf{C}^l)` is its penalty, which
    the trainer weighs with :math:`\lambda`.

    Args:
        hidden_channels: width of hidden state, memory and message.
        dropout: rate of dropout on the gate's input, as in the released code, and wherever the
            next two options add it.
        classifier_dropout: whether there is dropout before the classifier.
        memory_dropout: whether there is dropout on the memory before each convolution, as in the
            released code for attention.
        gate: ``"linear"`` or ``"gru"``.
        gate_sharing: ``"shared"``, one gate for all layers as in the paper, or ``"layer"``.
        per: gates per ``"node"`` or per ``"channel"``.
        memory_from: ``"message"`` or ``"hidden"``, see :class:`memohop.MMP`.
        message_norm: ``"none"``, or ``"layer"`` for layer normalisation of the message.
        readout: classify by the ``"last"`` layer, or by all of them side by side, ``"jumping"``.
        decoupling: form of the penalty, see :func:`memohop.decoupling_loss`.
        init: start with ``"glorot"`` weights and zero biases, or as the ``"released"`` code does,
            see :mod:`memohop.networks.released`.
        **policies: see :class:`GraphModel`. Self-loops are removed by default: a node keeps its
            own state through the gates.
    """

    policies = GraphModel.policies | {"self_loops": "remove", "norm": "row"}

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        *,
        backbone: Backbone,
        hidden_channels: int = 64,
        num_layers: int = 2,
        dropout: float = 0.5,
        input_dropout: float = 0.5,
        classifier_dropout: bool = False,
        memory_dropout: bool = False,
        gate: str = "linear",
        gate_sharing: str = "shared",
        per: str = "node",
        memory_from: str = "message",
        message_norm: str = "none",
        readout: str = "last",
        decoupling: str = "mean",
        init: str = "glorot",
        **policies: str,
    ) -> None:
        super().__init__(**policies)
        check_choice("gate_sharing", gate_sharing, ("shared", "layer"))
        check_choice("message_norm", message_norm, ("none", "layer"))
        check_choice("readout", readout, ("last", "jumping"))
        check_choice("decoupling", decoupling, FORMS)
        check_choice("init", init, ("glorot", "released"))
        self.backbone, self.readout, self.decoupling = backbone, readout, decoupling
        self.penalty_is_summed = decoupling == "paper"
        self.input = FeatureLinear(in_channels, hidden_channels, dropout=input_dropout)
        gates = [
            MemoryGate(hidden_channels, kind=gate, per=per, dropout=dropout)
            for _ in range(1 if gate_sharing == "shared" else num_layers)
        ]
        self.rounds = nn.ModuleList()
        convs = backbone.between(hidden_channels, num_layers)
        for conv, own_gate in zip(convs, cycle(gates), strict=False):
            if message_norm == "layer":
                conv = Normalised(conv, hidden_channels)
            self.rounds.append(MMP(conv, hidden_channels, gate=own_gate, memory_from=memory_from))
        self.memory_dropout = Dropout(dropout) if memory_dropout else nn.Identity()
        self.dropout = Dropout(dropout) if classifier_dropout else nn.Identity()
        width = hidden_channels * (num_layers + 1 if readout == "jumping" else 1)
        self.classifier = nn.Linear(width, out_channels)
        nn.init.xavier_uniform_(self.classifier.weight)
        nn.init.zeros_(self.classifier.bias)
        if init == "released":
            start_as_released((self.input, self.classifier), gates, convs)

    def forward(self, x: Features, graph: Graph) -> MemoryOutput:
        """Logits ``[N, out_channels]`` and the decoupling loss."""
        nodes = AllNodes(x, graph, self.backbone.beside)
        self.pass_messages(nodes)
        logits = self.classify([hidden for hidden, _ in nodes.pairs])
        if not self._has_penalty():
            return MemoryOutput(logits, None)
        return MemoryOutput(logits, network_decoupling_loss(nodes.pairs, form=self.decoupling))

    def gates(self, x: Features, graph: Graph) -> Tensor:
        """The gates ``[rounds, N, 3]``: kept, absorbed, passed on (means over channels)."""
        gates = MeanGates(self.classifier.weight.new_empty(len(self.rounds), x.shape[0], 3))
        self.pass_messages(AllNodes(x, graph, self.backbone.beside), gates)
        return gates.found

    def pass_messages(self, nodes: Nodes, watch: Watch | None = None) -> None:
        """The forward pass from the features up to the classifier, Eqs. (6)-(10) in each round.

        Args:
            nodes: hidden state and memory, all at once or block by block.
            watch: receives each round and its gates.
        """
        watch = Watch() if watch is None else watch
        nodes.start(self.embed)
        for number, mmp in enumerate(self.rounds, start=1):
            assert isinstance(mmp, MMP)
            wanted = number < len(self.rounds) or self._has_penalty()
            watch.before_round(mmp)
            nodes.step(partial(self._round, mmp, wanted), watch)

    def embed(self, x: Features) -> Tensor:
        r"""From features to :math:`\mathbf{H}^0 = \mathbf{C}^0`."""
        return F.relu(self.input(x))

    def classify(self, hidden: Sequence[Tensor]) -> Tensor:
        """From the hidden states of all rounds to logits; ``"last"`` needs only the last one."""
        read = torch.cat([*hidden], dim=-1) if self.readout == "jumping" else hidden[-1]
        return self.classifier(self.dropout(read))

    def _round(
        self, mmp: MMP, wants_memory: bool, hidden: Tensor, memory: Tensor, *conv_args: Any
    ) -> tuple[Tensor, Tensor, Gates]:
        sent = self.memory_dropout(memory)
        return mmp.step(hidden, sent, *conv_args, wants_memory=wants_memory)

    def _has_penalty(self) -> bool:
        return self.training and self.penalised


class Normalised(nn.Module):
    """A convolution followed by layer normalisation.

    Args:
        conv: the convolution.
        channels: its output width.
    """

    def __init__(self, conv: nn.Module, channels: int) -> None:
        super().__init__()
        self.conv, self.norm = conv, nn.LayerNorm(channels)

    def forward(self, hidden: Tensor, *conv_args: Any) -> Tensor:
        """The normalised result of the convolution."""
        return self.norm(self.conv(hidden, *conv_args))
