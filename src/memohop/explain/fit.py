"""The basis of a fitted portfolio's decisions: columns, neighbours and gates."""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import torch
from numpy.typing import NDArray

from memohop.explain.contributions import mean_sizes
from memohop.explain.fit_node import NEIGHBOURS, NodeReasons, node_reasons
from memohop.explain.gates import GateReadout, gate_readout
from memohop.explain.network_inputs import network_sizes
from memohop.explain.node import index_of
from memohop.fit.candidates.family import Setting
from memohop.fit.candidates.linear import Linear
from memohop.fit.candidates.network import Network
from memohop.fit.candidates.trees import Trees
from memohop.fit.ensemble import Component
from memohop.fit.problem import Inputs
from memohop.fit.record import FitRecord
from memohop.fit.views import Feature
from memohop.networks.memory import MemoryNetwork
from memohop.training.task import make_inputs

if TYPE_CHECKING:
    from memohop.fit.estimator import GraphEstimator

_COMBINED = "combinations of columns"
_OF_COLUMNS = ("own", "one hop", "two hops", "network")
_LEADING = 3


@dataclass(frozen=True)
class ColumnShare:
    """The influence of a column.

    Attributes:
        name: The column.
        leading: Its most influential feature; the column itself if it has one feature.
        own: The share of the node's own value.
        one_hop, two_hops: The shares of the means over neighbours, and over their neighbours.
        network: The share in networks, where own values and those of neighbours are together.
        share: Their sum; the shares of all features of a model add up to 1.
    """

    name: str
    leading: str
    own: float
    one_hop: float
    two_hops: float
    network: float
    share: float


@dataclass(frozen=True)
class ExplainedPart:
    """A part of the model, its weight, and the columns that count most in it."""

    setting: Setting
    weight: float
    leading: tuple[str, ...]


@dataclass(frozen=True, eq=False)
class FitExplanation:
    """The basis of a fitted model's decisions.

    Attributes:
        report: How it was made, and its scores.
        sources: The shares of the sources of all features, the largest first.
        columns: The shares of columns, the largest first.
        parts: The parts of the model.
        gates: The gates of the networks with memory; None without any.
        gates_weight: The weight of these networks.
        node: The explanation of one node; None if none was requested.

    Example:
        >>> import memohop
        >>> from memohop.explain import explain_fit
        >>> data = memohop.load("csbm", nodes=100, homophily=0.1)
        >>> model = memohop.GraphClassifier(models=["linear"], trials=1).fit(data, split=0)
        >>> found = explain_fit(model)
        >>> list(found.sources)  # features of the node itself, none of its neighbours
        ['own']
        >>> len(found.columns)
        64
    """

    report: FitRecord
    sources: Mapping[str, float]
    columns: tuple[ColumnShare, ...]
    parts: tuple[ExplainedPart, ...]
    gates: GateReadout | None
    gates_weight: float
    node: NodeReasons | None


def explain_fit(
    estimator: GraphEstimator,
    node: Any = None,
    *,
    progress: Callable[[float], None] = lambda share: None,
) -> FitExplanation:
    """Take a fitted ``GraphClassifier`` or ``GraphRegressor`` apart, on the graph of ``fit``.

    Args:
        estimator: The fitted classifier or regressor.
        node: The id of a node to explain; None for none.
        progress: Called with the share of the work that is done.

    Example:
        >>> import memohop
        >>> from memohop.explain import explain_fit
        >>> data = memohop.load("csbm", nodes=100, homophily=0.1)
        >>> model = memohop.GraphClassifier(models=["linear"], trials=1).fit(data, split=0)
        >>> explain_fit(model, node=17).node.id
        17
    """
    graph, components = estimator.own_graph(), estimator.model_.components
    index = None if node is None else index_of(node, estimator.ids_.tolist())
    memory = [one for one in components if has_memory(one)]
    names = _feature_names(estimator, graph)
    alone = [isinstance(one.models[0], Network) for one in components]  # its first stands for all
    steps = sum(1 if one else len(part.models) for one, part in zip(alone, components, strict=True))
    steps += 0 if index is None else 1 + NEIGHBOURS
    done = itertools.count(1)

    def look() -> None:
        progress(min(next(done) / steps, 1.0))

    counted = [_counted(one, graph, list(names), look) for one in components]
    sources, columns = _what_counts(counted, names)
    return FitExplanation(
        report=estimator.report_,
        sources=sources,
        columns=columns,
        parts=tuple(
            ExplainedPart(one.setting, one.weight, _leading(sizes, names))
            for one, sizes in zip(components, counted, strict=True)
        ),
        gates=_gates(graph, memory),
        gates_weight=sum(one.weight for one in memory),
        node=None if index is None else node_reasons(estimator, index, memory, list(names), look),
    )


