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
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from scipy import sparse
from torch import Tensor

from memohop.errors import UsageError
from memohop.explain.gates import local_homophily, neighbours_of
from memohop.inference import Blocks
from memohop.networks.memory import MemoryNetwork, Normalised
from memohop.networks.passing import Watch, mean_gates
from memohop.nn import MMP, GraphConv
from memohop.nn.graph import adjacency
from memohop.nn.mmp import Gates, keep_and_absorb
from memohop.pyg import Data

if TYPE_CHECKING:
    from memohop.own.estimator import MMPClassifier


@dataclass(frozen=True)
class Neighbour:
    """A node that sent its memory."""

    id: Any
    label: Any  # None if it has none
    shares: tuple[float, ...]  # of the margin, one for each round
    share: float  # their sum


@dataclass(frozen=True)
class NodeExplanation:
    """Why a node was given its class rather than the next best one.

    Attributes:
        id: Its name.
        label: Its label; None if it has none.
        predicted: The class that all networks together predict.
        probability: Of that class.
        runner_up: The next best class.
        runner_up_probability: Of that class.
        margin: Logit of the predicted class minus that of the next best one, mean over networks.
        own: The share of its own features in the margin.
        constant: The share of the biases.
        neighbours: The nodes that sent their memory, by the size of their share, either sign.
        gates: Kept, absorbed and passed on in each round, means over networks.
        degree: How many neighbours sent their memory.
        homophily: The share of labelled neighbours with its own label; NaN if unknown.

    Example:
        >>> import memohop
        >>> from memohop.explain import explain_node
        >>> data = memohop.load("csbm", nodes=60, homophily=0.1)
        >>> model = memohop.MMPClassifier(trials=1, splits=2, epochs=3).fit(data, split=0)
        >>> node = explain_node(model, 17)
        >>> node.predicted in model.classes_
        True
    """

    id: Any
    label: Any
    predicted: Any
    probability: float
    runner_up: Any
    runner_up_probability: float
    margin: float
    own: float
    constant: float
    neighbours: tuple[Neighbour, ...]
    gates: tuple[tuple[float, ...], ...]
    degree: int
    homophily: float


class NodeShares(NamedTuple):
    """The shares of every class, so that any two classes can be compared."""

    probabilities: Tensor  # [classes]
    logits: Tensor  # [classes], or the number
    own: Tensor  # [classes]
    neighbours: Tensor  # [rounds, neighbours, classes]
    constant: Tensor  # [classes]
    gates: Tensor  # [rounds, 3]


def explain_node(classifier: MMPClassifier, node: Any) -> NodeExplanation:
    """Decompose the prediction for a node of the graph of ``fit``.

    Args:
        classifier: A fitted classifier.
        node: The id of the node.

    Example:
        >>> import memohop
        >>> from memohop.explain import explain_node
        >>> data = memohop.load("csbm", nodes=60, homophily=0.1)
        >>> model = memohop.MMPClassifier(trials=1, splits=2, epochs=3).fit(data, split=0)
        >>> len(explain_node(model, 17).neighbours) > 0
        True
    """
    graph, ids = classifier.own_graph(), classifier.ids_.tolist()
    index = index_of(node, ids)
    senders, mean = node_shares(classifier.model_.networks(), graph, index)
    first, second = mean.probabilities.topk(2).indices.tolist()

    def margin(of_classes: Tensor) -> Tensor:
        return of_classes[..., first] - of_classes[..., second]

    label, names = graph.y.numpy(), [*classifier.classes_.tolist(), None]  # -1 is the last
    neighbours = [
        Neighbour(ids[sender], names[label[sender]], tuple(shares), sum(shares))
        for sender, shares in zip(senders.tolist(), margin(mean.neighbours).T.tolist(), strict=True)
    ]
    return NodeExplanation(
        id=ids[index],
        label=names[label[index]],
        predicted=names[first],
        probability=float(mean.probabilities[first]),
        runner_up=names[second],
        runner_up_probability=float(mean.probabilities[second]),
        margin=float(margin(mean.logits)),
        own=float(margin(mean.own)),
        constant=float(margin(mean.constant)),
        neighbours=tuple(sorted(neighbours, key=lambda one: abs(one.share), reverse=True)),
        gates=tuple(map(tuple, mean.gates.tolist())),
        degree=len(senders),
        homophily=float(local_homophily(neighbours_of(graph.edge_index, len(label)), label)[index]),
    )


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
    matrix = adjacency(graph.edge_index, nodes, **networks[0].policies_in_force)
    counts = networks[0].counts(graph.edge_index, nodes)
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
