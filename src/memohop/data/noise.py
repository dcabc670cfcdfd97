"""Random arcs that are added to a graph as noise."""

from __future__ import annotations

import copy
from typing import Literal, get_args

import numpy as np
import torch
from numpy.typing import NDArray

from memohop.data.arcs import merge_arcs
from memohop.errors import UsageError, real_number, unknown_name, whole_number
from memohop.pyg import Data

NoisePolicy = Literal["undirected", "directed"]
_BATCH = 4096  # pairs drawn at a time; another number would change every draw


def add_noise(
    data: Data, percent: float, *, draw: int = 0, policy: NoisePolicy = "undirected"
) -> Data:
    """The graph with random arcs between nodes that had none.

    A lower level of noise of the same draw is contained in a higher one.

    Args:
        data: The graph; it is not changed.
        percent: How many to add, in percent of those that are there.
        draw: The seed of the draw.
        policy: ``undirected`` adds pairs of nodes, with an arc each way, and counts existing pairs
            without self-loops, as in "adding 25 % of the edges". ``directed`` adds single arcs, and
            counts existing arcs plus one self-loop for each node, as the paper's released code
            does.
    """
    percent = real_number("percent", percent, least=0)
    generator = np.random.default_rng(whole_number("draw", draw, least=0))
    if policy not in get_args(NoisePolicy):
        raise unknown_name("policy of noise", policy, get_args(NoisePolicy))
    nodes, both_ways = data.num_nodes, policy == "undirected"
    source, target = data.edge_index.cpu().numpy()
    present = np.unique(_numbers(source, target, nodes, both_ways))
    there = len(present) if both_ways else len(present) + nodes
    wanted = round(there * percent / 100)
    free = nodes * (nodes - 1) // (2 if both_ways else 1) - len(present)
    if wanted > free:
        raise UsageError(
            f"percent={percent:g} asks for {wanted} more, and only {free} are absent; ask for less"
        )
    added = np.divmod(_absent(present, wanted, nodes, generator, both_ways), nodes)
    new = merge_arcs(*added, nodes=nodes, both_ways=both_ways)
    ends = np.concatenate((data.edge_index.cpu().numpy(), new), axis=1)
    arcs = merge_arcs(*ends, nodes=nodes)
    noisy = copy.copy(data)
    noisy.edge_index = torch.from_numpy(arcs).to(data.edge_index.device)
    if wanted and "latent" in noisy:  # neighbours of the graph without noise
        del noisy.latent
    return noisy


def _numbers(
    source: NDArray[np.int64], target: NDArray[np.int64], nodes: int, both_ways: bool
) -> NDArray[np.int64]:
    """Each arc, or each pair of nodes, as one number; without self-loops."""
    if both_ways:
        source, target = np.minimum(source, target), np.maximum(source, target)
    return (source * nodes + target)[source != target]


def _absent(
    present: NDArray[np.int64],
    wanted: int,
    nodes: int,
    generator: np.random.Generator,
    both_ways: bool,
) -> NDArray[np.int64]:
    """The first ``wanted`` numbers drawn that are neither present nor drawn before."""
    absent = np.empty(0, dtype=np.int64)
    while len(absent) < wanted:
        source, target = generator.integers(nodes, size=(2, _BATCH))
        drawn = _numbers(source, target, nodes, both_ways)
        drawn = np.concatenate((absent, drawn[~np.isin(drawn, present)]))
        absent = drawn[np.sort(np.unique(drawn, return_index=True)[1])]
    return absent[:wanted]
