"""What an audit found, for people and for programs."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from rich.markup import escape
from rich.table import Table

from memohop.printable import printable

if TYPE_CHECKING:
    from memohop.data.audit import Audit


def audit_row(audit: Audit, name: str) -> dict[str, Any]:
    """A flat object for JSON."""
    advice = audit.advice
    return {
        "dataset": name,
        **asdict(audit),
        "model": advice.model,
        "reasons": advice.reasons,
        "distrust": advice.distrust,
    }


def audit_sheet(audit: Audit, name: str) -> Table:
    """A row for each fact, the advice last."""
    advice = audit.advice
    gap = ("", "")
    facts = [
        ("graph", printable(name)),
        ("nodes", _nodes(audit)),
        ("arcs", _arcs(audit)),
        ("features", str(audit.features)),
        ("classes", _classes(audit)),
        gap,
        ("edge homophily", _number(audit.edge_homophily, "share of edges within a class")),
        ("node homophily", _number(audit.node_homophily, "mean over nodes")),
        ("class homophily", _number(audit.class_homophily, "beyond the size of the class")),
        ("adjusted homophily", _number(audit.adjusted_homophily, "0: chance, 1: all agree")),
        ("label informativeness", _number(audit.label_informativeness, "of one neighbour")),
        gap,
        ("features say", _number(audit.features_say, "0: chance, 1: every label")),
        ("neighbours say", _neighbours(audit)),
        ("together", _number(audit.together_say)),
        gap,
        ("twins", _twins(audit)),
        ("duplicates", str(audit.duplicates)),
        gap,
        ("advice", _lines(advice.reasons)),
        ("distrust", _lines(advice.distrust) or "nothing in particular"),
    ]
    table = Table(box=None, show_header=False, pad_edge=False)
    table.add_column(style="bold", no_wrap=True)
    table.add_column(overflow="fold")
    for title, value in facts:
        table.add_row(title, escape(value))
    return table


def _lines(texts: Iterable[str]) -> str:
    return "\n".join(map(printable, texts))


def _nodes(audit: Audit) -> str:
    remarks = [f"{audit.unlabelled} without a label", f"{audit.isolated} without a neighbour"]
    return f"{audit.nodes} ({', '.join(remarks)})"


def _arcs(audit: Audit) -> str:
    kind = "directed" if audit.directed else "each edge both ways"
    return (
        f"{audit.arcs} ({kind}, {audit.self_loops} from a node to itself, {audit.multi_arcs} "
        "repeated)"
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
    agreement = ""
    if audit.twin_agreement is not None:
        agreement = (
            f"; {audit.close_twins} with two links or more, and {audit.twin_agreement:.0%} of such "
            "validation nodes have its class"
        )
    return (
        f"{audit.twins} of {audit.test_nodes} test nodes of split {audit.split} point to the same "
        f"nodes as a training node{agreement}"
    )


def _number(value: float | None, remark: str = "") -> str:
    number = "not defined" if value is None else f"{value:.3f}"
    return f"{number} ({remark})" if remark else number
