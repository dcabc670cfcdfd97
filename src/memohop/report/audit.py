"""The result of an audit: a table for people, JSON, and a page that needs no network."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from rich.table import Table

from memohop.data.audit import FOLDS, HEARD
from memohop.outputs import printable
from memohop.report.environment import render
from memohop.report.terminal import fact_table

if TYPE_CHECKING:
    from memohop.data.audit import Audit

_MODELS = {
    "mlp": "a network that sees the features of a node and ignores the graph",
    "gcn": "a network that averages a node and its neighbours",
    "gcn+mmp": "a network in which a node keeps its own state apart from its neighbours' messages",
}
_SHOWN_CLASSES = 40


def audit_row(audit: Audit, name: str) -> dict[str, Any]:
    """A flat object for JSON."""
    return {"dataset": name} | asdict(audit) | asdict(audit.advice)


def audit_sheet(audit: Audit, name: str) -> Table:
    """A row for each fact, the advice last."""
    advice = audit.advice
    kind = "directed" if audit.directed else "each edge both ways"
    return fact_table(
        {
            "graph": printable(name),
            "nodes": f"{audit.nodes} ({audit.unlabelled} without a label, {audit.isolated} without "
            "a neighbour)",
            "arcs": f"{audit.arcs} ({kind}, {audit.self_loops} from a node to itself, "
            f"{audit.multi_arcs} repeated)",
            "features": str(audit.features),
            "classes": _classes(audit),
        },
        {
            "edge homophily": _number(audit.edge_homophily, "share of edges within a class"),
            "node homophily": _number(audit.node_homophily, "mean over nodes"),
            "class homophily": _number(audit.class_homophily, "beyond the size of the class"),
            "adjusted homophily": _number(audit.adjusted_homophily, "0: chance, 1: all agree"),
            "label informativeness": _number(audit.label_informativeness, "of one neighbour"),
        },
        {
            "features say": _number(audit.features_say, "0: chance, 1: every label"),
            "neighbours say": _neighbours(audit),
            "together": _number(audit.together_say),
        },
        {"twins": _twins(audit), "duplicates": str(audit.duplicates)},
        {
            "advice": "\n".join(map(printable, advice.reasons)),
            "distrust": "\n".join(map(printable, advice.distrust)) or "nothing in particular",
        },
    )


def audit_page(audit: Audit, name: str) -> str:
    """The whole page as text; ``name`` is that of the graph."""
    classes = zip(audit.class_names, audit.class_sizes, strict=True)
    by_size = sorted(classes, key=lambda pair: -pair[1])
    return render(
        "audit.html",
        name=name,
        audit=audit,
        advice=audit.advice,
        model=_MODELS[audit.advice.model],
        heard=HEARD,
        classes=by_size[:_SHOWN_CLASSES],
        more_classes=by_size[_SHOWN_CLASSES:],
        labels=sum(audit.class_sizes),
        folds=FOLDS,
    )


def _classes(audit: Audit) -> str:
    shown = [
        f"{printable(name)} ({size})"
        for name, size in zip(audit.class_names[:12], audit.class_sizes, strict=False)
    ]
    more = len(audit.class_names) - len(shown)
    return f"{len(audit.class_names)}: {', '.join(shown)}" + (f" and {more} more" if more else "")


def _neighbours(audit: Audit) -> str:
    if not audit.directed or audit.undirected_say is None:
        return _number(audit.neighbours_say)
    return (
        f"{_number(audit.out_say)} those a node points to, {_number(audit.in_say)} those that "
        f"point to it, {_number(audit.undirected_say)} either"
    )


def _twins(audit: Audit) -> str:
    if audit.split is None:
        return "not counted, as there are no splits"
    counted = (
        f"{audit.twins} of {audit.test_nodes} test nodes of split {audit.split} point to the same "
        "nodes as a training node"
    )
    if audit.twin_agreement is None:
        return counted
    return (
        f"{counted}; {audit.close_twins} have two links or more, and {audit.twin_agreement:.0%} of "
        "such validation nodes are of the same class as their twin"
    )


def _number(value: float | None, remark: str = "") -> str:
    number = "not defined" if value is None else f"{value:.3f}"
    return f"{number} ({remark})" if remark else number
