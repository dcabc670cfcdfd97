"""From the id that one types to a network."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from memohop.errors import UsageError, unknown_name
from memohop.networks.backbone import GAT, GCN, Backbone
from memohop.networks.base import NodeModel
from memohop.networks.jumping import JumpingStack
from memohop.networks.memory import MemoryNetwork
from memohop.networks.mlp import MLP
from memohop.networks.stack import Stack


@dataclass(frozen=True)
class Entry:
    """A network class, the backbone it is built on, and defaults that differ from its own."""

    network: Callable[..., NodeModel]
    backbone: Backbone | None = None
    defaults: Mapping[str, Any] = field(default_factory=dict)

    def options(self) -> dict[str, Any]:
        """Every option of the model with its default."""
        found = _keyword_defaults(self.network)
        found.pop("backbone", None)
        if self.backbone is not None:
            layer = _keyword_defaults(self.backbone.layer)
            found |= {name: layer[name] for name in self.backbone.options}
        return found | dict(self.defaults)


def _with_plugins(name: str, backbone: Backbone) -> dict[str, Entry]:
    return {
        name: Entry(Stack, backbone),
        f"{name}+jk": Entry(JumpingStack, backbone),
        f"{name}+de": Entry(Stack, backbone, {"edge_dropout": 0.5}),
        f"{name}+mmp": Entry(MemoryNetwork, backbone),
    }


MODELS: dict[str, Entry] = {
    "mlp": Entry(MLP),
    **_with_plugins("gcn", GCN),
    **_with_plugins("gat", GAT),
}


def models() -> list[str]:
    """The ids that :func:`build` and ``memohop train --model`` take."""
    return list(MODELS)


def entry(name: str) -> Entry:
    """The entry of a model id."""
    if name not in MODELS:
        raise unknown_name("model", name, MODELS)
    return MODELS[name]


def build(name: str, in_channels: int, out_channels: int, **options: Any) -> NodeModel:
    """A fresh network.

    Args:
        name: an id from :func:`models`.
        in_channels: number of features.
        out_channels: number of classes.
        **options: what the model's class documents, for example ``hidden_channels``,
            ``num_layers``, ``dropout``, ``direction``.
    """
    found = entry(name)
    accepted = found.options()
    for option in options:
        if option not in accepted:
            raise UsageError(
                f"{name} has no option {option!r}; it has {', '.join(sorted(accepted))}"
            )
    chosen = {**found.defaults, **options}
    for size in ("hidden_channels", "num_layers", "heads"):
        if size in chosen and not (isinstance(chosen[size], int) and chosen[size] >= 1):
            raise UsageError(f"{size} must be a whole number of at least 1, not {chosen[size]!r}")
    if found.backbone is not None:
        of_layer = {key: chosen.pop(key) for key in found.backbone.options if key in chosen}
        chosen["backbone"] = found.backbone.having(**of_layer)
    return found.network(in_channels, out_channels, **chosen)


def _keyword_defaults(function: Callable[..., Any]) -> dict[str, Any]:
    return {
        name: parameter.default
        for name, parameter in inspect.signature(function).parameters.items()
        if parameter.kind is inspect.Parameter.KEYWORD_ONLY
    }
