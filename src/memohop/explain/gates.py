"""The gates of every node, by its degree, its local homophily and whether it was right."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray
from scipy import sparse
from torch import Tensor

from memohop.data.audit.homophily import homophily_bins
from memohop.inference import read_out
from memohop.nn.graph import adjacency
from memohop.pyg import Data

if TYPE_CHECKING:
    from memohop.own.estimator import MMPClassifier

Numbers = NDArray[np.float64]


@dataclass(frozen=True)
class Group:
    """Nodes that have something in common.

    Attributes:
        name: Their range of degrees or shares.
        middle: The group's position on the axis.
        nodes: Their number.
        kept, absorbed, passed_on: Means of their gates.
        tested: How many of them were held out from some network.
        right: The share of those that were then predicted correctly; NaN if none was held out.
    """

    name: str
    middle: float
    nodes: int
    kept: float
    absorbed: float
    passed_on: float
    tested: int
    right: float


@dataclass(frozen=True, eq=False)
class GateReadout:
    """One number for each node; gates are means over rounds and networks.

    Attributes:
        ids: The names of the nodes.
        kept: How much a node kept of its own hidden state.
        absorbed: How much it took of the message from its neighbours.
        passed_on: How much of that message its neighbours could read in the next round; NaN if
            there is no next round.
        degree: The number of its neighbours in either direction, without itself.
        homophily: The share of its labelled neighbours with its own label; NaN if it has no label
            or no labelled neighbour.
        predicted: The index in ``classes`` of the class that all networks together predict.
        probability: Of that class.
        label: The index in ``classes`` of its label; -1 if it has none.
        right: Whether the networks that had not seen its label were right; NaN if all had.
        classes: The classes.

    Example:
        >>> import memohop
        >>> from memohop.explain import read_gates
        >>> data = memohop.load("csbm", nodes=60, homophily=0.1)
        >>> model = memohop.MMPClassifier(trials=1, splits=2, epochs=3).fit(data, split=0)
        >>> gates = read_gates(model)
        >>> [group.name for group in gates.by_correctness()]
        ['right', 'wrong']
    """

    ids: NDArray[Any]
    kept: Numbers
    absorbed: Numbers
    passed_on: Numbers
    degree: NDArray[np.int64]
    homophily: Numbers
    predicted: NDArray[np.int64]
    probability: Numbers
    label: NDArray[np.int64]
    right: Numbers
    classes: NDArray[Any]

    def by_degree(self) -> list[Group]:
        """Nodes with 0, 1, 2 to 3, 4 to 7, ... neighbours."""
        digits = np.frexp(self.degree)[1]  # in binary
        groups = []
        for count in np.unique(digits).tolist():
            low, high = 2**count // 2, 2**count - 1
            name = f"{low}" if low == high else f"{low} to {high}"
            groups.append(self._group(name, (low + high) / 2, digits == count))
        return groups

    def by_homophily(self) -> list[Group]:
        """Nodes with a share of like neighbours from 0 to 0.2, 0.2 to 0.4, and so on."""
        return [
            self._group(f"{low:g} to {high:g}", (low + high) / 2, inside)
            for low, high, inside in homophily_bins(self.homophily)
        ]

    def by_correctness(self) -> list[Group]:
        """Nodes that were predicted correctly when they were held out, and those that were not."""
        names = {"right": 1, "wrong": 0}
        return [self._group(name, value, self.right == value) for name, value in names.items()]

    def listeners(self) -> NDArray[np.int64]:
        """Indices of the nodes that have neighbours, those that absorbed most first."""
        heard = np.flatnonzero(self.degree > 0)
        return heard[np.argsort(-self.absorbed[heard], kind="stable")]

    def overall(self) -> Group:
        """All nodes."""
        return self._group("all nodes", 0, np.ones(len(self.ids), dtype=bool))

    def _group(self, name: str, middle: float, inside: NDArray[np.bool_]) -> Group:
        def mean(values: Numbers) -> float:
            values = values[~np.isnan(values)]
            return float(values.mean()) if len(values) else float("nan")

        names = ("kept", "absorbed", "passed_on", "right")
        means = {name: mean(getattr(self, name)[inside]) for name in names}
        tested = int((~np.isnan(self.right[inside])).sum())
        return Group(name, middle, nodes=int(inside.sum()), tested=tested, **means)


def read_gates(classifier: MMPClassifier, graph: Data | None = None) -> GateReadout:
    """The gates of the graph of ``fit``, or of another one.

    Args:
        classifier: A fitted classifier.
        graph: Another graph with the same features. No network was trained on its labels, so
            all of its labelled nodes count as held out.

    Example:
        >>> import memohop
        >>> from memohop.explain import read_gates
        >>> data = memohop.load("csbm", nodes=60, homophily=0.1)
        >>> model = memohop.MMPClassifier(trials=1, splits=2, epochs=3).fit(data, split=0)
        >>> read_gates(model).absorbed.shape
        (60,)
    """
    own = graph is None
    data = classifier.own_graph() if graph is None else graph
    label = data.y.numpy()
    total = torch.zeros(len(data.x), len(classifier.classes_))
    unseen, gates = torch.zeros_like(total), []
    networks = classifier.model_.networks()
    for split, found in enumerate(read_out(networks, data.x, data.edge_index)):
        total += found.probabilities
        held_out = data.test_mask[:, split] if own else data.y >= 0
        unseen += found.probabilities * held_out[:, None]
        gates.append(found.gates)
    right = (unseen.argmax(1).numpy() == label).astype(float)
    right[unseen.sum(1).numpy() == 0] = np.nan
    return gate_readout(
        gates,
        data.edge_index,
        label,
        probabilities=(total / len(networks)).numpy(),
        right=right,
        ids=classifier.ids_ if own else np.arange(len(label)),
        classes=classifier.classes_,
    )


def gate_readout(
    gates: Sequence[Tensor],
    edge_index: Tensor,
    label: NDArray[np.int64],
    *,
    probabilities: NDArray[np.float32],
    right: Numbers,
    ids: NDArray[Any],
    classes: NDArray[Any],
) -> GateReadout:
    """The gates of several networks, each ``[rounds, nodes, 3]``, with facts about the nodes.

    ``probabilities`` are ``[nodes, classes]``; the other arguments go unchanged into the result.
    """
    of_networks = [one.double() for one in gates]
    kept, absorbed = (
        torch.stack([one[..., gate].mean(0) for one in of_networks]).mean(0) for gate in range(2)
    )
    # No round reads the output of the last one: NaN if there is one round.
    passed_on = torch.stack([one[:-1, :, 2].mean(0) for one in of_networks]).nanmean(0)
    neighbours = neighbours_of(edge_index, len(label))
    return GateReadout(
        ids=ids,
        kept=kept.numpy(),
        absorbed=absorbed.numpy(),
        passed_on=passed_on.numpy(),
        degree=np.diff(neighbours.indptr).astype(np.int64),
        homophily=local_homophily(neighbours, label),
        predicted=probabilities.argmax(axis=1),
        probability=probabilities.max(axis=1).astype(np.float64),
        label=label,
        right=right,
        classes=classes,
    )


def neighbours_of(edge_index: Tensor, nodes: int) -> sparse.csr_array:
    """The neighbours of each node in either direction, without itself."""
    return adjacency(edge_index, nodes, direction="undirected", self_loops="remove", norm="none")


def local_homophily(neighbours: sparse.csr_array, label: NDArray[np.int64]) -> Numbers:
    """The share of each node's labelled neighbours that have its own label; NaN for none."""
    row = np.repeat(np.arange(len(label)), np.diff(neighbours.indptr))
    both = (label[row] >= 0) & (label[neighbours.indices] >= 0)
    same = both & (label[row] == label[neighbours.indices])
    known, alike = (np.bincount(row[where], minlength=len(label)) for where in (both, same))
    share = np.full(len(label), np.nan)
    np.divide(alike, known, out=share, where=known > 0)
    return share
