"""Why a fitted portfolio gave a node its class or its number."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import torch
from numpy.typing import NDArray

from memohop.errors import UsageError
from memohop.explain._contributions import memory_shares, reasons, summed
from memohop.fit import Component, Feature, Inputs, Network, off_curve, plain_model
from memohop.networks.memory import MemoryNetwork
from memohop.pyg import Data
from memohop.training.task import make_inputs

if TYPE_CHECKING:
    from memohop.fit import GraphEstimator

NEIGHBOURS = 20
"""Neighbours, at most, that are left out in turn, labelled ones first: each takes a prediction."""
_ARCS = 1_000_000  # of the largest graph for which this is done


@dataclass(frozen=True)
class NeighbourEffect:
    """The effect of a neighbour on the prediction."""

    id: Any
    label: Any  # None if it was not learned from
    # By how much the probability of the predicted class, or the number, is higher with it than
    # without its arcs; NaN if that was not tried.
    effect: float
    memory: float  # share in the margin of the networks with memory; NaN without any


@dataclass(frozen=True)
class NodeReasons:
    """Why a node was given its class or its number."""

    id: Any
    label: Any  # None if it was not learned from
    predicted: Any
    probability: float  # NaN for a number
    runner_up: Any  # the next best class; None for a number
    runner_up_probability: float
    reasons: Mapping[Feature, float]  # contributions to the margin or the number, largest first
    neighbours: tuple[NeighbourEffect, ...]  # the largest effect first
    degree: int
    tried: int  # how many neighbours were left out in turn


def index_of(node: Any, ids: list[Any]) -> int:
    """The row of the node with this id."""
    names = list(map(str, ids))
    if str(node) not in names:
        some = ", ".join(names[:3])
        raise UsageError(f"there is no node named {str(node)!r}; ids of this graph are {some}, ...")
    return names.index(str(node))


def has_memory(component: Component) -> bool:
    """Whether it is networks with memory."""
    first = plain_model(component.models[0])
    return isinstance(first, Network) and first.model.endswith("+mmp")


def memory_networks(component: Component, graph: Inputs) -> tuple[list[MemoryNetwork], Data]:
    """The networks with memory of a component, and the graph as they take it."""
    plain = (off_curve(model, graph) for model in component.models)
    ready = [cast("Network", model).ready(of_model) for model, of_model in plain]
    return [cast("MemoryNetwork", network) for network, _ in ready], ready[0][1]


def node_reasons(
    estimator: GraphEstimator, index: int, names: list[str], look: Callable[[], None]
) -> NodeReasons:
    """Why a node of the graph of ``fit`` was given its class or its number.

    ``names`` are those of the features, and ``look`` is called after each step.
    """
    graph, components = estimator.own_graph(), estimator.model_.components
    said = estimator.model_.outputs(graph, np.array([index]))[0]
    look()
    ids, numbers = estimator.ids_.tolist(), len(said) == 1
    classes = None if numbers else estimator.classes_.tolist()
    first, *others = np.argsort(-said, kind="stable").tolist()
    margin = np.zeros(len(said))
    margin[first], margin[others[:1]] = 1, -1

    def named(feature: Feature) -> Feature:
        source, node = feature
        return Feature("rows", str(ids[int(node)])) if source == "rows" and node else feature

    total = summed(
        (named(feature), value * component.weight / len(component.models))
        for component in components
        for model in component.models
        for feature, value in reasons(model, graph, names, index, margin).items()
    )

    def label(node: int) -> Any:
        value = graph.y[node]
        if classes is None:
            return None if np.isnan(value) else float(value)
        return None if value < 0 else classes[value]

    near = graph.neighbourhood.both[[index]].indices
    tried = sorted(near.tolist(), key=lambda other: label(other) is None)[:NEIGHBOURS]
    if graph.arcs.shape[1] > _ARCS:
        tried = []
    effects = {}
    for other in tried:
        without = estimator.model_.outputs(_apart(graph, index, other), np.array([index]))[0]
        effects[other] = float(said[first] - without[first])
        look()
    shares = np.full(graph.nodes, np.nan)
    if memory := [component for component in components if has_memory(component)]:
        of_parts = [_mean_shares(component, graph, index, margin) for component in memory]
        shares = np.average(of_parts, axis=0, weights=[component.weight for component in memory])
    neighbours = [
        NeighbourEffect(ids[j], label(j), effects.get(j, np.nan), float(shares[j]))
        for j in sorted(near.tolist())
    ]
    by_size = sorted(total.items(), key=lambda item: -abs(item[1]))
    return NodeReasons(
        id=ids[index],
        label=label(index),
        predicted=float(said[0]) if classes is None else classes[first],
        probability=np.nan if numbers else float(said[first]),
        runner_up=None if classes is None else classes[others[0]],
        runner_up_probability=np.nan if numbers else float(said[others[0]]),
        reasons={feature: value for feature, value in by_size if value},
        neighbours=tuple(sorted(neighbours, key=_importance, reverse=True)),
        degree=len(near),
        tried=len(tried),
    )


def _importance(neighbour: NeighbourEffect) -> list[float]:
    return np.abs(np.nan_to_num([neighbour.effect, neighbour.memory])).tolist()


def _apart(graph: Inputs, index: int, other: int) -> Inputs:
    """The graph without the arcs between two nodes."""
    ends = np.array([[index], [other]])
    between = (graph.arcs == ends).all(axis=0) | (graph.arcs == ends[::-1]).all(axis=0)
    weights = None if graph.weights is None else graph.weights[~between]
    attributes = None if graph.attributes is None else graph.attributes[~between]
    return replace(
        graph,
        arcs=graph.arcs[:, ~between],
        weights=weights,
        attributes=attributes,
        directed=graph.neighbourhood.directed,
    )


def _mean_shares(
    component: Component, graph: Inputs, index: int, margin: NDArray[np.float64]
) -> NDArray[np.float64]:
    """The share of each node's memory in the margin, as a mean over networks."""
    networks, data = memory_networks(component, graph)
    inputs = make_inputs(data, networks[0], torch.device("cpu"))
    shares = [memory_shares(network, *inputs, index, margin) for network in networks]
    return np.mean(shares, axis=0, dtype=np.float64)
