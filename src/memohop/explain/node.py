r"""The shares of a node's own features and of each neighbour's memory in the decision on its class.

With the gates held at their values, the logits of node :math:`i` are a sum that can be taken apart
exactly:

.. math::
    \mathbf{h}_i^L = \Big(\prod_l \alpha_h^l\Big)\,\mathbf{h}_i^0 + \sum_l
        \Big(\prod_{k>l} \alpha_h^k\Big)\,\alpha_m^l
        \Big(\sum_j a_{ij}\,\mathbf{c}_j^{l-1}\mathbf{W}^l + \mathbf{b}^l\Big)

times the difference of the classifier's weights for two classes. Each neighbour :math:`j` thus has
a share of the margin in each round, and so have the node's own features and the constants (the
biases). The shares add up to the margin. Layer normalisation of a message divides by a standard
deviation, which is held at its value like the gates. Nothing is approximated, but without a
neighbour the gates and standard deviations would change as well, which the shares leave out.
"""

from __future__ import annotations

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


class _Shares(NamedTuple):
    """The shares of every class, so that any two classes can be compared."""

    probabilities: Tensor  # [classes]
    logits: Tensor  # [classes]
    own: Tensor  # [classes]
    neighbours: Tensor  # [rounds, neighbours, classes]
    constant: Tensor  # [classes]
    gates: Tensor  # [rounds, 3]


def explain_node(classifier: MMPClassifier, node: Any) -> NodeExplanation:
    """Take the prediction for a node of the graph of ``fit`` apart.

    Args:
        classifier: A fitted classifier.
        node: The id of the node.
    """
    graph, ids = classifier.own_graph(), classifier.ids_.tolist()
    index = _index_of(node, ids)
    networks = classifier.model_.networks()
    matrix = adjacency(graph.edge_index, len(graph.x), **networks[0].policies_in_force)
    ball = _ball(matrix, index, rounds=len(networks[0].rounds))
    inside = matrix[ball][:, ball]
    of_networks = [_take_apart(network, graph.x[ball], inside) for network in networks]
    mean = _Shares(*(torch.stack(part).double().mean(0) for part in zip(*of_networks, strict=True)))
    first, second = mean.probabilities.topk(2).indices.tolist()

    def margin(of_classes: Tensor) -> Tensor:
        return of_classes[..., first] - of_classes[..., second]

    senders = ball[inside[[0]].indices]
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
        homophily=float(local_homophily(neighbours_of(graph), label)[index]),
    )


@torch.no_grad()
def _take_apart(network: MemoryNetwork, x: Tensor, matrix: sparse.csr_array) -> _Shares:
    """The shares of one network; the node is the first row of the features and of the matrix."""
    nodes = Blocks(x, matrix, network.input.out_channels)
    parts = _Parts(network.embed(x[:1])[0], nodes, matrix[[0]])
    network.pass_messages(nodes, parts)
    decide, logits = network.classifier.weight.T, network.classify([nodes.hidden[0]])
    return _Shares(
        probabilities=logits.softmax(0),
        logits=logits,
        own=parts.own @ decide,
        neighbours=torch.stack(parts.received) @ decide,
        constant=parts.constant @ decide + network.classifier.bias,
        gates=torch.stack(parts.gates),
    )


class _Parts(Watch):
    """The summands of the first node's hidden state, from round to round.

    Args:
        own: The hidden state before the first round, ``[channels]``.
        nodes: All nodes, for their memories.
        row: The node's row of the graph's matrix: its neighbours and their weights.
    """

    def __init__(self, own: Tensor, nodes: Blocks, row: sparse.csr_array) -> None:
        self.own, self.constant = own, torch.zeros_like(own)  # what is left of both
        self.received: list[Tensor] = []  # and of each round, [neighbours, channels]
        self.gates: list[Tensor] = []  # of each round, means over channels, [3]
        self._nodes, self._nothing = nodes, torch.zeros_like(own)
        self._neighbours = torch.from_numpy(row.indices.astype(np.int64))
        self._weights = torch.from_numpy(row.data)[:, None]

    def before_round(self, mmp: MMP) -> None:
        """Take the message apart before the memories change."""
        sent = self._weights * self._nodes.memory(self._neighbours)
        self._message, self._biases = _message_parts(mmp.conv, sent)

    def see_gates(self, rows: slice, gates: Gates) -> None:
        """Apply Eq. (9) to each part by itself, with the gates of the first node."""
        if rows.start > 0:
            return
        kept, absorbed, passed_on = (gate[0] for gate in gates)
        first = (kept, absorbed, passed_on)
        self.own = keep_and_absorb(first, self.own, self._nothing)
        self.received = [keep_and_absorb(first, part, self._nothing) for part in self.received]
        self.received.append(keep_and_absorb(first, self._nothing, self._message))
        self.constant = keep_and_absorb(first, self.constant, self._biases)
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
    """The node, and all nodes from which features reach it in so many rounds."""
    found = np.array([index])
    for _ in range(rounds):
        reached = np.unique(matrix[found].indices)
        found = np.concatenate([found, np.setdiff1d(reached, found)])
    return found


def _index_of(node: Any, ids: list[Any]) -> int:
    names = [str(one) for one in ids]
    if str(node) not in names:
        some = ", ".join(names[:3])
        raise UsageError(f"there is no node named {str(node)!r}; ids of this graph are {some}, ...")
    return names.index(str(node))
