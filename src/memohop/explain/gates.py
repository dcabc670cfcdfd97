"""The gates of every node, by its degree and its local homophily."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from memohop.data.arcs import adjacency
from memohop.data.audit import homophily_bins, local_homophily

Numbers = NDArray[np.float64]


@dataclass(frozen=True)
class NodeGroup:
    """Nodes that have something in common, and the means of their gates."""

    name: str  # their range of degrees or shares
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

    def by_degree(self) -> list[NodeGroup]:
        """Nodes with 0, 1, 2 to 3, 4 to 7, ... neighbours."""
        digits = np.frexp(self.degree)[1]  # in binary
        groups = []
        for count in np.unique(digits).tolist():
            low, high = 2**count // 2, 2**count - 1
            name = f"{low}" if low == high else f"{low} to {high}"
            groups.append(self._group(name, digits == count))
        return groups

    def by_homophily(self) -> list[NodeGroup]:
        """Nodes with a share of like neighbours from 0 to 0.2, 0.2 to 0.4, and so on."""
        return [
            self._group(f"{low:g} to {high:g}", inside)
            for low, high, inside in homophily_bins(self.homophily)
        ]

    def overall(self) -> NodeGroup:
        """All nodes."""
        return self._group("all nodes", np.ones(len(self.kept), dtype=bool))

    def _group(self, name: str, inside: NDArray[np.bool_]) -> NodeGroup:
        def mean(values: Numbers) -> float:
            values = values[~np.isnan(values)]
            return float(values.mean()) if len(values) else float("nan")

        gates = (mean(gate[inside]) for gate in (self.kept, self.absorbed, self.passed_on))
        return NodeGroup(name, int(inside.sum()), *gates)


def gate_readout(
    gates: Sequence[Tensor], edge_index: Tensor, label: NDArray[np.int64]
) -> GateReadout:
    """The gates of several networks on one graph, whose unknown labels are -1.

    Those of each network are ``[rounds, nodes, 3]``: kept, absorbed, passed on.
    """
    # No round reads what the last one passes on: NaN if there is one round.
    kept, absorbed, passed_on = (
        torch.stack([rounds[:end, :, gate].double().mean(0) for rounds in gates]).nanmean(0)
        for gate, end in enumerate((None, None, -1))
    )
    links = adjacency(edge_index, len(label), direction="undirected", self_loops="remove")
    return GateReadout(
        kept=kept.numpy(),
        absorbed=absorbed.numpy(),
        passed_on=passed_on.numpy(),
        degree=np.diff(links.indptr).astype(np.int64),
        homophily=local_homophily(links, label),
    )
