r"""What features contribute to the logits of a model, or to its number.

For boosted trees these are LightGBM's own contributions. In a linear model, feature :math:`j` of
node :math:`i` adds :math:`w_{jc}\,(x_{ij} - \bar{x}_j)` to the logit of class :math:`c`: like those
of trees, contributions are differences from the mean over all nodes. Adding the same number to all
logits changes no probability: only differences between classes count here.

Extra trees and nearest neighbours have no logits that are sums. Their contributions are what those
of a linear model are as well: by how much the logits, or the number, change where :math:`x_{ij}`
takes the place of :math:`\bar{x}_j`. But they do not add up to a prediction: of two features that
say the same, neither may seem to count.

A model that learned numbers on a curve (:mod:`memohop.fit._curve`) says heights there, so their
contributions are multiplied by the slope of the numbers at the height that it says.

An input value :math:`x_{kj}` of node :math:`k` of a network contributes, to the first order,

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

With its gates held at their values, the logits of a network with memory are a sum that can be taken
apart exactly:

.. math::
    \mathbf{h}_i^L = \Big(\prod_l \alpha_h^l\Big)\,\mathbf{h}_i^0 + \sum_l
        \Big(\prod_{k>l} \alpha_h^k\Big)\,\alpha_m^l
        \Big(\sum_j a_{ij}\,\mathbf{c}_j^{l-1}\mathbf{W}^l + \mathbf{b}^l\Big)

times the difference of the classifier's weights for two classes. Each neighbour's memory
:math:`\mathbf{c}_j^{l-1}` thus has a share of the margin in each round: as the margin is linear in
it, its derivative times itself. Layer normalisation of a message divides by a standard deviation,
which is held like the gates. Nothing is approximated, but without a neighbour the gates and
standard deviations would change as well, which the shares ignore.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Iterable, Iterator, Sequence
from typing import Any, TypeAlias, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray
from scipy import sparse
from torch import Tensor

from memohop.fit import Feature, Inputs, Linear, Matrix, Network, OnCurve, Trees, off_curve
from memohop.networks.memory import MemoryNetwork, Normalised
from memohop.nn import MMP, FeatureLinear, keep_and_absorb
from memohop.training.task import make_inputs

Numbers: TypeAlias = NDArray[np.float64]
Contributions: TypeAlias = dict[Feature, float]
Key = TypeVar("Key", bound=Hashable)

ANY_LABEL = Feature("labels", "some hops")
ANY_ROW = Feature("rows", "")

_LOOKED_AT = 400  # nodes, at most, over which the contributions of trees are averaged
_FEWEST = 30  # of them, however many trees there are
_WORK = 400_000  # nodes times trees: some seconds
_TREES_AT_ONCE = 50  # nodes
_CHANGES = 20_000  # of single values, in which contributions are differences: some seconds
_LEAST = 1e-6  # probability of which a logarithm is taken
_SENDERS = 2000  # nodes over which the contributions in networks are averaged
_CLASSES = 10  # over which they are averaged: those that are predicted most often
_AT_ONCE = 500  # rows of columns that are taken at once


def sizes(part: Any, inputs: Inputs, columns: Sequence[str]) -> Contributions:
    """The mean absolute contribution of each feature of a part, over nodes and classes.

    ``columns`` are the names of those of ``inputs.x``. Contributions of trees and in networks take
    long to compute, so some nodes stand for all, or fewer if there are very many trees, as with
    many classes.
    """
    if isinstance(part, OnCurve):
        slope = float(part.slopes(inputs, _spread_out(inputs.nodes, _LOOKED_AT)).mean())
        of_heights = sizes(*off_curve(part, inputs), columns)
        return {feature: slope * size for feature, size in of_heights.items()}
    if isinstance(part, Network):
        return _sizes_in_network(part, inputs, columns)
    features = part.view.features(inputs, inputs.y)
    if isinstance(part, Linear):
        weight = _without_common(part.weight.astype(np.float64))
        means = np.abs(weight).mean(axis=1) * _mean_deviations(features)
    elif not isinstance(part, Trees):
        count = int(np.clip(_CHANGES // features.shape[1], _FEWEST // 3, _LOOKED_AT))
        rows = _spread_out(inputs.nodes, count)
        apart = (_without_common(_differences(part, features, row)) for row in rows)
        means = sum(np.abs(each).mean(axis=1) for each in apart) / len(rows)
    else:
        count = int(np.clip(_WORK // part.count, _FEWEST, _LOOKED_AT))
        rows, means = _spread_out(inputs.nodes, count), np.zeros(features.shape[1])
        for some in np.array_split(rows, -(-len(rows) // _TREES_AT_ONCE)):
            apart = _without_common(part.contributions(features[some]))
            means += np.abs(apart).mean(axis=2).sum(axis=0) / len(rows)
    return summed(zip(part.view.names(inputs, columns), means, strict=True))


def reasons(
    part: Any, inputs: Inputs, columns: Sequence[str], index: int, margin: Numbers
) -> Contributions:
    """The contribution of each feature to the margin of two classes at a node, or to its number.

    ``margin`` is what each output counts: 1 for the class that a positive contribution supports,
    -1 for the class that it opposes, 0 for others; 1 for a number.
    """
    if isinstance(part, OnCurve):
        slope = part.slopes(inputs, np.array([index]))[0].astype(np.float64)
        return reasons(*off_curve(part, inputs), columns, index, slope * margin)
    if isinstance(part, Network):
        return _reasons_of_network(part, inputs, columns, index, margin)
    features = part.view.features(inputs, inputs.y)
    if isinstance(part, Linear):
        apart = _dense(features[[index]])[0] - np.asarray(features.mean(axis=0)).ravel()
        logits = apart[:, None] * part.weight.astype(np.float64)
    elif not isinstance(part, Trees):
        logits = _differences(part, features, index)
    else:
        logits = part.contributions(features[[index]])[0]
        if part.view.classes == 2:
            logits = np.hstack([-logits, logits]) / 2
    return summed(zip(part.view.names(inputs, columns), logits @ margin, strict=True))


def _differences(part: Any, features: Matrix, row: int) -> Numbers:
    """By how much each feature of a row changes the outputs from its mean, ``[features, outputs]``.

    These are logarithms of probabilities, or numbers.
    """
    own, mean = _dense(features[[row]])[0], np.asarray(features.mean(axis=0)).ravel()
    changed, base = np.flatnonzero(own != mean), _of_part(part, own[None])
    differences = np.zeros((len(own), base.shape[1]))
    for some in np.array_split(changed, -(-len(changed) // _AT_ONCE) or 1):
        others = np.repeat(own[None], len(some), axis=0)
        others[np.arange(len(some)), some] = mean[some]
        differences[some] = base - _of_part(part, others)
    return differences


def _of_part(part: Any, features: Matrix) -> Numbers:
    said = part.of_features(features).astype(np.float64)
    return np.log(np.maximum(said, _LEAST)) if part.view.classes else said


def summed(values: Iterable[tuple[Key, float]]) -> dict[Key, float]:
    """The values of each name added up."""
    total: dict[Key, float] = defaultdict(float)
    for name, value in values:
        total[name] += float(value)
    return total


def _dense(x: Matrix) -> NDArray[Any]:
    return x.toarray() if sparse.issparse(x) else x


def _spread_out(nodes: int, count: int) -> NDArray[np.int64]:
    """Some of the nodes, at equal distances."""
    return np.unique(np.linspace(0, nodes - 1, count).astype(int))


def _without_common(logits: Any) -> Any:
    """Logits, or contributions to them, ``[..., outputs]``, without what all classes share."""
    outputs = logits.shape[-1]
    if outputs == 1:
        return logits
    if outputs == 2:
        return logits[..., 1:] - logits[..., :1]
    return logits - logits.mean(-1)[..., None]


def _mean_deviations(features: Matrix) -> Numbers:
    """The mean distance of each feature from its mean."""
    mean = np.asarray(features.mean(axis=0), dtype=np.float64).ravel()
    if not sparse.issparse(features):
        return np.abs(features - mean).mean(axis=0)
    columns = sparse.csc_array(features)
    stored = np.diff(columns.indptr)
    apart = np.abs(columns.data - np.repeat(mean, stored))
    sums = np.bincount(np.repeat(np.arange(len(mean)), stored), apart, minlength=len(mean))
    nodes = features.shape[0]
    return (sums + (nodes - stored) * np.abs(mean)) / nodes


def _sizes_in_network(part: Network, inputs: Inputs, columns: Sequence[str]) -> Contributions:
    run = _ForwardPass(part, inputs, columns)
    rows = _spread_out(inputs.nodes, _SENDERS)
    often = torch.bincount(run.logits.argmax(dim=1), minlength=run.logits.shape[1])
    outputs = _without_common(run.logits)
    if outputs.shape[1] > 1:
        outputs = outputs[:, often.argsort(descending=True, stable=True)[:_CLASSES]]

    def absolute() -> Iterator[tuple[Feature, float]]:
        for output in outputs.unbind(1):
            slopes = run.slopes(output.sum())
            sums = sum(np.abs(block).sum(axis=0) for _, block in run.of_columns(slopes, rows))
            yield from zip(run.names, sums, strict=True)
            for feature, values in run.of_others(slopes):
                yield feature, np.abs(values[rows]).sum()

    count = len(rows) * outputs.shape[1]
    return {feature: run.spread * size / count for feature, size in summed(absolute()).items()}


def _reasons_of_network(
    part: Network, inputs: Inputs, columns: Sequence[str], index: int, margin: Numbers
) -> Contributions:
    run = _ForwardPass(part, inputs, columns)
    slopes = run.slopes(run.logits[index] @ torch.from_numpy(margin).to(run.logits.dtype))
    of_maps = [slope.abs().sum(dim=1) for slope in slopes[: len(run.maps)]]
    reached = torch.stack(of_maps).sum(dim=0) > 0
    reached[index] = True

    def named() -> Iterator[tuple[Feature, float]]:
        for rows, block in run.of_columns(slopes, reached.nonzero().flatten().numpy()):
            own = rows == index
            sums = zip(run.names, block[own].sum(axis=0), block[~own].sum(axis=0), strict=True)
            for (source, name), here, around in sums:
                yield Feature("own" if source == "network" else source, name), here
                yield Feature("around", name), around
        for feature, values in run.of_others(slopes):
            if feature == ANY_LABEL:
                yield feature, values.sum()
            else:
                for node in np.flatnonzero(values).tolist():
                    yield Feature("rows", f"{node}"), values[node]

    return {feature: run.spread * value for feature, value in summed(named()).items()}


class _ForwardPass:
    """A forward pass that can be taken backwards, from its ``logits``, ``[nodes, outputs]``.

    It leads to the first linear maps, each with its result, ``[nodes, channels]``, and to the
    others: known labels and rows of nodes. The spread is the standard deviation of the numbers that
    the network learned to predict, 1 for classes.
    """

    def __init__(self, part: Network, inputs: Inputs, columns: Sequence[str]) -> None:
        network, data = part.ready(inputs)
        self.spread = float(part.standard.spread)
        self.names = [Feature("network", name) for name in columns[: data.x.shape[1]]]
        if data.x.shape[1] > len(columns):
            self.names += [
                Feature("degree", f"{way.named(())}degree") for way in inputs.neighbourhood.ways
            ]
        self.names += [Feature("structure", name) for name in part.structure_names(inputs)]
        self.maps: list[tuple[FeatureLinear, Tensor]] = []
        hooks = [
            module.register_forward_hook(lambda module, _, out: self.maps.append((module, out)))
            for module in network.modules()
            if isinstance(module, FeatureLinear)
        ]
        self.others: dict[Feature, Tensor] = {}
        for name in network.per_node:
            self.others[ANY_ROW] = network.get_parameter(name)
        if isinstance(network, MemoryNetwork) and network.label_rate is not None:
            self.others[ANY_LABEL] = network.known.requires_grad_()
        with torch.enable_grad():
            output = network(*make_inputs(data, network, torch.device("cpu")))
        for hook in hooks:
            hook.remove()
        self.logits: Tensor = output[0] if isinstance(output, tuple) else output
        self._x: Matrix = data.x if sparse.issparse(data.x) else data.x.numpy()

    def slopes(self, total: Tensor) -> list[Tensor]:
        """The derivatives of a sum of logits by the results of the maps, and by the others."""
        leaves = [*(result for _, result in self.maps), *self.others.values()]
        slopes = torch.autograd.grad(
            total, leaves, retain_graph=True, allow_unused=True, materialize_grads=True
        )
        return list(slopes)

    def of_columns(
        self, slopes: list[Tensor], rows: NDArray[np.int64]
    ) -> Iterator[tuple[NDArray[np.int64], NDArray[np.float32]]]:
        """Some rows at a time, with the contributions of their columns, ``[rows, features]``."""
        mean = np.asarray(self._x.mean(axis=0)).ravel()
        for some in np.array_split(rows, -(-len(rows) // _AT_ONCE)):
            chosen = torch.from_numpy(some)
            slope = sum(
                slope[chosen] @ linear.weight.detach().T
                for (linear, _), slope in zip(self.maps, slopes, strict=False)
            )
            yield some, np.asarray(slope) * (_dense(self._x[some]) - mean)

    def of_others(self, slopes: list[Tensor]) -> Iterator[tuple[Feature, NDArray[np.float32]]]:
        """Labels and rows with the contribution of each node's, ``[nodes]``."""
        for (feature, values), slope in zip(
            self.others.items(), slopes[len(self.maps) :], strict=True
        ):
            yield feature, (slope * values.detach()).sum(dim=1).numpy()


