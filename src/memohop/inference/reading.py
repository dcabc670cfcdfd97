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


class ReadOut(NamedTuple):
    """The outputs of one network for every node.

    Attributes:
        probabilities: ``[nodes, classes]``.
        gates: ``[rounds, nodes, 3]``: kept, absorbed, passed on (means over channels).
    """

    probabilities: Tensor
    gates: Tensor


def probabilities(
    networks: Sequence[MemoryNetwork], x: Tensor | sparse.csr_array, edge_index: Tensor
) -> NDArray[np.float32]:
    """The mean over networks of the probability of each class, ``[nodes, classes]``.

    Args:
        networks: networks of graph convolutions with the same options, in evaluation mode.
        x: features, dense or sparse.
        edge_index: the arcs.
    """
    nodes = _nodes_of(networks, x, edge_index)
    total = torch.zeros(x.shape[0], networks[0].classifier.out_features)
    for network in networks:
        network.pass_messages(nodes)
        total += _classify(network, nodes)
    return (total / len(networks)).numpy()


def read_out(
    networks: Sequence[MemoryNetwork], x: Tensor | sparse.csr_array, edge_index: Tensor
) -> Iterator[ReadOut]:
    """The outputs of each network in turn; arguments as for :func:`probabilities`."""
    nodes = _nodes_of(networks, x, edge_index)
    for network in networks:
        gates = MeanGates(torch.empty(len(network.rounds), x.shape[0], 3))
        network.pass_messages(nodes, gates)
        yield ReadOut(_classify(network, nodes), gates.found)


def _nodes_of(
    networks: Sequence[MemoryNetwork], x: Tensor | sparse.csr_array, edge_index: Tensor
) -> Blocks:
    matrix = adjacency(edge_index, x.shape[0], **networks[0].policies_in_force)
    return Blocks(x, matrix, networks[0].input.out_channels)


@torch.no_grad()
def _classify(network: MemoryNetwork, nodes: Blocks) -> Tensor:
    """The probabilities, ``[nodes, classes]``."""
    found = torch.empty(len(nodes.hidden), network.classifier.out_features)
    for rows in nodes.rows():
        found[rows] = network.classify([nodes.hidden[rows]]).softmax(-1)
    return found
