r"""How the paper's released code initialises a network, where it differs from this library.

Input layer, gate and classifier have Glorot weights with a gain of :math:`\sqrt 2` and zero
biases. The map of the graph convolution starts as any linear map of PyTorch: weights *and biases*
are uniform within :math:`1/\sqrt{C}`, so a node without neighbours has a memory from the first
step. The map and the scores of the attention layer are normal, with Glorot's variance and the same
gain.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

from torch import nn

from memohop.errors import UsageError
from memohop.nn import FeatureLinear, GraphAttention, GraphConv, MemoryGate

_GAIN = math.sqrt(2)
_GATES = 4  # one more than in the paper: the released gate computes it and does not use it


def start_as_released(
    ends: Iterable[FeatureLinear | nn.Linear],
    gates: Iterable[MemoryGate],
    convs: Iterable[nn.Module],
) -> None:
    """Initialise a network's input layer and classifier, gates and convolutions."""
    for linear in ends:
        nn.init.xavier_uniform_(linear.weight, gain=_GAIN)
    for gate in gates:
        bound = _GAIN * math.sqrt(6 / (2 * gate.channels + _GATES))
        nn.init.uniform_(gate.out.weight, -bound, bound)
    for conv in convs:
        if not isinstance(conv, (GraphConv, GraphAttention)):
            raise UsageError("init='released' is known for gcn+mmp and gat+mmp alone; leave it out")
        _start_convolution(conv)


def _start_convolution(conv: GraphConv | GraphAttention) -> None:
    width = conv.linear.weight.shape[1]
    bound = 1 / math.sqrt(width)
    if conv.bias is not None:
        nn.init.uniform_(conv.bias, -bound, bound)
    if isinstance(conv, GraphConv):
        nn.init.uniform_(conv.linear.weight, -bound, bound)
        return
    nn.init.xavier_normal_(conv.linear.weight, gain=_GAIN)
    std = _GAIN * math.sqrt(2 / (1 + 2 * conv.width))  # both halves are one row there
    for half in (conv.receive, conv.send):
        nn.init.normal_(half, std=std)
