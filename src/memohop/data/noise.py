"""Arcs that mean nothing, added to a graph."""

from __future__ import annotations

import copy
from typing import Literal, get_args

import numpy as np
import torch
from numpy.typing import NDArray

from memohop.data.arguments import real_number, whole_number
from memohop.data.assemble import merge_arcs
from memohop.errors import UsageError, unknown_name
from memohop.pyg import Data

NoisePolicy = Literal["undirected", "directed"]
_BATCH = 4096  # pairs drawn at a time; part of what a draw means, so that it never changes


def add_noise(
    data: Data, percent: float, *, draw: int = 0, policy: NoisePolicy = "undirected"
) -> Data:
    """The graph with random arcs between nodes that had none.

    More noise of the same draw contains the less: levels differ by the arcs that come on top.

    Args:
        data: The graph; it is left as it is.
        percent: How many to add, in percent of those that are there.
        draw: The seed of the draw.
        policy: `undirected` adds pairs of nodes, with an arc each way, and counts the pairs that
            are there without self-loops: what "adding 25 % of the edges" says. `directed` adds
            single arcs, and counts those that are there with one self-loop for each node on top:
            what the paper's released code does.
    """
    percent = real_number("percent", percent, least=0)
    generator = np.random.default_rng(whole_number("draw", draw, least=0))
    if policy not in get_args(NoisePolicy):
        raise unknown_name("policy of noise", policy, get_args(NoisePolicy))
    nodes, both_ways = data.num_nodes, policy == "undirected"
    source, target = data.edge_index.cpu().numpy()
    present = _numbers(source, target, nodes, both_ways=both_ways)
    there = len(present) if both_ways else len(present) + nodes
    wanted = round(there * percent / 100)
    free = nodes * (nodes - 1) // (2 if both_ways else 1) - len(present)
    if wanted > free:
        raise UsageError(
            f"percent={percent:g} asks for {wanted} more, and only {free} are absent; ask for less"
        )
    added = np.stack(np.divmod(_absent(present, wanted, nodes, generator, both_ways), nodes))
    new = merge_arcs(*added, nodes=nodes, both_ways=both_ways, origin="noise")
    arcs = merge_arcs(
        np.concatenate((source, new[0])),
        np.concatenate((target, new[1])),
        nodes=nodes,
        origin="noise",
    )
    noisy = copy.copy(data)
    noisy.edge_index = torch.from_numpy(arcs).to(data.edge_index.device)
    if wanted and "latent" in noisy:  # neighbours of the graph as it was
        del noisy.latent
    return noisy


def _numbers(
    source: NDArray[np.int64], target: NDArray[np.int64], nodes: int, *, both_ways: bool
) -> NDArray[np.int64]:
    """Each arc, or each pair of nodes, that is no self-loop as one number; sorted, each once."""
    if both_ways:
        source, target = np.minimum(source, target), np.maximum(source, target)
    return np.unique((source * nodes + target)[source != target])


def _absent(
    present: NDArray[np.int64],
    wanted: int,
    nodes: int,
    generator: np.random.Generator,
    both_ways: bool,
) -> NDArray[np.int64]:
    """The first `wanted` numbers drawn that are neither present nor drawn before."""
    found = np.empty(0, dtype=np.int64)
    while len(found) < wanted:
        source, target = generator.integers(nodes, size=(2, _BATCH))
        if both_ways:
            source, target = np.minimum(source, target), np.maximum(source, target)
        drawn = (source * nodes + target)[source != target]
        drawn = np.concatenate((found, drawn[~np.isin(drawn, present)]))
        _, first = np.unique(drawn, return_index=True)
        found = drawn[np.sort(first)]
    return found[:wanted]
