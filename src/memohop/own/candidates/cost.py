r"""A guess of what a network costs on a graph, before it is built.

On a CPU, an epoch (a training step and an evaluation) of :math:`L` layers of width :math:`D` takes
about :math:`L D (5 |E| + 30 N)` nanoseconds of one thread, or :math:`10 L D N` if it does not see
the graph, and holds about :math:`40 L D N` bytes of activations; a graph takes about 200 bytes and
a microsecond for each of its :math:`|E|` arcs. These figures were measured on 100,000 nodes with
2,000,000 arcs and are good to a factor of two.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import torch

from memohop.own.problem import Problem
from memohop.training.device import find_device, traits_of
from memohop.training.room import available_bytes

_FEWEST = 50  # epochs of a network that is worth its time
_PER_ARC = 5e-9  # seconds of an epoch, for each layer and channel
_PER_NODE = {True: 3e-8, False: 1e-8}  # the same, with and without the graph
_MAKING = 1e-6  # seconds to make the graph, for each arc
_BYTES_PER_ARC, _BYTES_PER_NODE = 200, 40


def least_seconds(
    problem: Problem,
    options: Mapping[str, Any],
    device: str,
    *,
    sees_graph: bool,
    room: int | None = None,
) -> float:
    """Seconds below which it is not worth starting a fit; infinite if its RAM is too small.

    Args:
        problem: The graph.
        options: The options of the network.
        device: The device to train on; one with RAM of its own measures what fits by itself, and
            is too quick to count.
        sees_graph: Whether the network uses arcs.
        room: The bytes that there are for it; by default what is free on the device.
    """
    home = find_device(device)
    if traits_of(home).is_separate:
        return 0.0
    hops = options.get("hops", 0)  # of fsgnn: each map takes its steps by itself, on two graphs
    layers = hops * (hops + 1) if hops else options.get("num_layers", 1)
    graphs = (2 if hops else 1) if sees_graph else 0
    arcs, channels = problem.arcs.shape[1], layers * options.get("hidden_channels", 1)
    held = graphs * _BYTES_PER_ARC * arcs + _BYTES_PER_NODE * channels * problem.nodes
    if held > (available_bytes(home) if room is None else room):
        return math.inf
    epoch = channels * (sees_graph * _PER_ARC * arcs + _PER_NODE[sees_graph] * problem.nodes)
    return graphs * _MAKING * arcs + _FEWEST * epoch / torch.get_num_threads()
