r"""For one node, what spoke for its class: itself, and the memory of each neighbour.

With the gates at the values that they took, the logits of node :math:`i` are a sum that can be
taken apart exactly:

.. math::
    \mathbf{h}_i^L = \Big(\prod_l \alpha_h^l\Big)\,\mathbf{h}_i^0 + \sum_l
        \Big(\prod_{k>l} \alpha_h^k\Big)\,\alpha_m^l
        \Big(\sum_j a_{ij}\,\mathbf{c}_j^{l-1}\mathbf{W}^l + \mathbf{b}^l\Big)

times the difference of the classifier's weights for two classes. Each neighbour :math:`j` thus has
a share of the margin in each round, and so have the node's own features, and what is constant (the
biases). The shares add up to the margin. Layer normalisation of a message divides by a standard
deviation, which is held at its value like the gates. A known label is in the share of the neighbour
that has it, and an address in the node's own. Nothing is approximated; but a gate or a
standard deviation would itself change if a neighbour were taken away, which is not in the shares.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from scipy import sparse
from torch import Tensor

from memohop.errors import UsageError
from memohop.explain.gates import local_homophily
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
    """A node whose memory was read.

    Attributes:
        id: What it is called.
        label: Its label; None where it has none.
        shares: Of the margin, one for each round.
        share: Their sum.
    """

    id: Any
    label: Any
    shares: tuple[float, ...]
    share: float


@dataclass(frozen=True)
class NodeExplanation:
    """Why a node was given its class rather than the next best one.

    Attributes:
        id: What it is called.
        label: Its label; None where it has none.
        predicted: The class that is predicted, by all networks together.
        probability: Of that class.
        runner_up: The next best class.
        runner_up_probability: Of that class.
        margin: Logit of the predicted class minus that of the next best one, mean over networks.
        own: The share of its own features in the margin.
        constant: The share of the biases.
        neighbours: Those whose memory was read, the largest share, either way, first.
        gates: Kept, absorbed and passed on in each round, means over networks.
        degree: How many neighbours were listened to.
        homophily: The share of labelled neighbours with its own label; NaN where not known.
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
    gates: tuple[tuple[float, float, float], ...]
    degree: int
    homophily: float


class _Shares(NamedTuple):
    """What one network says; shares are for every class, so that any two can be compared."""

    logits: Tensor  # [classes]
    own: Tensor  # [classes]
    neighbours: Tensor  # [rounds, neighbours, classes]
    constant: Tensor  # [classes]
    gates: Tensor  # [rounds, 3]


def explain_node(classifier: MMPClassifier, node: Any) -> NodeExplanation:
    """Take apart what is predicted for a node of the graph of `fit`.

    Args:
        classifier: A fitted classifier.
        node: The id of the node.
    """
    graph, ids = classifier.own_graph(), classifier.ids_.tolist()
    place = _place(ids, node)
    networks = classifier.model_.networks()
    matrix = adjacency(graph.edge_index, len(graph.x), **networks[0].policies_in_force)
    counts = networks[0].counts(graph.edge_index, len(graph.x))
    # An address is collected once more before the first round.
    reach = len(networks[0].rounds) + (counts is not None)
    ball = _ball(matrix, place, rounds=reach)
    inside = matrix[ball][:, ball]
    counts = None if counts is None else counts[ball][:, ball]
    kept = torch.from_numpy(ball)
    shares = [_take_apart(one.on_nodes(kept), graph.x[ball], inside, counts) for one in networks]
    mean = torch.stack([found.logits.softmax(0) for found in shares]).mean(0)
    first, second = mean.topk(2).indices.tolist()

    def margin(per_class: Tensor) -> Tensor:
        return (per_class[..., first] - per_class[..., second]).double()

    whole = torch.stack([margin(found.logits) for found in shares]).mean()
    own = torch.stack([margin(found.own) for found in shares]).mean()
    of_neighbours = torch.stack([margin(found.neighbours) for found in shares]).mean(0)
    readers = ball[inside[[0]].indices]
    label, names = graph.y.numpy(), [*classifier.classes_.tolist(), None]  # -1 is the last
    neighbours = [
        Neighbour(id=ids[j], label=names[label[j]], shares=tuple(of_rounds), share=sum(of_rounds))
        for j, of_rounds in zip(readers.tolist(), of_neighbours.T.tolist(), strict=True)
    ]
    around = adjacency(
        graph.edge_index, len(label), direction="undirected", self_loops="remove", norm="none"
    )
    return NodeExplanation(
        id=ids[place],
        label=names[label[place]],
        predicted=names[first],
        probability=float(mean[first]),
        runner_up=names[second],
        runner_up_probability=float(mean[second]),
        margin=float(whole),
        own=float(own),
        constant=float(torch.stack([margin(found.constant) for found in shares]).mean()),
        neighbours=tuple(sorted(neighbours, key=lambda n: abs(n.share), reverse=True)),
        gates=tuple(
            (kept, absorbed, passed_on)
            for kept, absorbed, passed_on in torch.stack([found.gates for found in shares])
            .mean(0)
            .tolist()
        ),
        degree=len(readers),
        homophily=float(local_homophily(around, label)[place]),
    )