def memory_shares(
    network: MemoryNetwork, x: Any, graph: Any, index: int, margin: Numbers
) -> NDArray[np.float32]:
    """The share of each node's memory in the margin of two classes at a node, or in its number.

    The network, in evaluation mode, is one of graph convolutions; ``margin`` is as in
    :func:`reasons`.
    """
    with torch.no_grad():
        begun, *rounds = network.pass_messages(x, graph)
    sent = [begun.memory, *(each.memory for each in rounds[:-1])]
    memories = [memory.detach().requires_grad_() for memory in sent]
    states = [begun.hidden]
    with torch.enable_grad():
        for mmp, (_, _, gates), memory in zip(network.rounds, rounds, memories, strict=True):
            assert isinstance(mmp, MMP)
            assert gates is not None
            message = _message(mmp.conv, memory, graph)
            states.append(keep_and_absorb(gates, states[-1], message))
        logits = network.classify(states)[index]
        total = logits @ torch.from_numpy(margin).to(logits.dtype)
    slopes = torch.autograd.grad(total, memories)
    both = zip(slopes, memories, strict=True)
    shares = torch.stack([(slope * memory.detach()).sum(dim=1) for slope, memory in both])
    return shares.sum(dim=0).numpy()


def _message(conv: Any, memory: Tensor, graph: Any) -> Tensor:
    """The message, with the standard deviation of its normalisation held at its value."""
    if not isinstance(conv, Normalised):
        return conv(memory, graph)
    message, norm = conv.conv(memory, graph), conv.norm
    deviation = (message.var(dim=-1, correction=0, keepdim=True) + norm.eps).sqrt().detach()
    return (message - message.mean(dim=-1, keepdim=True)) * norm.weight / deviation + norm.bias
