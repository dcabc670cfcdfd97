"""Probabilities and gates of every node of a graph, from trained networks."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from scipy import sparse
from torch import Tensor

from memohop.inference.blocks import Blocks
from memohop.networks import MemoryNetwork
from memohop.networks.passing import MeanGates
from memohop.nn.graph import adjacency
from memohop.training.metrics import METRICS
from memohop.training.objective import Classification, Objective

_CLASSES = Classification(METRICS["accuracy"])


class ReadOut(NamedTuple):
    """The outputs of one network for every node.

    Attributes:
        probabilities: ``[nodes, classes]``; for a regression the numbers, ``[nodes, 1]``.
        gates: ``[rounds, nodes, 3]``: kept, absorbed, passed on (means over channels).
    """

    probabilities: Tensor
    gates: Tensor


def probabilities(
    networks: Sequence[MemoryNetwork],
    x: Tensor | sparse.csr_array,
    edge_index: Tensor,
    objective: Objective = _CLASSES,
) -> NDArray[np.float32]:
    """The mean over networks of their predictions: probabilities ``[nodes, classes]``.

    For a regression these are the predicted numbers, ``[nodes, 1]``.

    Args:
        networks: networks of graph convolutions with the same options, in evaluation mode.
        x: features, dense or sparse.
        edge_index: the arcs.
        objective: what the networks were trained for.
    """
    nodes = _nodes_of(networks, x, edge_index)
    total = torch.zeros(x.shape[0], networks[0].classifier.out_features)
    for network in networks:
        network.pass_messages(nodes)
        total += _predict(network, nodes, objective)
    return (total / len(networks)).numpy()


def read_out(
    networks: Sequence[MemoryNetwork],
    x: Tensor | sparse.csr_array,
    edge_index: Tensor,
    objective: Objective = _CLASSES,
) -> Iterator[ReadOut]:
    """The outputs of each network in turn; arguments as for :func:`probabilities`."""
    nodes = _nodes_of(networks, x, edge_index)
    for network in networks:
        gates = MeanGates(torch.empty(len(network.rounds), x.shape[0], 3))
        network.pass_messages(nodes, gates)
        yield ReadOut(_predict(network, nodes, objective), gates.found)


def _nodes_of(
    networks: Sequence[MemoryNetwork], x: Tensor | sparse.csr_array, edge_index: Tensor
) -> Blocks:
    first, nodes = networks[0], x.shape[0]
    matrix = adjacency(edge_index, nodes, weights=None, **first.policies_in_force)
    return Blocks(x, matrix, first.input.out_channels, first.counts(edge_index, nodes))


@torch.no_grad()
def _predict(network: MemoryNetwork, nodes: Blocks, objective: Objective) -> Tensor:
    """The predictions, ``[nodes, outputs]``."""
    found = torch.empty(len(nodes.hidden), network.classifier.out_features)
    for rows in nodes.rows():
        found[rows] = objective.predictions(network.classify([nodes.hidden[rows]]))
    return found
