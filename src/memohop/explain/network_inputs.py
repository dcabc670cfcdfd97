r"""The contribution of each input of a network to its logits, by derivatives.

An input value :math:`x_{kj}` of node :math:`k` contributes, to the first order,

.. math::
    \frac{\partial z}{\partial x_{kj}}\,(x_{kj} - \bar{x}_j)

to a sum :math:`z` of logits: its derivative times its distance from the mean of its column, as in a
linear model, where this is exact. Columns enter a network through linear maps
:math:`\mathbf{Z}_m = \mathbf{X}\mathbf{W}_m`, so the derivatives are
:math:`\sum_m (\partial z / \partial \mathbf{Z}_m)\mathbf{W}_m^\top`, and no sparse matrix is
filled. A known label, and a row of weights of a node, contribute their derivatives times
themselves: without them they would be 0.

One pass backwards gives the contributions of all inputs to the margin of one node, so those of its
own columns can be told from those of the nodes around it. For the whole graph, :math:`z` is the sum
of a class's logits over all nodes, less the mean of all classes, and the size of an input is the
mean of its absolute contributions over nodes :math:`k` and classes. What a node does to itself and
to others is added up before that, so it may cancel.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from scipy import sparse
from torch import Tensor

from memohop.fit.candidates.network import Network
from memohop.fit.problem import Inputs
from memohop.fit.views import Feature
from memohop.networks.memory import MemoryNetwork
from memohop.nn.features import FeatureLinear
from memohop.training.task import make_inputs

_SENDERS = 2000  # nodes over which contributions are averaged
_CLASSES = 10  # over which they are averaged: those that are predicted most often
_AT_ONCE = 500  # rows of columns that are taken at once

ANY_LABEL = Feature("labels", "some hops")
ANY_ROW = Feature("rows", "")


def network_sizes(part: Network, inputs: Inputs, columns: Sequence[str]) -> dict[Feature, float]:
    """The mean size of the contributions of every input, over nodes and classes.

    Args:
        part: The network.
        inputs: The graph.
        columns: The names of the columns of ``inputs.x``.
    """
    run = _Run.of(part, inputs, columns)
    rows = np.unique(np.linspace(0, inputs.nodes - 1, _SENDERS).astype(int))
    directions = list(_between_classes(run.logits))
    total: dict[Feature, float] = defaultdict(float)
    for direction in directions:
        slopes = run.slopes(direction.sum())
        sizes = sum(np.abs(block).sum(axis=0) for _, block in run.of_columns(slopes, rows))
        for feature, size in zip(run.names, sizes, strict=True):
            total[feature] += float(size)
        for feature, found in run.of_others(slopes):
            total[feature] += float(np.abs(found[rows]).sum())
    count = len(rows) * len(directions)
    return {feature: run.spread * size / count for feature, size in total.items()}


def network_reasons(
    part: Network,
    inputs: Inputs,
    columns: Sequence[str],
    index: int,
    first: int,
    second: int | None,
) -> dict[Feature, float]:
    """The contributions of every input to the margin of two classes at a node, or to its number.

    Args:
        part: The network.
        inputs: The graph.
        columns: The names of the columns of ``inputs.x``.
        index: The node.
        first: The class that a positive contribution supports.
        second: The class that it opposes; None for a number.
    """
    run = _Run.of(part, inputs, columns)
    margin = run.logits[index, first]
    slopes = run.slopes(margin if second is None else margin - run.logits[index, second])
    reached = torch.stack([slope.abs().sum(dim=1) for slope in slopes.maps]).sum(dim=0) > 0
    reached[index] = True
    total: dict[Feature, float] = defaultdict(float)
    for rows, block in run.of_columns(slopes, reached.nonzero().flatten().numpy()):
        own = rows == index
        for feature, here, around in zip(
            run.names, block[own].sum(axis=0), block[~own].sum(axis=0), strict=True
        ):
            source = "own" if feature.source == "network" else feature.source
            total[Feature(source, feature.name)] += float(here)
            total[Feature("around", feature.name)] += float(around)
    for feature, found in run.of_others(slopes):
        if feature == ANY_LABEL:
            total[feature] += float(found.sum())
            continue
        for node in np.flatnonzero(found).tolist():
            total[Feature("rows", f"{node}")] += float(found[node])
    return {feature: run.spread * value for feature, value in total.items()}


@dataclass(frozen=True, eq=False)
class _Slopes:
    """Derivatives of a sum of logits: by the results of the first maps, labels, and rows."""

    maps: tuple[Tensor, ...]
    others: tuple[Tensor, ...]


@dataclass(frozen=True, eq=False)
class _Run:
    """A forward pass that can be taken backwards.

    Attributes:
        logits: ``[nodes, outputs]``.
        x: The features as the network takes them, ``[nodes, features]``, dense or sparse.
        names: The meaning of each feature.
        maps: The first linear maps with their results, ``[nodes, channels]``.
        others: Known labels and rows of nodes, each ``[nodes, channels]``.
        spread: The standard deviation of the numbers that it learned to predict; 1 for classes.
    """

    logits: Tensor
    x: Any
    names: list[Feature]
    maps: list[tuple[FeatureLinear, Tensor]]
    others: dict[Feature, Tensor]
    spread: float

    @classmethod
    def of(cls, part: Network, inputs: Inputs, columns: Sequence[str]) -> _Run:
        network, data = part.ready(inputs)
        names = [Feature("network", name) for name in columns]
        if data.x.shape[1] > len(names):
            names += [Feature("degree", name) for name in inputs.neighbourhood.degrees()[1]]
        maps: list[tuple[FeatureLinear, Tensor]] = []
        hooks = [
            module.register_forward_hook(lambda module, _, found: maps.append((module, found)))
            for module in network.modules()
            if isinstance(module, FeatureLinear)
        ]
        others: dict[Feature, Tensor] = {}
        for name in network.per_node:
            others[ANY_ROW] = network.get_parameter(name)
        if isinstance(network, MemoryNetwork) and network.label_rate is not None:
            others[ANY_LABEL] = network.known.requires_grad_()
        with torch.enable_grad():
            output = network(*make_inputs(data, network, torch.device("cpu")))
        for hook in hooks:
            hook.remove()
        logits = output[0] if isinstance(output, tuple) else output
        x = data.x if sparse.issparse(data.x) else data.x.numpy()
        return cls(logits, x, names, maps, others, float(part.standard.spread))

    def slopes(self, total: Tensor) -> _Slopes:
        """The derivatives of a sum of logits."""
        leaves = [*(found for _, found in self.maps), *self.others.values()]
        found = torch.autograd.grad(total, leaves, retain_graph=True, allow_unused=True)
        filled = [
            torch.zeros_like(leaf) if slope is None else slope
            for leaf, slope in zip(leaves, found, strict=True)
        ]
        return _Slopes(tuple(filled[: len(self.maps)]), tuple(filled[len(self.maps) :]))

    def of_columns(
        self, slopes: _Slopes, rows: NDArray[np.int64]
    ) -> Iterator[tuple[NDArray[np.int64], NDArray[np.float32]]]:
        """Some rows at a time, with the contributions of their columns, ``[rows, features]``."""
        mean = np.asarray(self.x.mean(axis=0)).ravel()
        for some in np.array_split(rows, -(-len(rows) // _AT_ONCE)):
            block = self.x[some].toarray() if sparse.issparse(self.x) else self.x[some]
            chosen = torch.from_numpy(some)
            slope = sum(
                slope[chosen] @ linear.weight.detach().T
                for (linear, _), slope in zip(self.maps, slopes.maps, strict=True)
            )
            yield some, np.asarray(slope) * (block - mean)

    def of_others(self, slopes: _Slopes) -> Iterator[tuple[Feature, NDArray[np.float32]]]:
        """Labels and rows with the contribution of each node's, ``[nodes]``."""
        for (feature, values), slope in zip(self.others.items(), slopes.others, strict=True):
            yield feature, (slope * values.detach()).sum(dim=1).numpy()


def _between_classes(logits: Tensor) -> Iterator[Tensor]:
    """Each output of all nodes, ``[nodes]``, without what all classes have in common."""
    outputs = logits.shape[1]
    if outputs == 1:
        yield logits[:, 0]
    elif outputs == 2:
        yield logits[:, 1] - logits[:, 0]
    else:
        often = torch.bincount(logits.argmax(dim=1), minlength=outputs)
        for number in often.argsort(descending=True, stable=True)[:_CLASSES].tolist():
            yield logits[:, number] - logits.mean(dim=1)
