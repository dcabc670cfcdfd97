"""The basis of a fitted portfolio's decisions: columns, neighbours and gates."""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from memohop.explain._contributions import sizes as sizes_in
from memohop.explain._contributions import summed
from memohop.explain.gates import GateReadout, gate_readout
from memohop.explain.node import (
    NEIGHBOURS,
    NodeReasons,
    has_memory,
    index_of,
    memory_networks,
    node_reasons,
)
from memohop.fit import (
    Component,
    Feature,
    FitRecord,
    Inputs,
    Network,
    Setting,
    how_to_read,
    plain_model,
)
from memohop.training.task import make_inputs

if TYPE_CHECKING:
    from memohop.fit import GraphEstimator

_COMBINED = "combinations of columns"
_OF_COLUMNS = ("own", "one hop", "two hops", "network")
_WITH = {"edges": "own", "least": "one hop", "greatest": "one hop", "spread": "one hop"}
_LEADING = 3


@dataclass(frozen=True)
class ColumnShare:
    """The influence of a column, as shares; those of all features of a model add up to 1."""

    name: str
    leading: str  # its most influential feature; the column itself if it has one feature
    own: float  # of the node's own value
    one_hop: float  # of mean, extremes and spread over neighbours
    two_hops: float  # of the mean over their neighbours
    network: float  # in networks, where own values and those of neighbours are together
    share: float  # the sum


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
        >>> explained = explain_fit(model)
        >>> list(explained.sources)  # features of the node itself, none of its neighbours
        ['own']
        >>> len(explained.columns)
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
    names = _feature_names(estimator, graph)
    steps = len(components) + (0 if index is None else 1 + NEIGHBOURS)
    done = itertools.count(1)

    def look() -> None:
        progress(min(next(done) / steps, 1.0))

    parts, sizes = [], list[tuple[Feature, float]]()
    for component in components:
        of_part = _sizes_in(component, graph, list(names))
        sizes += of_part.items()
        named = [column.name for column in _columns(of_part, names) if column.share > 0]
        leading = [name for name in named if name != _COMBINED][:_LEADING]
        parts.append(ExplainedPart(component.setting, component.weight, tuple(leading)))
        look()
    total = summed(sizes)
    whole = sum(total.values()) or 1.0
    shares = {feature: size / whole for feature, size in total.items()}
    sources = summed((feature.source, share) for feature, share in shares.items())
    memory = [component for component in components if has_memory(component)]
    return FitExplanation(
        report=estimator.report_,
        sources=dict(sorted(sources.items(), key=lambda item: -item[1])),
        columns=_columns(shares, names),
        parts=tuple(parts),
        gates=_gates(graph, memory) if memory else None,
        gates_weight=sum(component.weight for component in memory),
        node=None if index is None else node_reasons(estimator, index, list(names), look),
    )


def _feature_names(estimator: GraphEstimator, graph: Inputs) -> dict[str, str]:
    """The column of every feature, by the name of the feature."""
    if estimator.encoder_ is not None and estimator.encoder_.columns:
        columns = how_to_read(estimator)["encoder"].columns  # checked
        return {name: column.name for column in columns for name in column.feature_names}
    given = getattr(estimator, "feature_names_in_", None)
    names = given if given is not None else [f"column {i}" for i in range(graph.x.shape[1])]
    return {str(name): str(name) for name in names}


def _sizes_in(component: Component, graph: Inputs, columns: list[str]) -> dict[Feature, float]:
    """The mean contribution of every feature of a part, times its weight."""
    models = component.models
    if isinstance(
        plain_model(models[0]), Network
    ):  # they differ in the nodes they saw: one stands for all
        models = models[:1]
    return summed(
        (feature, size * component.weight / len(models))
        for model in models
        for feature, size in sizes_in(model, graph, columns).items()
    )


def _columns(
    sizes: Mapping[Feature, float], column_of: Mapping[str, str]
) -> tuple[ColumnShare, ...]:
    """What the features of each column add up to, the largest first."""
    by_column: dict[str, dict[Feature, float]] = defaultdict(dict)
    for feature, size in sizes.items():
        if feature.source in (*_OF_COLUMNS, *_WITH):
            by_column[column_of.get(feature.name, _COMBINED)][feature] = size
    columns = []
    for name, shares in by_column.items():
        by_feature = summed((feature.name, share) for feature, share in shares.items())
        by_source = summed(
            (_WITH.get(feature.source, feature.source), share) for feature, share in shares.items()
        )
        leading = max(by_feature, key=by_feature.__getitem__)
        own, one_hop, two_hops, network = (by_source.get(source, 0.0) for source in _OF_COLUMNS)
        share = sum(shares.values())
        columns.append(ColumnShare(name, leading, own, one_hop, two_hops, network, share))
    return tuple(sorted(columns, key=lambda column: -column.share))


@torch.no_grad()
def _gates(graph: Inputs, memory: list[Component]) -> GateReadout:
    gates = []
    for component in memory:
        networks, data = memory_networks(component, graph)
        inputs = make_inputs(data, networks[0], torch.device("cpu"))
        gates += [network.gates(*inputs) for network in networks]
    labels = np.full(graph.nodes, -1) if graph.y.dtype.kind == "f" else graph.y
    return gate_readout(gates, torch.from_numpy(graph.arcs), labels)
