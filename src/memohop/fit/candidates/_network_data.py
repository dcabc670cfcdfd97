"""What a network is given of a graph, and what it takes to train one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from scipy import sparse

from memohop.data.arcs import ArcAttribute
from memohop.fit._candidate import Cost, kept_bytes
from memohop.fit._features import side_by_side
from memohop.fit._graph import Inputs
from memohop.fit._neighbourhood import Matrix
from memohop.fit._problem import Problem
from memohop.fit._structure import structure_bytes, structure_width
from memohop.pyg import Data

_DEGREE = 3.0  # the logarithm of degrees is divided by this to match the columns
_FEWEST = 50  # epochs of a network that is worth its time


def as_data(
    inputs: Inputs,
    model: str,
    scale: float,
    scales_of_arcs: NDArray[np.float32] | None = None,
    structure: NDArray[np.float32] | None = None,
) -> Data:
    """The graph in the form that the trainer takes.

    Columns are divided by ``scale``, and the attributes of arcs each by their own. A model that
    uses the graph gets the columns of edges, and the logarithm of each node's degree, as well as a
    node's own; and what ``structure`` says, given means and spreads of that, ``[2, numbers]``.
    """
    if sees_arcs(model):
        parts = [inputs.x / np.float32(scale), inputs.neighbourhood.degrees() / _DEGREE]
        if structure is not None:
            told = np.stack([*structure_of(inputs, structure.shape[1]).values()], axis=1)
            parts.append((told - structure[0]) / (_DEGREE * structure[1]))
        x = side_by_side(parts)
    else:
        x = inputs.own / np.float32(scale)
    arcs, weights = inputs.as_received()
    data = Data(
        x=x if sparse.issparse(x) else torch.from_numpy(np.ascontiguousarray(x)),
        y=torch.from_numpy(inputs.y),
        edge_index=torch.from_numpy(arcs),
        num_nodes=inputs.nodes,
    )
    if inputs.times is None and inputs.attributes is not None and scales_of_arcs is not None:
        data.edge_attr = torch.from_numpy(inputs.attributes / scales_of_arcs)
        data.relations = relations_of(inputs.described)
    if weights is not None:
        data.edge_weight = torch.from_numpy(weights)
    if isinstance(inputs, Problem):
        masks = inputs.masks
        data.train_mask, data.val_mask = map(torch.from_numpy, (masks.train, masks.val))
        metric = inputs.objective.metric
        data.metric, data.positive = metric.id, metric.positive
    return data


def feature_scale(x: Matrix) -> float:
    """The root mean square of the features that are not 0."""
    values = x.data if sparse.issparse(x) else x[x != 0]
    return float(np.sqrt(np.mean(np.square(values, dtype=np.float64)))) if values.size else 1.0


def structure_of(inputs: Inputs, numbers: int) -> dict[str, NDArray[np.float64]]:
    """What structure says of each node, by name: so many numbers, with triangles or without."""
    near = inputs.neighbourhood
    with_triangles = structure_width(1 + near.directed, triangles=True)
    return near.structure(triangles=numbers == with_triangles)


def structure_scales(inputs: Inputs) -> NDArray[np.float32]:
    """Mean and standard deviation of each number of structure; 1 if it is the same everywhere."""
    near = inputs.neighbourhood
    told = np.stack([*near.structure(triangles=near.has_few_triangles).values()], axis=1)
    spread = told.std(axis=0)
    return np.stack([told.mean(axis=0), np.where(spread > 1e-6, spread, 1)]).astype(np.float32)


def arc_scales(inputs: Inputs) -> NDArray[np.float32] | None:
    """The root mean square of each attribute of arcs where it is not 0; 1 for relations."""
    if inputs.attributes is None:
        return None
    columns = zip(inputs.attributes.T, inputs.described, strict=True)
    scales = [1.0 if told.is_relation else feature_scale(values) for values, told in columns]
    return np.array(scales, dtype=np.float32)


def relations_of(described: Sequence[ArcAttribute]) -> list[int]:
    """The numbers of the attributes of arcs that are relations."""
    return [number for number, attribute in enumerate(described) if attribute.is_relation]


def sees_arcs(model: str) -> bool:
    """Whether a model uses the graph."""
    return model != "mlp"


def network_cost(problem: Problem, options: Mapping[str, Any], *, sees_graph: bool) -> Cost:
    r"""What a network takes: the seconds of a few dozen epochs on a CPU, and its RAM.

    Both are guessed. An epoch (a training step and an evaluation) of :math:`L` layers of width
    :math:`D` takes about :math:`L D (5 |E| + 30 N)` nanoseconds of one thread, or :math:`10 L D N`
    if it does not see the graph, and holds about :math:`40 L D N` bytes of activations; a graph
    takes about 200 bytes and a microsecond for each of its :math:`|E|` arcs. These figures were
    measured on 100,000 nodes with 2,000,000 arcs and are good to a factor of two. Weights of arcs
    add their attributes to that, and messages of :math:`R` relations take :math:`R / 3` times as
    long again, as measured with 3 of them. With :math:`C`
    classes, logits and what is derived from them take about :math:`32 C N` bytes more.
    """
    hops, nodes, arcs = options.get("hops", 0), problem.nodes, problem.arcs.shape[1] * sees_graph
    # Each map of fsgnn takes its steps by itself, on two graphs.
    layers = hops * (hops + 1) if hops else options.get("num_layers", 1)
    channels, graphs = layers * options.get("hidden_channels", 1), 2 if hops else 1
    epoch = channels * (5e-9 * arcs + (3e-8 if sees_graph else 1e-8) * nodes)
    held = 200 * graphs * arcs + (40 * channels + 32 * problem.classes) * nodes
    if options.get("extras") == "structure":
        held += structure_bytes(nodes, arcs)
    if options.get("edges") == "weights":
        held += 16 * len(problem.described) * arcs
    elif options.get("edges") == "relations":
        relations = len(relations_of(problem.described))
        epoch *= 1 + relations / 3
        held += 200 * arcs + 16 * relations * options.get("hidden_channels", 1) * nodes
    seconds = 1e-6 * graphs * arcs + _FEWEST * epoch / torch.get_num_threads()
    return Cost(seconds, held + kept_bytes(problem))
