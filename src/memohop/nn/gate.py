"""The control mechanism of memory-based message passing."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from memohop.errors import UsageError
from memohop.nn._ops.update import gated_update
from memohop.nn.dropout import Dropout
from memohop.nn.randomness import in_stream


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
        return plain and (in_stream() or not (self.training and self.dropout.active))

    def update(
        self, hidden: Tensor, message: Tensor, wants_memory: bool = True
    ) -> tuple[Tensor, Tensor, tuple[Tensor, Tensor, Tensor]]:
        """The new hidden state and memory, and the gates.

        The memory is left empty if it is not wanted.
        """
        draws = self.dropout.draw(), self.dropout.draw()
        hidden, memory, gates = gated_update(
            hidden,
            message,
            self.out.weight,
            self.out.bias,
            None if draws[0] is None or draws[1] is None else (draws[0], draws[1]),
            self.dropout.rate,
            wants_memory,
        )
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
