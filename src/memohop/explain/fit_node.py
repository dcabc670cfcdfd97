"""Why a fitted portfolio gave a node its class or its number."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from numpy.typing import NDArray

from memohop.explain.contributions import of_node
from memohop.explain.network_inputs import network_reasons
from memohop.explain.node import node_shares
from memohop.fit.candidates.linear import Linear
from memohop.fit.candidates.network import Network
from memohop.fit.candidates.trees import Trees
from memohop.fit.ensemble import Component
from memohop.fit.problem import Inputs
from memohop.fit.views import Feature

if TYPE_CHECKING:
    from memohop.fit.estimator import GraphEstimator
    from memohop.networks.memory import MemoryNetwork

NEIGHBOURS = 20
"""Neighbours, at most, that are left out in turn: each takes another prediction."""
_ARCS = 1_000_000  # of the largest graph for which this is done


@dataclass(frozen=True)
class Reason:
    """The contribution of a node's feature to the margin, or to the number."""

    feature: Feature
    value: float


@dataclass(frozen=True)
class NeighbourEffect:
    """The effect of a neighbour on the prediction.

    Attributes:
        id: Its name.
        label: Its label, if it was learned from; None otherwise.
        effect: By how much the probability of the predicted class, or the number, is higher with
            it than without its arcs; NaN if that was not tried.
        memory: The share of its memory in the margin of the networks with memory; NaN without any.
    """

    id: Any
    label: Any
    effect: float
    memory: float


@dataclass(frozen=True)
class NodeReasons:
    """Why a node was given its class or its number.

    Attributes:
        id: Its name.
        label: Its label, if it was learned from; None otherwise.
        predicted: The class, or the number.
        probability: Of that class; NaN for a number.
        runner_up: The next best class; None for a number.
        runner_up_probability: Of that class.
        reasons: Contributions of the features, the largest first.
        neighbours: The largest effect first.
        degree: The number of its neighbours.
        tried: How many of them were left out in turn.
    """

    id: Any
    label: Any
    predicted: Any
    probability: float
    runner_up: Any
    runner_up_probability: float
    reasons: tuple[Reason, ...]
    neighbours: tuple[NeighbourEffect, ...]
    degree: int
    tried: int


def node_reasons(
    estimator: GraphEstimator,
    index: int,
    memory: list[Component],
    names: list[str],
    look: Callable[[], None] = lambda: None,
) -> NodeReasons:
    """Why a node of the graph of ``fit`` was given its class or its number.

    Args:
        estimator: The fitted classifier or regressor.
        index: The node.
        memory: The parts that are networks with memory.
        names: The names of the features.
        look: Called after each step.
    """
    graph = estimator.own_graph()
    said = estimator.model_.outputs(graph, np.array([index]))[0]
    look()
    numbers = len(said) == 1
    first, second = (0, None) if numbers else np.argsort(-said, kind="stable")[:2].tolist()
    total: dict[Feature, float] = defaultdict(float)
    for component in estimator.model_.components:
        for model in component.models:
            if isinstance(model, Network):
                of_inputs = network_reasons(model, graph, names, index, first, second)
                for feature, value in of_inputs.items():
                    total[feature] += value * component.weight / len(component.models)
                continue
            part = cast("Trees | Linear", model)
            found = of_node(part, graph, index, first, second)
            found *= component.weight / len(component.models)
            for feature, value in zip(part.view.names(graph, names), found, strict=True):
                total[feature] += float(value)
    ids, classes = estimator.ids_.tolist(), None if numbers else estimator.classes_.tolist()
    reasons = [Reason(_named(feature, ids), value) for feature, value in total.items() if value]
    near = graph.neighbourhood.both[[index]].indices

    def label(node: int) -> Any:
        value = graph.y[node]
        if classes is None:
            return None if np.isnan(value) else float(value)
        return None if value < 0 else classes[value]

    tried = _to_leave_out(graph, near)
    effects = _effects(estimator, graph, index, first, tried, float(said[first]), look)
    shares = _memory_shares(memory, graph, index, first, second)
    everybody = sorted({*near.tolist(), *shares} - {index})
    neighbours = [
        NeighbourEffect(
            ids[j], label(j), effects.get(j, np.nan), shares.get(j, 0.0 if shares else np.nan)
        )
        for j in everybody
    ]
    return NodeReasons(
        id=ids[index],
        label=label(index),
        predicted=float(said[0]) if classes is None else classes[first],
        probability=np.nan if numbers else float(said[first]),
        runner_up=None if classes is None else classes[second],
        runner_up_probability=np.nan if second is None else float(said[second]),
        reasons=tuple(sorted(reasons, key=lambda one: -abs(one.value))),
        neighbours=tuple(sorted(neighbours, key=_importance, reverse=True)),
        degree=len(near),
        tried=len(tried),
    )


def _named(feature: Feature, ids: list[Any]) -> Feature:
    """The row of a node in the graph, by its id."""
    return Feature("rows", str(ids[int(feature.name)])) if feature.source == "rows" else feature


def _importance(one: NeighbourEffect) -> list[float]:
    return np.abs(np.nan_to_num([one.effect, one.memory])).tolist()


def _to_leave_out(graph: Inputs, near: NDArray[np.integer[Any]]) -> list[int]:
    """The neighbours to leave out in turn: those with a label first; none in a huge graph."""
    if graph.arcs.shape[1] > _ARCS:
        return []
    known = ~np.isnan(graph.y[near]) if graph.y.dtype.kind == "f" else graph.y[near] >= 0
    return near[np.argsort(~known, kind="stable")][:NEIGHBOURS].tolist()


def _effects(
    estimator: GraphEstimator,
    graph: Inputs,
    index: int,
    first: int,
    tried: list[int],
    whole: float,
    look: Callable[[], None],
) -> dict[int, float]:
    """How much higher the first output of a node is with a neighbour than without its arcs."""
    source, target = graph.arcs
    found, directed = {}, graph.neighbourhood.directed
    for other in tried:
        between = ((source == index) & (target == other)) | ((source == other) & (target == index))
        weights = None if graph.weights is None else graph.weights[~between]
        without = replace(graph, arcs=graph.arcs[:, ~between], weights=weights, directed=directed)
        said = estimator.model_.outputs(without, np.array([index]))[0]
        found[other] = float(whole - said[first])
        look()
    return found


def _memory_shares(
    memory: list[Component], graph: Inputs, index: int, first: int, second: int | None
) -> dict[int, float]:
    """The shares of neighbours' memories in the margin, by node."""
    total: dict[int, float] = defaultdict(float)
    weight = sum(component.weight for component in memory)
    for component in memory:
        runs = [cast("Network", model).ready(graph) for model in component.models]
        networks = [cast("MemoryNetwork", network) for network, _ in runs]
        senders, shares = node_shares(networks, runs[0][1], index)
        found = shares.neighbours.sum(0)
        margin = found[:, first] - (0 if second is None else found[:, second])
        for sender, share in zip(senders.tolist(), margin.tolist(), strict=True):
            total[sender] += share * component.weight / weight
    return dict(total)
