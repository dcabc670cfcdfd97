"""The kinds of model by name, the cheap ones first."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from memohop.errors import UsageError, unknown_name
from memohop.fit.candidates.family import Family
from memohop.fit.candidates.linear import LinearFamily
from memohop.fit.candidates.networks import NetworkFamily
from memohop.fit.candidates.spaces import SPACES
from memohop.fit.candidates.trees import TreeFamily
from memohop.fit.problem import Problem
from memohop.training import Rules

_VIEWS: dict[str, LinearFamily | TreeFamily] = {
    "linear": LinearFamily("linear", "columns"),
    "lightgbm": TreeFamily("lightgbm", "columns"),
    "linear+neighbours": LinearFamily("linear+neighbours", "neighbours"),
    "linear+rows": LinearFamily("linear+rows", "rows"),
    "lightgbm+neighbours": TreeFamily("lightgbm+neighbours", "neighbours"),
    "lightgbm+positions": TreeFamily("lightgbm+positions", "positions"),
}
MEMORY = tuple(name for name in SPACES if name.endswith("+mmp"))
"""The kinds with memory-based message passing."""
NAMES = (*_VIEWS, *SPACES)
"""All kinds."""


def families(
    names: Iterable[str] | None,
    *,
    rules: Rules,
    seed: int,
    device: str,
    memory: int | None,
) -> list[Family]:
    """The kinds of model that a search chooses from.

    Args:
        names: Some of :data:`NAMES`; None for all.
        rules: How networks are trained; the other kinds follow its class weights.
        seed: Decides their initial weights and dropout.
        device: The device to train on.
        memory: The most bytes that the process may hold.
    """
    wanted = NAMES if names is None else tuple(names)
    for name in wanted:
        if name not in NAMES:
            raise unknown_name("model", name, NAMES)
    return [
        replace(_VIEWS[name], balanced=rules.class_weight == "balanced", memory=memory)
        if name in _VIEWS
        else NetworkFamily(name, SPACES[name], rules=rules, seed=seed, device=device, memory=memory)
        for name in NAMES
        if name in wanted
    ]


def check_applicable(kinds: Iterable[Family], problem: Problem) -> None:
    """Raise a ``UsageError`` if none of the kinds can be fitted to a graph."""
    kinds = list(kinds)
    if not any(kind.first(problem) for kind in kinds):
        names = ", ".join(kind.id for kind in kinds)
        raise UsageError(
            f"models={names or None}: none of them can be fitted to this graph; models of the "
            "columns need columns that are not constant, and models of directions need arcs with "
            "a direction; choose others, or all with models=None"
        )