def _feature_names(estimator: GraphEstimator, graph: Inputs) -> dict[str, str]:
    """The column of every feature, by the name of the feature."""
    if estimator.encoder_ is not None and estimator.encoder_.columns:
        columns = estimator.encoder_.columns
        return {name: column.name for column in columns for name in column.names()}
    given = getattr(estimator, "feature_names_in_", None)
    names = given if given is not None else [f"column {i}" for i in range(graph.x.shape[1])]
    return {str(name): str(name) for name in names}


def _counted(
    component: Component, graph: Inputs, columns: list[str], look: Callable[[], None]
) -> dict[Feature, float]:
    """The mean contribution of every feature of a part, times its weight.

    The first network stands for all of a part, which have learned from other nodes of the same.
    """
    total: dict[Feature, float] = defaultdict(float)
    first = component.models[0]
    if isinstance(first, Network):
        sizes = network_sizes(first, graph, columns)
        look()
        return {feature: component.weight * size for feature, size in sizes.items()}
    for model in component.models:
        part = cast("Trees | Linear", model)
        found = mean_sizes(part, graph) * component.weight / len(component.models)
        for feature, size in zip(part.view.names(graph, columns), found, strict=True):
            total[feature] += float(size)
        look()
    return total


def _leading(sizes: Mapping[Feature, float], column_of: Mapping[str, str]) -> tuple[str, ...]:
    """The columns that count most in a part."""
    total: dict[str, float] = defaultdict(float)
    for feature, size in sizes.items():
        if feature.source in _OF_COLUMNS and feature.name in column_of and size > 0:
            total[column_of[feature.name]] += size
    return tuple(sorted(total, key=lambda name: -total[name])[:_LEADING])


def _what_counts(
    counted: Sequence[Mapping[Feature, float]], column_of: Mapping[str, str]
) -> tuple[dict[str, float], tuple[ColumnShare, ...]]:
    """Mean contributions by source, as shares, and by column."""
    total: dict[Feature, float] = defaultdict(float)
    for sizes in counted:
        for feature, size in sizes.items():
            total[feature] += size
    whole = sum(total.values()) or 1.0
    sources: dict[str, float] = defaultdict(float)
    by_column: dict[str, dict[Feature, float]] = defaultdict(dict)
    for feature, size in total.items():
        sources[feature.source] += size / whole
        if feature.source in _OF_COLUMNS:
            by_column[column_of.get(feature.name, _COMBINED)][feature] = size / whole
    columns = [_column_share(name, shares) for name, shares in by_column.items()]
    return (
        dict(sorted(sources.items(), key=lambda one: -one[1])),
        tuple(sorted(columns, key=lambda one: -one.share)),
    )


def _column_share(name: str, shares: Mapping[Feature, float]) -> ColumnShare:
    by_feature: dict[str, float] = defaultdict(float)
    by_source: dict[str, float] = defaultdict(float)
    for feature, share in shares.items():
        by_feature[feature.name] += share
        by_source[feature.source] += share
    leading = max(by_feature, key=by_feature.__getitem__)
    own, one_hop, two_hops, network = (by_source[source] for source in _OF_COLUMNS)
    return ColumnShare(name, leading, own, one_hop, two_hops, network, sum(shares.values()))


def has_memory(component: Component) -> bool:
    """Whether it is networks with memory."""
    first = component.models[0]
    return isinstance(first, Network) and first.model.endswith("+mmp")


def _labels(graph: Inputs) -> NDArray[np.int64]:
    """Class numbers, -1 for nodes without a label that was learned from; all -1 for numbers."""
    return np.full(graph.nodes, -1) if graph.y.dtype.kind == "f" else graph.y


@torch.no_grad()
def _gates(graph: Inputs, memory: list[Component]) -> GateReadout | None:
    found = []
    for component in memory:
        for model in component.models:
            network, data = cast("Network", model).ready(graph)
            assert isinstance(network, MemoryNetwork)
            found.append(network.gates(*make_inputs(data, network, torch.device("cpu"))))
    arcs = torch.from_numpy(graph.arcs)
    return gate_readout(found, arcs, _labels(graph)) if found else None
