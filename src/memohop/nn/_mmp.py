"""Memory-based message passing around any graph convolution, and its gate."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from memohop.errors import UsageError
from memohop.nn._dropout import Dropout
from memohop.nn._ops.update import gated_update
from memohop.nn._randomness import in_stream

Gates = tuple[Tensor, Tensor, Tensor]
"""The gates of the hidden state, of the message into it, and of the message into the memory."""


class MMP(nn.Module):
    r"""Messages are sent from a memory cell; the node's own embedding is kept for the decision.

    From `"Memory-based Message Passing: Decoupling the Message for Propagation from
    Discrimination" <https://arxiv.org/abs/2202.00423>`_ (ICASSP 2022), Eqs. (6)-(10):

    .. math::
        \mathbf{M}^l &= \mathrm{conv}(\mathbf{C}^{l-1}) \\
        \alpha_h, \alpha_m, \alpha_c &= f_\theta(\mathbf{H}^{l-1}, \mathbf{M}^l) \\
        \mathbf{H}^l &= \alpha_h \mathbf{H}^{l-1} + \alpha_m \mathbf{M}^l \\
        \mathbf{C}^l &= \alpha_c \mathbf{M}^l

    where :math:`\mathbf{H}` is the hidden state, :math:`\mathbf{C}` the memory,
    :math:`\mathbf{M}` the message and :math:`f_\theta` a :class:`MemoryGate`. Ordinary message
    passing is :math:`\alpha_h = 0`, :math:`\alpha_m = \alpha_c = 1`. Under ``torch.compile``,
    ``torch.export`` and autocast, it is computed by PyTorch's own operations.

    Args:
        conv: any module or function from ``(memory, *conv_args, **conv_options)`` to a message
            of the same shape. It is used unchanged.
        channels: width of hidden state, memory and message.
        gate: ``"linear"``, ``"gru"``, or a :class:`MemoryGate` to share with other layers.
        per: ``"node"`` or ``"channel"``, see :class:`MemoryGate`.
        memory_from: ``"message"`` as in Eq. (10), or ``"hidden"`` for
            :math:`\mathbf{C}^l = \alpha_c \mathbf{H}^l`, the paper's remark.
        dropout: rate of dropout on the gate's input.

    Shapes:
        - **hidden**, **memory**: :math:`(N, C)`, before and after

    Example:
        >>> import torch, memohop
        >>> from torch_geometric.nn import GCNConv
        >>> mmp = memohop.MMP(GCNConv(16, 16), 16)
        >>> hidden = memory = torch.randn(3, 16)
        >>> edge_index = torch.tensor([[0, 1, 2], [1, 2, 0]])
        >>> hidden, memory = mmp(hidden, memory, edge_index)
    """

    def __init__(
        self,
        conv: Callable[..., Tensor],
        channels: int,
        *,
        gate: str | MemoryGate = "linear",
        per: str = "node",
        memory_from: str = "message",
        dropout: float = 0.0,
    ) -> None:
        super().__init__()
        if memory_from not in ("message", "hidden"):
            raise UsageError(f"memory_from must be 'message' or 'hidden', not {memory_from!r}")
        if isinstance(gate, str):
            gate = MemoryGate(channels, kind=gate, per=per, dropout=dropout)
        elif gate.channels != channels:
            raise UsageError(f"the gate is {gate.channels} wide but channels={channels}")
        self.conv, self.gate = conv, gate
        self.channels, self.memory_from = channels, memory_from

    def forward(
        self, hidden: Tensor, memory: Tensor, *conv_args: Any, **conv_options: Any
    ) -> tuple[Tensor, Tensor]:
        """One round: ``(hidden, memory)`` from the previous pair and the arguments of the conv."""
        hidden, memory, _ = self.step(hidden, memory, *conv_args, **conv_options)
        return hidden, memory

    def step(
        self,
        hidden: Tensor,
        memory: Tensor,
        *conv_args: Any,
        wants_memory: bool = True,
        **conv_options: Any,
    ) -> tuple[Tensor, Tensor, Gates]:
        """The same round, with the three gates besides the new pair: all carry gradients.

        The memory may be left empty if it is not wanted: after the last round, unless the
        regulariser reads it.
        """
        if hidden.shape[-1] != self.channels:
            raise UsageError(
                f"hidden has shape {tuple(hidden.shape)}, but channels={self.channels}: give a "
                f"hidden state that is {self.channels} wide"
            )
        message = self.conv(memory, *conv_args, **conv_options)  # Eq. (6)
        if message.shape != hidden.shape:
            raise UsageError(
                f"the convolution turned a memory of shape {tuple(memory.shape)} into a message "
                f"of shape {tuple(message.shape)}, but channels={self.channels}: give it "
                f"{self.channels} output channels (several heads count together)"
            )
        if self.memory_from == "message" and self.gate.can_update():
            return self.gate.update(hidden, message, wants_memory)  # Eqs. (8)-(10) in one pass
        gates = self.gate(hidden, message)  # Eq. (8)
        hidden = keep_and_absorb(gates, hidden, message)  # Eq. (9)
        source = message if self.memory_from == "message" else hidden
        return hidden, gates[2] * source, gates  # Eq. (10)

    def extra_repr(self) -> str:
        """The settings that the children do not show."""
        return f"{self.channels}, memory_from={self.memory_from}"


def keep_and_absorb(gates: Gates, hidden: Tensor, message: Tensor) -> Tensor:
    r"""Eq. (9): :math:`\alpha_h \mathbf{H} + \alpha_m \mathbf{M}`.

    With the gates given it is linear: it can be applied to parts of hidden state and message.
    """
    gate_hidden, gate_message, _ = gates
    return torch.addcmul(gate_hidden * hidden, gate_message, message)


class MemoryGate(nn.Module):
    r"""How much each node keeps of itself, absorbs of its message, and passes on.

    From `"Memory-based Message Passing" <https://arxiv.org/abs/2202.00423>`_, Eq. (8):

    .. math::
        \alpha_h, \alpha_m, \alpha_c = f_\theta(\mathbf{H}, \mathbf{M})

    where :math:`\mathbf{H}` is the hidden state and :math:`\mathbf{M}` the message received.
    For ``kind="linear"``, the paper's,

    .. math::
        f_\theta(\mathbf{H}, \mathbf{M}) =
            \mathrm{sigmoid}(\mathbf{W}[\mathbf{H} \,\Vert\, \mathbf{M}] + \mathbf{b}),

    and for ``kind="gru"``, which the paper leaves for future work, the sigmoid of a linear map
    of one gated recurrent unit step with :math:`\mathbf{M}` as its input and :math:`\mathbf{H}`
    as its state.

    One gate may serve several layers: pass the same object to each :class:`MMP`.

    Args:
        channels: width of the hidden state and of the message.
        kind: ``"linear"`` or ``"gru"``.
        per: ``"node"`` for one scalar per node and gate, ``"channel"`` for one per channel.
        dropout: rate of dropout on the gate's input.

    Shapes:
        - **hidden**, **message**: :math:`(N, C)`
        - **output**: three tensors, each :math:`(N, 1)`, or :math:`(N, C)` per channel

    Example:
        >>> import torch, memohop
        >>> gate = memohop.MemoryGate(16)
        >>> kept, absorbed, passed_on = gate(torch.randn(3, 16), torch.randn(3, 16))
        >>> kept.shape
        torch.Size([3, 1])
    """

    def __init__(
        self, channels: int, *, kind: str = "linear", per: str = "node", dropout: float = 0.0
    ) -> None:
        super().__init__()
        if kind not in ("linear", "gru"):
            raise UsageError(f"gate must be 'linear' or 'gru', not {kind!r}")
        if per not in ("node", "channel"):
            raise UsageError(f"per must be 'node' or 'channel', not {per!r}")
        self.channels, self.kind, self.per = channels, kind, per
        width = 1 if per == "node" else channels
        self.dropout = Dropout(dropout)
        if kind == "gru":
            self.from_message = nn.Linear(channels, 3 * channels)
            self.from_hidden = nn.Linear(channels, 3 * channels)
        self.out = nn.Linear(2 * channels if kind == "linear" else channels, 3 * width)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Half-open gates: zero biases and Glorot weights."""
        for module in self.children():
            if isinstance(module, nn.Linear):
                nn.init.xavier_uniform_(module.weight)
                nn.init.zeros_(module.bias)

    def forward(self, hidden: Tensor, message: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """The gates ``(gate_hidden, gate_message, gate_memory)``, each in (0, 1)."""
        hidden, message = self.dropout(hidden), self.dropout(message)
        if self.kind == "gru":
            scores = self.out(self._recur(hidden, message))
        else:  # W [H || M] as two products, which saves laying H and M side by side
            for_hidden, for_message = self.out.weight.split(self.channels, dim=1)
            scores = F.linear(hidden, for_hidden, self.out.bias) + F.linear(message, for_message)
        gate_hidden, gate_message, gate_memory = scores.sigmoid().chunk(3, dim=-1)
        return gate_hidden, gate_message, gate_memory

    def can_update(self) -> bool:
        """Whether :meth:`update` applies: the paper's gate, with masks from a stream if any.

        Compilers, exporters and autocast know PyTorch's operations alone.
        """
        plain = self.kind == "linear" and self.per == "node"
        if torch.compiler.is_compiling() or torch.is_autocast_enabled(self.out.weight.device.type):
            return False
        return plain and (not (self.training and self.dropout.active) or in_stream())

    def update(
        self, hidden: Tensor, message: Tensor, wants_memory: bool = True
    ) -> tuple[Tensor, Tensor, tuple[Tensor, Tensor, Tensor]]:
        """The new hidden state and memory, and the gates.

        The memory is left empty if it is not wanted.
        """
        draws = self.dropout.draw(), self.dropout.draw()
        given = self.out.weight, self.out.bias, draws, self.dropout.rate
        hidden, memory, gates = gated_update(hidden, message, *given, wants_memory)
        gate_hidden, gate_message, gate_memory = gates.chunk(3, dim=-1)
        return hidden, memory, (gate_hidden, gate_message, gate_memory)

    def _recur(self, hidden: Tensor, message: Tensor) -> Tensor:
        """One step of a gated recurrent unit (Cho et al., 2014)."""
        reset_m, update_m, new_m = self.from_message(message).chunk(3, dim=-1)
        reset_h, update_h, new_h = self.from_hidden(hidden).chunk(3, dim=-1)
        reset, update = (reset_m + reset_h).sigmoid(), (update_m + update_h).sigmoid()
        new = (new_m + reset * new_h).tanh()
        return (1 - update) * new + update * hidden

    def extra_repr(self) -> str:
        """Width, kind and resolution."""
        return f"{self.channels}, kind={self.kind}, per={self.per}"
