"""A graph of six nodes, on which networks are compared with their equations, written out."""

import torch

from memohop import build
from numerics import generator, seeded

ARCS = torch.tensor([[0, 1, 1, 2, 0, 3], [1, 0, 2, 0, 2, 1]])  # directed; 4 and 5 are isolated
UNDIRECTED = torch.cat([ARCS, ARCS.flip(0)], dim=1).unique(dim=1)
NODES, FEATURES, CLASSES = 6, 5, 3


def features(nodes=NODES):
    return torch.rand(nodes, FEATURES, generator=generator())


def made(name, **options):
    """A network that does not drop anything, the same in every call."""
    torch.manual_seed(seeded(1))
    return build(name, FEATURES, CLASSES, **options).eval()


def logits_of(network, x, arcs=ARCS):
    output = network(x, network.prepare(arcs, x.shape[0]))
    return output[0] if isinstance(output, tuple) else output


def dense(*, loops, norm):
    """The matrix of the undirected graph, with or without loops."""
    matrix = torch.eye(NODES) * loops
    matrix[UNDIRECTED[0], UNDIRECTED[1]] = 1
    degree = matrix.sum(1).clamp(min=1)
    if norm == "row":
        return matrix / degree[:, None]
    return matrix / (degree[:, None] * degree).sqrt()


@torch.no_grad()
def copy(*pairs):
    """Give the first of each pair the values of the second."""
    for theirs, ours in pairs:
        theirs.copy_(ours)
