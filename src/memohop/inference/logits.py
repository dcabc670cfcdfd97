"""The outputs of a trained network for every node of a graph."""

from __future__ import annotations

import torch
from scipy import sparse
from torch import Tensor

from memohop.inference.blocks import Blocks
from memohop.networks import MemoryNetwork
from memohop.networks.passing import Watch
from memohop.nn import MMP
from memohop.nn.graph import adjacency


@torch.no_grad()
def block_logits(
    network: MemoryNetwork, x: Tensor | sparse.csr_array, edge_index: Tensor
) -> Tensor:
    """The logits, ``[nodes, outputs]``, computed block by block.

    Args:
        network: A network of graph convolutions, in evaluation mode.
        x: Features, dense or sparse.
        edge_index: The arcs.
    """
    count = x.shape[0]
    matrix = adjacency(edge_index, count, **network.policies_in_force)
    nodes = Blocks(x, matrix, network.input.out_channels, network.counts(edge_index, count))
    classifier = _Classifier(network, nodes)
    network.pass_messages(nodes, classifier)
    classifier.read()
    return classifier.logits


class _Classifier(Watch):
    """Adds up the logits, since the states that ``readout="jumping"`` reads are not kept."""

    def __init__(self, network: MemoryNetwork, nodes: Blocks) -> None:
        weight, bias = network.classifier.weight, network.classifier.bias
        self.logits, self._nodes = bias.repeat(nodes.num_nodes, 1), nodes
        self._reads_all = network.readout == "jumping"
        parts = len(network.rounds) + 1 if self._reads_all else 1
        self._weights = iter(weight.T.chunk(parts))  # for the state after each round

    def before_round(self, mmp: MMP) -> None:
        if self._reads_all:
            self.read()

    def read(self) -> None:
        """Add the share of the present hidden state."""
        weight = next(self._weights)
        for rows in self._nodes.rows():
            self.logits[rows] += self._nodes.hidden[rows] @ weight
