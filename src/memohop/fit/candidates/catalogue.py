"""The kinds of model by name, the cheap ones first."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from memohop.errors import UsageError, unknown_name
from memohop.fit._candidate import Family, room_in_ram
from memohop.fit._problem import Problem
from memohop.fit.candidates._extra_trees import ExtraTreesFamily
from memohop.fit.candidates._linear import LinearFamily
from memohop.fit.candidates._nearest import NearestFamily
from memohop.fit.candidates._network import NetworkFamily
from memohop.fit.candidates._trees import TreeFamily
from memohop.fit.candidates.spaces import listed
from memohop.ram import in_units
from memohop.training import Rules
from memohop.training.device import resident_bytes

_OF_VIEWS = (
    LinearFamily("linear", "columns"),
    TreeFamily("lightgbm", "columns"),
    ExtraTreesFamily("extra-trees", "columns"),
    NearestFamily("nearest", "columns"),
    LinearFamily("linear+neighbours", "neighbours"),
    LinearFamily("linear+rows", "rows"),
    TreeFamily("lightgbm+neighbours", "neighbours"),
    ExtraTreesFamily("extra-trees+neighbours", "neighbours"),
    TreeFamily("lightgbm+positions", "positions"),
)
_MANY = 100  # classes that take most of the RAM


def names() -> tuple[str, ...]:
    """All kinds."""
    return (*(kind.id for kind in _OF_VIEWS), *listed().networks)


def families(
    some: Iterable[str] | None, *, rules: Rules, seed: int, device: str, memory: int | None
) -> list[Family]:
    """The kinds of model that a search chooses from.

    Args:
        some: Some of :func:`names`; None for all.
        rules: How networks are trained; the other kinds follow its class weights.
        seed: Decides their initial weights and dropout.
        device: The device to train on.
        memory: The most bytes that the process may hold.
    """
    balanced = rules.class_weight == "balanced"
    kinds: list[Family] = [
        *(replace(kind, balanced=balanced, memory=memory) for kind in _OF_VIEWS),
        *(
            NetworkFamily(name, rules, seed=seed, device=device, memory=memory)
            for name in listed().networks
        ),
    ]
    wanted = names() if some is None else tuple(some)
    for name in wanted:
        if name not in names():
            raise unknown_name("model", name, names())
    return [kind for kind in kinds if kind.id in wanted]


def check_applicable(kinds: Sequence[Family], problem: Problem, memory: int | None = None) -> None:
    """Raise a ``UsageError`` if none of the kinds can be fitted to a graph, or fits in the RAM."""
    firsts = [(kind, first) for kind in kinds for first in kind.first(problem)[:1]]
    if not firsts:
        names = ", ".join(kind.id for kind in kinds)
        raise UsageError(
            f"models={names or None}: none of them can be fitted to this graph; models of the "
            "columns need columns that are not constant, nearest neighbours need a few that are "
            "rarely 0, and models of directions need arcs with a direction; neither these nor "
            "positions can be used with times; choose others, or all with models=None"
        )
    least = min(kind.cost(problem, first).bytes for kind, first in firsts)
    if least <= (room := room_in_ram(memory)):
        return
    held, classes = resident_bytes(), f" and {problem.classes} classes" * bool(problem.classes)
    limit = f"memory={in_units(memory)}" if memory is not None else f"{in_units(room)} of free RAM"
    raise UsageError(
        f"{limit} is too little for {problem.nodes} nodes, {problem.arcs.shape[1]} arcs{classes}: "
        f"the process holds {in_units(held)} already, and the smallest kind of model takes about "
        f"{in_units(least)} more; give {in_units(1.1 * (held + least))}, or fewer "
        f"{'classes' if problem.classes > _MANY else 'nodes or columns'}"
    )
