"""The paper's network, on any backbone: ``gcn+mmp``, ``gat+mmp``, ``sage+mmp``, ..."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from itertools import cycle
from typing import Any, ClassVar, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from memohop.errors import UsageError, check_choice
from memohop.networks._released import start_as_released
from memohop.networks.base import Backbone, Features, LayeredModel
from memohop.networks.linkx import AdjacencyLinear
from memohop.nn import (
    FORMS,
    MMP,
    Dropout,
    FeatureLinear,
    Gates,
    Graph,
    MemoryGate,
    network_decoupling_loss,
    recomputed,
)


class MemoryOutput(NamedTuple):
    """The result of a :class:`MemoryNetwork`; there is no penalty in evaluation mode."""

    logits: Tensor
    penalty: Tensor | None


class Round(NamedTuple):
    """What nodes have after a round, and its gates; before the first round there are none."""

    hidden: Tensor
    memory: Tensor
    gates: Gates | None


class MemoryNetwork(LayeredModel):
    r"""Memory-based message passing between a linear input layer and a linear classifier.

    .. math::
        \mathbf{H}^0 &= \mathrm{ReLU}(\mathrm{drop}(\mathbf{X})\mathbf{W}_{in} + \mathbf{b}_{in}),
            \quad \mathbf{C}^0 = \mathbf{H}^0 \\
        \mathbf{H}^l, \mathbf{C}^l &= \mathrm{MMP}^l(\mathbf{H}^{l-1}, \mathbf{C}^{l-1}) \\
        \mathbf{Z} &= \mathbf{H}^L\mathbf{W}_{out} + \mathbf{b}_{out}

    The decoupling loss over the pairs :math:`(\mathbf{H}^l, \mathbf{C}^l)` is its penalty, which
    the trainer weighs with :math:`\lambda`.

    Two extensions are ours and not the paper's, off by default:

    .. math::
        \mathbf{C}^0 = \mathbf{H}^0 + \mathbf{Y}\mathbf{E}
            \quad (\mathtt{labels=memory}), \qquad
        \mathbf{H}^0 = \mathrm{ReLU}(\mathrm{drop}(\mathbf{X})\mathbf{W}_{in} + \mathbf{b}_{in}
            + \mathbf{A}\mathbf{R}) \quad (\mathtt{address=rows}).

    :math:`\mathbf{Y}` has a 1 at the class of each node with a known label (see :meth:`know`) and
    :math:`\mathbf{E}` is learned: a label goes to the neighbours, while the node decides by its
    hidden state, which has not seen it. In each training step the trainer gives the network a
    random part of the member's training labels, drawn as dropout is, and takes the loss on the
    others; in evaluation it gives all of them. Labels of validation and test nodes are never
    given. Scores of training nodes flatter: their own labels come back to them, over two arcs, or
    at once where the convolution sends a node its own memory (``sage``, ``gin``, self-loops).

    :math:`\mathbf{R}` is learned and has a row for each node, so that :math:`\mathbf{A}\mathbf{R}`
    depends on *which* neighbours a node has, as in ``linkx``; :math:`\mathbf{A}` is the graph
    under this model's policies, but not normalised. Nodes of another graph have no rows: see
    :meth:`on_nodes`.

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
            see :mod:`memohop.networks._released`.
        labels: ``"none"``, or known labels go into the first ``"memory"``.
        label_rate: share of the training labels that are put in during training, between 0 and 1.
        address: ``"none"``, or ``"rows"`` for learned rows of the adjacency matrix.
        num_nodes: number of nodes of the graph, which ``address="rows"`` needs.
        **common: see :class:`NodeModel`. Self-loops are removed by default: a node keeps its
            own state through the gates.

    Example:
        >>> import torch, memohop
        >>> network = memohop.build("gat+mmp", 8, 3, num_layers=2, hidden_channels=16).eval()
        >>> graph = network.prepare(torch.tensor([[0, 1], [1, 2]]), num_nodes=3)
        >>> network(torch.randn(3, 8), graph).logits.shape
        torch.Size([3, 3])
        >>> network.gates(torch.randn(3, 8), graph).shape  # rounds, nodes, gates
        torch.Size([2, 3, 3])
    """

    policies = LayeredModel.policies | {"self_loops": "remove", "norm": "row"}
    recomputes = False
    added_options: ClassVar[Mapping[str, Any]] = {
        **LayeredModel.added_options,
        "labels": "none",
        "label_rate": 0.5,
        "address": "none",
    }
    known: Tensor

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        *,
        backbone: Backbone,
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
        labels: str = "none",
        label_rate: float = 0.5,
        address: str = "none",
        num_nodes: int | None = None,
        **common: Any,
    ) -> None:
        super().__init__(**common)
        check_choice("gate_sharing", gate_sharing, ("shared", "layer"))
        check_choice("message_norm", message_norm, ("none", "layer"))
        check_choice("readout", readout, ("last", "jumping"))
        check_choice("decoupling", decoupling, FORMS)
        check_choice("init", init, ("glorot", "released"))
        check_choice("labels", labels, ("none", "memory"))
        check_choice("address", address, ("none", "rows"))
        if not 0 < label_rate < 1:
            raise UsageError(
                f"label_rate must be above 0 and below 1, not {label_rate}: a network learns from "
                "the training labels that are not put in"
            )
        self.backbone, self.readout, self.decoupling = backbone, readout, decoupling
        self.penalty_is_summed = decoupling == "paper"
        self.input = FeatureLinear(in_channels, self.width, dropout=self.input_rate)
        gates = [
            MemoryGate(self.width, kind=gate, per=per, dropout=self.rate)
            for _ in range(1 if gate_sharing == "shared" else self.depth)
        ]
        self.rounds = nn.ModuleList()
        convs = backbone.between(self.width, self.depth)
        for conv, own_gate in zip(convs, cycle(gates), strict=False):
            if message_norm == "layer":
                conv = Normalised(conv, self.width)
            self.rounds.append(MMP(conv, self.width, gate=own_gate, memory_from=memory_from))
        self.memory_dropout = Dropout(self.rate) if memory_dropout else nn.Identity()
        self.dropout = Dropout(self.rate) if classifier_dropout else nn.Identity()
        parts = self.depth + 1 if readout == "jumping" else 1
        self.classifier = nn.Linear(parts * self.width, out_channels)
        nn.init.xavier_uniform_(self.classifier.weight)
        nn.init.zeros_(self.classifier.bias)
        if init == "released":
            start_as_released((self.input, self.classifier), gates, convs)
        self.label_map: nn.Linear | None = None  # E, transposed
        self.address: AdjacencyLinear | None = None  # R
        if labels == "memory":
            self.label_rate = label_rate
            self.label_map = nn.Linear(out_channels, self.width, bias=False)
            nn.init.xavier_uniform_(self.label_map.weight)
            self.register_buffer("known", torch.empty(0, out_channels), persistent=False)
        if address == "rows":
            if num_nodes is None:
                raise UsageError("address='rows' needs weights for each node: pass num_nodes")
            self.address = AdjacencyLinear(num_nodes, self.width, bias=False)
            self.per_node = ("address.weight",)

    def know(self, labels: Tensor) -> None:
        """Put labels into the memory from now on; they are no part of the state that is saved.

        To train without :func:`memohop.train`, give another part of the training labels before
        every step and take the loss on the others.

        Args:
            labels: ``[N]``, class numbers, -1 for a node of unknown label, or, for a network with
                one output, numbers, NaN where unknown; an empty one makes the network forget.
        """
        if self.label_map is None:
            raise UsageError("this network takes no labels: build it with labels='memory'")
        if labels.is_floating_point():
            self.known = labels.nan_to_num(0.0)[:, None].to(self.label_map.weight)
            return
        classes = torch.arange(self.label_map.in_features, device=labels.device)
        if len(labels) and not -1 <= int(labels.min()) <= int(labels.max()) < len(classes):
            raise UsageError(
                f"labels go from {int(labels.min())} to {int(labels.max())}, and the network has "
                f"{len(classes)} classes: give numbers from 0 to {len(classes) - 1}, or -1"
            )
        self.known = (labels[:, None] == classes).to(self.label_map.weight)

    def on_nodes(self, old: Tensor) -> MemoryNetwork:
        """The network for other nodes than those it was built for.

        What it has for each node, rows of the address and known labels, goes along with nodes that
        it knows; a new node has neither. Where all are new, neither plays any part.

        Args:
            old: ``[N]``, for each node its number in the graph that the network was built for, -1
                for a new one.
        """
        others: dict[int, Tensor] = {}  # what a copy has instead of a tensor with this identity
        new = (old < 0)[:, None]
        if self.address is not None:
            rows = self.address.weight.detach()[old].masked_fill(new, 0)
            others[id(self.address.weight)] = nn.Parameter(rows)
        if self._knows_labels():
            others[id(self.known)] = self.known[old].masked_fill(new, 0)
        return copy.deepcopy(self, others)

    def prepare(self, edge_index: Tensor, num_nodes: int, weights: Tensor | None = None) -> Graph:
        """The graph, if it has as many nodes as the address has rows."""
        self._check_nodes(num_nodes)
        return super().prepare(edge_index, num_nodes, weights)

    def forward(self, x: Features, graph: Graph) -> MemoryOutput:
        """Logits ``[N, out_channels]`` and the decoupling loss."""
        pairs = [(hidden, memory) for hidden, memory, _ in self.pass_messages(x, graph)]
        logits = self.classify([hidden for hidden, _ in pairs])
        if not self._has_penalty():
            return MemoryOutput(logits, None)
        return MemoryOutput(logits, network_decoupling_loss(pairs, form=self.decoupling))

    def gates(self, x: Features, graph: Graph) -> Tensor:
        """The gates ``[rounds, N, 3]``: kept, absorbed, passed on (means over channels)."""
        means = [
            torch.stack([gate.mean(-1) for gate in gates], dim=-1)
            for _, _, gates in self.pass_messages(x, graph)
            if gates is not None
        ]
        return torch.stack(means)

    def pass_messages(self, x: Features, graph: Graph) -> Iterator[Round]:
        """The rounds of a forward pass, Eqs. (6)-(10), after what the input layer makes of ``x``.

        Each is computed when it is asked for.
        """
        self._check_nodes(x.shape[0])
        collected = None if self.address is None else self.address(graph.counts)
        hidden, memory = self._compute(self._begin, x, collected)
        yield Round(hidden, memory, None)
        beside = self.backbone.beside(hidden)
        for number, mmp in enumerate(self.rounds, start=1):
            assert isinstance(mmp, MMP)
            wanted = number < len(self.rounds) or self._has_penalty()
            update = partial(self._round, mmp, wanted)
            hidden, memory, gates = self._compute(update, hidden, memory, graph, *beside)
            yield Round(hidden, memory, gates)

    def classify(self, hidden: Sequence[Tensor]) -> Tensor:
        """From the hidden states of all rounds to logits; ``"last"`` needs only the last one."""
        read = torch.cat([*hidden], dim=-1) if self.readout == "jumping" else hidden[-1]
        return self.classifier(self.dropout(read))

    def _compute(self, method: Callable[..., Any], *inputs: Any) -> Any:
        """``method(*inputs)``, computed again in the backward pass if that is asked for."""
        if self.recomputes and torch.is_grad_enabled():
            return recomputed(self, method, *inputs)
        return method(*inputs)

    def _round(
        self, mmp: MMP, wants_memory: bool, hidden: Tensor, memory: Tensor, *conv_args: Any
    ) -> tuple[Tensor, Tensor, Gates]:
        sent = self.memory_dropout(memory)
        return mmp.step(hidden, sent, *conv_args, wants_memory=wants_memory)

    def _begin(self, x: Features, collected: Tensor | None) -> tuple[Tensor, Tensor]:
        """The first hidden state and memory, from features and what the address collects."""
        embedded = self.input(x)
        hidden = F.relu(embedded if collected is None else embedded + collected)
        if self.label_map is None or not self._knows_labels():
            return hidden, hidden
        return hidden, hidden + self.label_map(self.known.to(hidden.dtype))

    def _knows_labels(self) -> bool:
        return self.label_map is not None and len(self.known) > 0

    def _check_nodes(self, count: int) -> None:
        """Refuse a graph whose nodes are not those that the network has something for."""
        parts = {}
        if self.address is not None:
            parts["rows of the address"] = len(self.address.weight)
        if self._knows_labels():
            parts["known labels"] = len(self.known)
        for part, rows in parts.items():
            if rows != count:
                raise UsageError(
                    f"this network has {part} for {rows} nodes, and the graph has {count}: say "
                    "with on_nodes() which of them it knows"
                )

    def _has_penalty(self) -> bool:
        return self.training and self.penalised


class Normalised(nn.Module):
    """A convolution followed by layer normalisation."""

    def __init__(self, conv: nn.Module, channels: int) -> None:
        super().__init__()
        self.conv, self.norm = conv, nn.LayerNorm(channels)

    def forward(self, hidden: Tensor, *conv_args: Any) -> Tensor:
        """The normalised result of the convolution."""
        return self.norm(self.conv(hidden, *conv_args))
