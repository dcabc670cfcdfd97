r"""A guess of what a model costs on a graph, before it is fitted.

On a CPU, an epoch (a training step and an evaluation) of :math:`L` layers of width :math:`D` takes
about :math:`L D (5 |E| + 30 N)` nanoseconds of one thread, or :math:`10 L D N` if it does not see
the graph, and holds about :math:`40 L D N` bytes of activations; a graph takes about 200 bytes and
a microsecond for each of its :math:`|E|` arcs. These figures were measured on 100,000 nodes with
2,000,000 arcs and are good to a factor of two. With :math:`C` classes, logits and what is derived
from them take about :math:`32 C N` bytes more.

Trees and linear models hold label shares and logits in double precision, their features three
times, and for each of their weights, or bins of a histogram, the bytes below.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import psutil
import torch
from scipy import sparse

from memohop.fit.neighbourhood import Matrix
from memohop.fit.problem import Problem
from memohop.training.device import find_device, traits_of
from memohop.training.room import available_bytes, resident_bytes

_FEWEST = 50  # epochs of a network that is worth its time
_PER_ARC = 5e-9  # seconds of an epoch, for each layer and channel
_PER_NODE = {True: 3e-8, False: 1e-8}  # the same, with and without the graph
_MAKING = 1e-6  # seconds to make the graph, for each arc
_BYTES_PER_ARC, _BYTES_PER_NODE, _BYTES_PER_LOGIT = 200, 40, 32
_BYTES_PER_LINK = 150  # of the matrices of neighbours, and again of a model's files, for each arc
_BYTES_PER_WEIGHT = 240  # of logistic regression: its solver holds thirty copies of 8 bytes
_BYTES_PER_BIN = 16 * 15  # of a histogram, for some leaves
_BINS = 255


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
    if network_bytes(problem, options, sees_graph=sees_graph) > (
        available_bytes(home) if room is None else room
    ):
        return math.inf
    graphs, arcs = _graphs(options, sees_graph=sees_graph), problem.arcs.shape[1]
    channels = _layers(options) * options.get("hidden_channels", 1)
    epoch = channels * (sees_graph * _PER_ARC * arcs + _PER_NODE[sees_graph] * problem.nodes)
    return graphs * _MAKING * arcs + _FEWEST * epoch / torch.get_num_threads()


def network_bytes(problem: Problem, options: Mapping[str, Any], *, sees_graph: bool) -> float:
    """The RAM of a network in training."""
    channels = _layers(options) * options.get("hidden_channels", 1)
    graphs = _graphs(options, sees_graph=sees_graph) * problem.arcs.shape[1]
    each = _BYTES_PER_NODE * channels + _BYTES_PER_LOGIT * problem.classes
    return float(_BYTES_PER_ARC * graphs + each * problem.nodes + outputs_bytes(problem))


def view_bytes(problem: Problem, *, sees_graph: bool, trees: bool) -> float:
    """The RAM of trees or a linear model in training, with their features."""
    outputs, rows = max(problem.classes, 1), len(problem.labelled)
    ways = 3 if problem.neighbourhood.directed else 1
    width, features = problem.x.shape[1], 3 * _stored(problem.x)
    held = features + _BYTES_PER_LINK * problem.arcs.shape[1]
    if sees_graph:
        held += held + features  # means over one hop and over two hops
        width, shares = 3 * width, 2 * ways * (outputs + 1)
        held += 8 * (outputs + 1) * (2 * problem.nodes + (3 + 5 * ways) * rows)
        held += 3 * 4 * shares * rows
        width += shares
    learned = _BYTES_PER_BIN * _BINS * width if trees else _BYTES_PER_WEIGHT * outputs * width
    return float(held + learned + _BYTES_PER_LOGIT * outputs * rows + outputs_bytes(problem))


def outputs_bytes(problem: Problem) -> int:
    """What is kept of every fit: the outputs for validation and test nodes."""
    rows = problem.masks.val[:, 0].sum() + problem.masks.test.sum()
    return 4 * max(problem.classes, 1) * int(rows)


def room_in_ram(memory: int | None) -> float:
    """The bytes that may be taken beside what the process holds; by default all that are free."""
    if memory is None:
        return float(psutil.virtual_memory().available)
    return float(memory - resident_bytes())


def _stored(x: Matrix) -> int:
    return int(x.data.nbytes + x.indices.nbytes if sparse.issparse(x) else x.nbytes)


def _layers(options: Mapping[str, Any]) -> int:
    hops = options.get("hops", 0)  # of fsgnn: each map takes its steps by itself, on two graphs
    return int(hops * (hops + 1) if hops else options.get("num_layers", 1))


def _graphs(options: Mapping[str, Any], *, sees_graph: bool) -> int:
    return (2 if "hops" in options else 1) if sees_graph else 0
