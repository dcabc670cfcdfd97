"""The kinds of model by name, the cheap ones first."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from memohop.errors import UsageError, unknown_name
from memohop.fit._candidate import Family, room_in_ram
from memohop.fit._problem import Problem
from memohop.fit.candidates._linear import LinearFamily
from memohop.fit.candidates._network import NetworkFamily
from memohop.fit.candidates._trees import TreeFamily
from memohop.fit.candidates.spaces import network_spaces
from memohop.ram import in_units
from memohop.training import Rules
from memohop.training.device import resident_bytes

_VIEWS: dict[str, LinearFamily | TreeFamily] = {
    "linear": LinearFamily("linear", "columns"),
    "lightgbm": TreeFamily("lightgbm", "columns"),
    "linear+neighbours": LinearFamily("linear+neighbours", "neighbours"),
    "linear+rows": LinearFamily("linear+rows", "rows"),
    "lightgbm+neighbours": TreeFamily("lightgbm+neighbours", "neighbours"),
    "lightgbm+positions": TreeFamily("lightgbm+positions", "positions"),
}
_MANY = 100  # classes that take most of the RAM


def names() -> tuple[str, ...]:
    """All kinds."""
    return (*_VIEWS, *network_spaces())


def families(
    some: Iterable[str] | None,
    *,
    rules: Rules,
    seed: int,
    device: str,
    memory: int | None,
) -> list[Family]:
    """The kinds of model that a search chooses from.

    Args:
        some: Some of :func:`names`; None for all.
        rules: How networks are trained; the other kinds follow its class weights.
        seed: Decides their initial weights and dropout.
        device: The device to train on.
        memory: The most bytes that the process may hold.
    """
    known = names()
    wanted = known if some is None else tuple(some)
    for name in wanted:
        if name not in known:
            raise unknown_name("model", name, known)
    return [
        replace(_VIEWS[name], balanced=rules.class_weight == "balanced", memory=memory)
        if name in _VIEWS
        else NetworkFamily(name, rules=rules, seed=seed, device=device, memory=memory)
        for name in known
        if name in wanted
    ]


def check_applicable(kinds: Sequence[Family], problem: Problem, memory: int | None = None) -> None:
    """Raise a ``UsageError`` if none of the kinds can be fitted to a graph, or fits in the RAM.

    Args:
        kinds: The kinds of model.
        problem: The problem.
        memory: The most bytes that the process may hold; by default what is free.
    """
    firsts = [(kind, first) for kind in kinds for first in kind.first(problem)[:1]]
    if not firsts:
        names = ", ".join(kind.id for kind in kinds)
        raise UsageError(
            f"models={names or None}: none of them can be fitted to this graph; models of the "
            "columns need columns that are not constant, and models of directions need arcs with "
            "a direction; choose others, or all with models=None"
        )
    least, room = (
        min(kind.cost(problem, first).bytes for kind, first in firsts),
        room_in_ram(memory),
    )
    if least <= room:
        return
    held, classes = resident_bytes(), f" and {problem.classes} classes" * bool(problem.classes)
    limit = f"memory={in_units(memory)}" if memory is not None else f"{in_units(room)} of free RAM"
    raise UsageError(
        f"{limit} is too little for {problem.nodes} nodes, {problem.arcs.shape[1]} arcs{classes}: "
        f"the process holds {in_units(held)} already, and the smallest kind of model takes about "
        f"{in_units(least)} more; give {in_units(1.1 * (held + least))}, or fewer "
        f"{'classes' if problem.classes > _MANY else 'nodes or columns'}"
    )
