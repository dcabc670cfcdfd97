"""From model ids to networks."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any

from memohop.errors import UsageError, check_choice, unknown_name
from memohop.networks.acm_gcn import ACMGCN
from memohop.networks.appnp import APPNP
from memohop.networks.base import (
    DIR_GCN,
    GAT,
    GATV2,
    GCN,
    GCNII,
    GIN,
    SAGE,
    Backbone,
    EdgeUse,
    NodeModel,
)
from memohop.networks.classic import TunedStack
from memohop.networks.dir_gcn import ReadoutStack
from memohop.networks.fagcn import FAGCN
from memohop.networks.fsgnn import FSGNN
from memohop.networks.gcnii import DeepStack
from memohop.networks.geom_gcn import GeomGCN
from memohop.networks.gprgnn import GPRGNN
from memohop.networks.h2gcn import H2GCN
from memohop.networks.jumping import JumpingStack
from memohop.networks.linkx import LINKX
from memohop.networks.memory import MemoryNetwork
from memohop.networks.mixhop import MixHop
from memohop.networks.mlp import MLP
from memohop.networks.ordered_gnn import OrderedGNN
from memohop.networks.sgc import SGC
from memohop.networks.stack import Stack

MOST_LAYERS = 1000  # each is a separate module: millions would take forever to make


@dataclass(frozen=True)
class Entry:
    """A network class, the backbone it is built on, and defaults that differ from its own."""

    network: type[NodeModel]
    backbone: Backbone | None = None
    defaults: Mapping[str, Any] = field(default_factory=dict)

    def options(self) -> dict[str, Any]:
        """Every option of the model with its default."""
        known = {**self.network.policies, **_keyword_defaults(self.network)}
        for filled_in in ("backbone", "num_nodes"):
            known.pop(filled_in, None)
        if self.backbone is not None:
            layer = _keyword_defaults(self.backbone.layer)
            known |= {name: layer[name] for name in self.backbone.options}
            known["edges"] = "none"
        return {**known, **self.defaults}


def _with_plugins(
    backbones: Mapping[str, Backbone], plain: Mapping[str, type[NodeModel]]
) -> dict[str, Entry]:
    """Every backbone with every plug-in; without one, a :class:`Stack` or what ``plain`` has."""
    entries = {}
    for suffix, network, defaults in (
        ("", Stack, {}),
        ("+jk", JumpingStack, {}),
        ("+de", Stack, {"edge_dropout": 0.5}),
        ("+mmp", MemoryNetwork, {}),
    ):
        for name, backbone in backbones.items():
            kind = plain.get(name, Stack) if network is Stack else network
            entries[name + suffix] = Entry(kind, backbone, {**backbone.policies, **defaults})
    return entries


def _tuned(backbone: Backbone, **policies: str) -> Entry:
    options = tuple(option for option in backbone.options if option != "bias")
    return Entry(TunedStack, replace(backbone, options=options), policies)


MODELS: dict[str, Entry] = {
    # The rows of the paper's table
    "mlp": Entry(MLP),
    **_with_plugins({"gcn": GCN, "gat": GAT}, {}),
    "mixhop": Entry(MixHop),
    "h2gcn": Entry(H2GCN),
    "geom-gcn": Entry(GeomGCN),
    "gprgnn": Entry(GPRGNN),
    "fagcn": Entry(FAGCN),
    # Later models
    **_with_plugins(
        {"sage": SAGE, "gin": GIN, "gatv2": GATV2, "dir-gcn": DIR_GCN, "gcnii": GCNII},
        {"dir-gcn": ReadoutStack, "gcnii": DeepStack},
    ),
    "gcn-res": _tuned(GCN),
    "gat-res": _tuned(GAT),
    "sage-res": _tuned(SAGE, norm="row"),
    "sgc": Entry(SGC),
    "appnp": Entry(APPNP),
    "acm-gcn": Entry(ACMGCN),
    "linkx": Entry(LINKX),
    "fsgnn": Entry(FSGNN),
    "ordered-gnn": Entry(OrderedGNN),
}


def models() -> list[str]:
    """The ids that :func:`build` and ``memohop train --model`` take.

    Example:
        >>> import memohop
        >>> "gcn+mmp" in memohop.models()
        True
    """
    return list(MODELS)


def entry(name: str) -> Entry:
    """The entry of a model id."""
    if name not in MODELS:
        raise unknown_name("model", name, MODELS)
    return MODELS[name]


def build(
    name: str,
    in_channels: int,
    out_channels: int,
    *,
    num_nodes: int | None = None,
    arc_attributes: int = 0,
    relations: int = 0,
    **options: Any,
) -> NodeModel:
    """A fresh network.

    Args:
        name: an id from :func:`models`.
        in_channels: number of features.
        out_channels: number of classes.
        num_nodes: number of nodes; only models with weights for each node need it.
        arc_attributes: number of attributes of an arc; only models that learn from them need it.
        relations: how many of these are relations.
        **options: the options in the documentation of the model's class, for example
            ``hidden_channels``, ``num_layers``, ``dropout``, ``direction``.

    Example:
        >>> import torch, memohop
        >>> network = memohop.build("gcn", in_channels=8, out_channels=3, hidden_channels=16)
        >>> graph = network.prepare(torch.tensor([[0, 1], [1, 2]]), num_nodes=3)
        >>> network(torch.randn(3, 8), graph).shape
        torch.Size([3, 3])
    """
    model = entry(name)
    accepted = model.options()
    for option in options:
        if option not in accepted:
            raise UsageError(
                f"{name} has no option {option!r}; it has {', '.join(sorted(accepted))}"
            )
    chosen = {**model.defaults, **options}
    for size in ("hidden_channels", "num_layers", "heads"):
        if size in chosen and not (isinstance(chosen[size], int) and chosen[size] >= 1):
            raise UsageError(f"{size} must be a whole number of at least 1, not {chosen[size]!r}")
    if chosen.get("num_layers", 1) > MOST_LAYERS:
        raise UsageError(f"num_layers must be at most {MOST_LAYERS}, not {chosen['num_layers']}")
    if num_nodes is None and model.network.per_node:
        raise UsageError(f"{name} has weights for each node: pass num_nodes")
    if "num_nodes" in _keyword_defaults(model.network):
        chosen["num_nodes"] = num_nodes
    if model.backbone is not None:
        of_layer = {key: chosen.pop(key) for key in model.backbone.options if key in chosen}
        chosen["backbone"] = model.backbone.having(**of_layer)
    use = EdgeUse(chosen.pop("edges", "none"), arc_attributes, relations)
    if use.edges == "none":
        return model.network(in_channels, out_channels, **chosen)
    chosen["backbone"] = _learning_from(use, name, chosen["backbone"])
    network = model.network(in_channels, out_channels, **chosen)
    network.edges = use
    return network


def _learning_from(use: EdgeUse, name: str, backbone: Backbone) -> Backbone:
    """The backbone of a model that learns from attributes of arcs; checks that it can."""
    check_choice("edges", use.edges, ("none", "weights", "relations"))
    if use.edges not in backbone.edges:
        raise UsageError(f"{name} learns no weights of arcs; take gatv2 or gcn+mmp")
    wanted = {"weights": "arc_attributes", "relations": "relations"}[use.edges]
    if (use.attributes if use.edges == "weights" else use.relations) < 1:
        raise UsageError(
            f"edges={use.edges!r} needs attributes of arcs, and there are none: pass {wanted}, "
            "or train on a Data with edge_attr or edge_type"
        )
    return replace(backbone, use=use)


@cache
def _keyword_defaults(kind: type) -> Mapping[str, Any]:
    """The keyword arguments of a class, and of the classes that it hands others on to."""
    defaults: dict[str, Any] = {}
    for base in kind.__mro__:
        if "__init__" in vars(base):
            parameters = inspect.signature(vars(base)["__init__"]).parameters.values()
            own = {p.name: p.default for p in parameters if p.kind is p.KEYWORD_ONLY}
            defaults = own | defaults
            if not any(p.kind is p.VAR_KEYWORD for p in parameters):
                break
    return defaults