@torch.no_grad()
def _take_apart(
    network: MemoryNetwork, x: Tensor, matrix: sparse.csr_array, counts: sparse.csr_array | None
) -> _Shares:
    """The shares of one network; the node is the first row of the features and of the matrix."""
    nodes = Blocks(x, matrix, network.input.out_channels, counts)
    parts = _Parts(nodes, matrix[[0]])
    network.pass_messages(nodes, parts)
    decide = network.classifier.weight.T
    return _Shares(
        logits=network.classify([nodes.hidden[0]]),
        own=parts.own @ decide,
        neighbours=torch.stack([of_round @ decide for of_round in parts.received]),
        constant=parts.constant @ decide + network.classifier.bias,
        gates=torch.stack(parts.gates),
    )


class _Parts(Watch):
    """The summands of the first node's hidden state, followed from round to round.

    Args:
        nodes: All nodes, for their first hidden state and their memories.
        row: The node's row of the graph's matrix: its neighbours and their weights.

    Attributes:
        own: What is left of the first hidden state, `[channels]`.
        received: For each round, what is left of what came from each neighbour,
            `[neighbours, channels]`.
        constant: What is left of the biases, `[channels]`.
        gates: For each round the means of the node's gates, `[3]`.
    """

    def __init__(self, nodes: Blocks, row: sparse.csr_array) -> None:
        self._nothing = torch.zeros(nodes.hidden.shape[1])
        self.own = self.constant = self._nothing
        self.received: list[Tensor] = []
        self.gates: list[Tensor] = []
        self._nodes = nodes
        self._neighbours = torch.from_numpy(row.indices.astype(np.int64))
        self._weights = torch.from_numpy(row.data)[:, None]

    def before_round(self, mmp: MMP) -> None:
        """Take the message apart before the memories change."""
        if not self.received:
            self.own = self._nodes.hidden[0].clone()
        sent = self._weights * self._nodes.memory(self._neighbours)
        self._message, self._biases = _message_parts(mmp.conv, sent)

    def see_gates(self, rows: slice, gates: Gates) -> None:
        """Eq. (9) for each part by itself, with the gates of the first node."""
        if rows.start > 0:
            return
        kept, absorbed, passed_on = (gate[0] for gate in gates)
        add = partial(keep_and_absorb, (kept, absorbed, passed_on))
        self.own = add(self.own, self._nothing)
        self.received = [add(earlier, self._nothing) for earlier in self.received]
        self.received.append(add(self._nothing, self._message))
        self.constant = add(self.constant, self._biases)
        self.gates.append(mean_gates((kept, absorbed, passed_on)))


def _message_parts(conv: Any, sent: Tensor) -> tuple[Tensor, Tensor]:
    """What each neighbour adds to the message, `[neighbours, channels]`, and what the biases do."""
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


def _ball(matrix: sparse.csr_array, place: int, *, rounds: int) -> NDArray[np.int64]:
    """The node, and all whose features reach it in so many rounds."""
    found = np.array([place])
    for _ in range(rounds):
        reached = np.unique(matrix[found].indices)
        found = np.concatenate([found, np.setdiff1d(reached, found)])
    return found


def _place(ids: list[Any], node: Any) -> int:
    for place, name in enumerate(ids):
        if str(name) == str(node):
            return place
    some = ", ".join(str(name) for name in ids[:3])
    raise UsageError(f"there is no node named {str(node)!r}; ids of this graph are {some}, ...")
