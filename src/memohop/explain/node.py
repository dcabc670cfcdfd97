r"""The shares of a node's own features and of each neighbour's memory in the decision on its class.

With the gates held at their values, the logits of node :math:`i` are a sum that can be taken apart
exactly:

.. math::
    \mathbf{h}_i^L = \Big(\prod_l \alpha_h^l\Big)\,\mathbf{h}_i^0 + \sum_l
        \Big(\prod_{k>l} \alpha_h^k\Big)\,\alpha_m^l
        \Big(\sum_j a_{ij}\,\mathbf{c}_j^{l-1}\mathbf{W}^l + \mathbf{b}^l\Big)

times the difference of the classifier's weights for two classes. Each neighbour :math:`j` thus has
a share of the margin in each round, and so do the node's own features and the constants (the
biases). The shares add up to the margin. Layer normalisation of a message divides by a standard
deviation, which is held at its value like the gates. A network that reads all rounds side by side
(``readout="jumping"``) adds up the shares in the state after each of them. A known label is in the
share of the neighbour that has it, and an address is in the node's own share. Nothing is
approximated, but without a neighbour the gates and standard deviations would change as well, which
the shares ignore.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from scipy import sparse
from torch import Tensor

from memohop.data.adjacency import adjacency
from memohop.errors import UsageError
from memohop.inference import Blocks
from memohop.networks.memory import MemoryNetwork, Normalised
from memohop.networks.passing import Watch, mean_gates
from memohop.nn import MMP, GraphConv
from memohop.nn.mmp import Gates, keep_and_absorb
from memohop.pyg import Data


class NodeShares(NamedTuple):
    """The shares of every class, so that any two classes can be compared."""

    probabilities: Tensor  # [classes]
    logits: Tensor  # [classes], or the number
    own: Tensor  # [classes]
    neighbours: Tensor  # [rounds, neighbours, classes]
    constant: Tensor  # [classes]
    gates: Tensor  # [rounds, 3]


def node_shares(
    networks: Sequence[MemoryNetwork], graph: Data, index: int
) -> tuple[NDArray[np.int64], NodeShares]:
    """The nodes that send their memory to a node, and the shares of all, as means over networks.

    Args:
        networks: Networks of graph convolutions with the same options, in evaluation mode.
        graph: The graph, with features as the networks take them.
        index: The node.
    """
    nodes = graph.x.shape[0]
    weights = graph.edge_weight if "edge_weight" in graph else None
    policies = networks[0].policies_in_force
    matrix = adjacency(graph.edge_index, nodes, weights=weights, **policies)
    counts = networks[0].counts(graph.edge_index, nodes, weights)
    # An address is collected once more before the first round.
    reach = len(networks[0].rounds) + (counts is not None)
    ball = _ball(matrix, index, rounds=reach)
    inside, kept = matrix[ball][:, ball], torch.from_numpy(ball)
    counts = None if counts is None else counts[ball][:, ball]
    found = [
        _take_apart(network.on_nodes(kept), graph.x[ball], inside, counts) for network in networks
    ]
    means = (torch.stack(part).double().mean(0) for part in zip(*found, strict=True))
    return ball[inside[[0]].indices], NodeShares(*means)


@torch.no_grad()
def _take_apart(
    network: MemoryNetwork, x: Tensor, matrix: sparse.csr_array, counts: sparse.csr_array | None
) -> NodeShares:
    """The shares of one network; the node is the first row of the features and of the matrix."""
    nodes = Blocks(x, matrix, network.input.out_channels, counts)
    parts = _Parts(nodes, matrix[[0]])
    network.pass_messages(nodes, parts)
    states = parts.states if network.readout == "jumping" else parts.states[-1:]
    weights = network.classifier.weight.T.chunk(len(states))  # for the state after each round
    read = list(zip(states, weights, strict=True))
    received = [
        torch.stack([state.received[number] @ weight for state, weight in read[-later:]]).sum(0)
        for number, later in enumerate(range(len(network.rounds), 0, -1))
    ]
    constant = torch.stack([state.constant @ weight for state, weight in read]).sum(0)
    logits = network.classify([state.hidden for state in states])
    return NodeShares(
        probabilities=logits.softmax(0),
        logits=logits,
        own=torch.stack([state.own @ weight for state, weight in read]).sum(0),
        neighbours=torch.stack(received),
        constant=constant + network.classifier.bias,
        gates=torch.stack(parts.gates),
    )


class _State(NamedTuple):
    """The hidden state after some rounds, and its summands."""

    hidden: Tensor  # [channels]
    own: Tensor  # [channels]
    received: list[Tensor]  # of each round, [neighbours, channels]
    constant: Tensor  # [channels]


class _Parts(Watch):
    """The summands of the first node's hidden state, from round to round.

    Args:
        nodes: All nodes, for their first hidden state and their memories.
        row: The node's row of the graph's matrix: its neighbours and their weights.
    """

    def __init__(self, nodes: Blocks, row: sparse.csr_array) -> None:
        self._nothing = torch.zeros(nodes.hidden.shape[1])
        self.states: list[_State] = []  # before the first round, and after each
        self.gates: list[Tensor] = []  # of each round, means over channels, [3]
        self._nodes = nodes
        self._neighbours = torch.from_numpy(row.indices.astype(np.int64))
        self._weights = torch.from_numpy(row.data)[:, None]

    def before_round(self, mmp: MMP) -> None:
        """Decompose the message before the memories change."""
        if not self.states:
            first = self._nodes.hidden[0].clone()
            self.states.append(_State(first, first, [], self._nothing))
        sent = self._weights * self._nodes.memory(self._neighbours)
        self._message, self._biases = _message_parts(mmp.conv, sent)

    def see_gates(self, rows: slice, gates: Gates) -> None:
        """Apply Eq. (9) to each part by itself, with the gates of the first node."""
        if rows.start > 0:
            return
        kept, absorbed, passed_on = (gate[0] for gate in gates)
        first, before = (kept, absorbed, passed_on), self.states[-1]
        received = [keep_and_absorb(first, part, self._nothing) for part in before.received]
        received.append(keep_and_absorb(first, self._nothing, self._message))
        own = keep_and_absorb(first, before.own, self._nothing)
        constant = keep_and_absorb(first, before.constant, self._biases)
        self.states.append(_State(self._nodes.hidden[0].clone(), own, received, constant))
        self.gates.append(mean_gates(first))


def _message_parts(conv: Any, sent: Tensor) -> tuple[Tensor, Tensor]:
    """The parts of the message from each neighbour, ``[neighbours, channels]``, and the biases."""
    inner = conv.conv if isinstance(conv, Normalised) else conv
    assert isinstance(inner, GraphConv)
    parts = inner.linear(sent)
    bias = torch.zeros(parts.shape[-1]) if inner.bias is None else inner.bias
    if not isinstance(conv, Normalised):
        return parts, bias
    deviation = ((parts.sum(0) + bias).var(correction=0) + conv.norm.eps).sqrt()
    scale = conv.norm.weight / deviation
    centred = (parts - parts.mean(-1, keepdim=True)) * scale
    return centred, (bias - bias.mean()) * scale + conv.norm.bias


def _ball(matrix: sparse.csr_array, index: int, *, rounds: int) -> NDArray[np.int64]:
    """The node, and all nodes with features that reach it in this many rounds."""
    found = np.array([index])
    for _ in range(rounds):
        reached = np.unique(matrix[found].indices)
        found = np.concatenate([found, np.setdiff1d(reached, found)])
    return found


def index_of(node: Any, ids: list[Any]) -> int:
    """The row of the node with this id."""
    names = [str(one) for one in ids]
    if str(node) not in names:
        some = ", ".join(names[:3])
        raise UsageError(f"there is no node named {str(node)!r}; ids of this graph are {some}, ...")
    return names.index(str(node))
