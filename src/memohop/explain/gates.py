"""The gates of every node, by its degree and its local homophily."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from scipy import sparse
from torch import Tensor

from memohop.data.adjacency import adjacency
from memohop.data.audit.homophily import homophily_bins

Numbers = NDArray[np.float64]


@dataclass(frozen=True)
class Group:
    """Nodes that have something in common.

    Attributes:
        name: Their range of degrees or shares.
        nodes: Their number.
        kept, absorbed, passed_on: Means of their gates.
    """

    name: str
    nodes: int
    kept: float
    absorbed: float
    passed_on: float


@dataclass(frozen=True, eq=False)
class GateReadout:
    """One number for each node; gates are means over rounds and networks.

    Attributes:
        kept: How much a node kept of its own hidden state.
        absorbed: How much it took of the message from its neighbours.
        passed_on: How much of that message its neighbours could read in the next round; NaN if
            there is no next round.
        degree: The number of its neighbours in either direction, without itself.
        homophily: The share of its labelled neighbours with its own label; NaN if it has no label
            or no labelled neighbour.

    Example:
        >>> import memohop
        >>> from memohop.explain import explain_fit
        >>> data = memohop.load("csbm", nodes=60, homophily=0.1)
        >>> model = memohop.MMPClassifier(trials=1, splits=2, epochs=3).fit(data, split=0)
        >>> explain_fit(model).gates.absorbed.shape
        (60,)
    """

    kept: Numbers
    absorbed: Numbers
    passed_on: Numbers
    degree: NDArray[np.int64]
    homophily: Numbers

    def by_degree(self) -> list[Group]:
        """Nodes with 0, 1, 2 to 3, 4 to 7, ... neighbours."""
        digits = np.frexp(self.degree)[1]  # in binary
        groups = []
        for count in np.unique(digits).tolist():
            low, high = 2**count // 2, 2**count - 1
            name = f"{low}" if low == high else f"{low} to {high}"
            groups.append(self._group(name, digits == count))
        return groups

    def by_homophily(self) -> list[Group]:
        """Nodes with a share of like neighbours from 0 to 0.2, 0.2 to 0.4, and so on."""
        return [
            self._group(f"{low:g} to {high:g}", inside)
            for low, high, inside in homophily_bins(self.homophily)
        ]

    def overall(self) -> Group:
        """All nodes."""
        return self._group("all nodes", np.ones(len(self.kept), dtype=bool))

    def _group(self, name: str, inside: NDArray[np.bool_]) -> Group:
        def mean(values: Numbers) -> float:
            values = values[~np.isnan(values)]
            return float(values.mean()) if len(values) else float("nan")

        gates = (mean(one[inside]) for one in (self.kept, self.absorbed, self.passed_on))
        return Group(name, int(inside.sum()), *gates)


def gate_readout(
    gates: Sequence[Tensor], edge_index: Tensor, label: NDArray[np.int64]
) -> GateReadout:
    """The gates of several networks on one graph.

    Args:
        gates: Those of each network, ``[rounds, nodes, 3]``: kept, absorbed, passed on.
        edge_index: The arcs.
        label: Class numbers, -1 for nodes without a label.
    """
    of_networks = [one.double() for one in gates]
    kept, absorbed = (
        torch.stack([one[..., gate].mean(0) for one in of_networks]).mean(0) for gate in range(2)
    )
    # No round reads the output of the last one: NaN if there is one round.
    passed_on = torch.stack([one[:-1, :, 2].mean(0) for one in of_networks]).nanmean(0)
    neighbours = neighbours_of(edge_index, len(label))
    return GateReadout(
        kept=kept.numpy(),
        absorbed=absorbed.numpy(),
        passed_on=passed_on.numpy(),
        degree=np.diff(neighbours.indptr).astype(np.int64),
        homophily=local_homophily(neighbours, label),
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
