"""What an audit found, as one page that needs no network."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from memohop.data.audit.probes import FOLDS
from memohop.report.environment import render

if TYPE_CHECKING:
    from memohop.data.audit import Audit

_MODELS = {
    "mlp": "a network that sees the features of a node and ignores the graph",
    "gcn": "a network that averages a node and its neighbours",
    "gcn+mmp": "a network in which a node keeps its own state apart from its neighbours' messages",
}
_DIRECTIONS = {
    "out": "the nodes that a node points to",
    "in": "the nodes that point to a node",
    "undirected": "all neighbours, whichever way the arc goes",
}
_SHOWN_CLASSES = 40


class Measure(NamedTuple):
    """A number, or None where it is not defined, and what it means."""

    name: str
    value: float | None
    meaning: str


class Prediction(NamedTuple):
    """How well the labels can be predicted from something; `kind` names the colour of its bar."""

    name: str
    kind: str
    score: float
    error: float | None = None

    @property
    def part(self) -> float:
        """Length of the bar; there is none below chance."""
        return min(max(self.score, 0.0), 1.0)


def audit_page(audit: Audit, name: str) -> str:
    """The whole page as text.

    Args:
        audit: What was found.
        name: What the graph is called.
    """
    advice = audit.advice
    by_size = sorted(
        zip(audit.class_names, audit.class_sizes, strict=True), key=lambda one: -one[1]
    )
    return render(
        "audit.html",
        name=name,
        audit=audit,
        advice=advice,
        model=_MODELS[advice.model],
        heard=_DIRECTIONS[advice.direction],
        homophily=_homophily(audit),
        predictions=_predictions(audit),
        directions=_directions(audit),
        classes=by_size[:_SHOWN_CLASSES],
        more_classes=by_size[_SHOWN_CLASSES:],
        labels=sum(audit.class_sizes),
        folds=FOLDS,
    )


def _homophily(audit: Audit) -> list[Measure]:
    return [
        Measure(
            "edge homophily",
            audit.edge_homophily,
            "The share of edges whose two ends have the same label. Where one class is large, "
            "this is high by chance alone.",
        ),
        Measure(
            "node homophily",
            audit.node_homophily,
            "The share of neighbours with the node's own label, averaged over nodes, so that a "
            "node with many neighbours counts no more than others.",
        ),
        Measure(
            "class homophily",
            audit.class_homophily,
            "How far classes keep to themselves beyond what their size explains, averaged over "
            "classes. 0: not at all, 1: entirely.",
        ),
        Measure(
            "adjusted homophily",
            audit.adjusted_homophily,
            "Edge homophily beyond chance: 1 if all edges join nodes of one label, 0 if as many as "
            "by chance, below 0 if fewer. Use this one to compare graphs.",
        ),
        Measure(
            "label informativeness",
            audit.label_informativeness,
            "How much the label of one neighbour tells about a node's own label, from 0 to 1. Also "
            "high where neighbours differ in a regular way.",
        ),
    ]


def _predictions(audit: Audit) -> list[Prediction]:
    """What the labels were predicted from; nothing, if there were too few labels."""
    neighbours = (
        {
            "out": ("nodes it points to", audit.out_say),
            "in": ("nodes that point to it", audit.in_say),
            "undirected": ("all its neighbours", audit.undirected_say),
        }
        if audit.directed
        else {"undirected": ("neighbours", audit.neighbours_say)}
    )
    rows = [
        ("features", "features", audit.features_say, None),
        *(
            (title, "neighbours", score, audit.neighbours_error if key == audit.direction else None)
            for key, (title, score) in neighbours.items()
        ),
        ("features and neighbours", "together", audit.together_say, None),
    ]
    return [
        Prediction(title, kind, score, error)
        for title, kind, score, error in rows
        if score is not None
    ]


def _directions(audit: Audit) -> list[tuple[str, bool, float | None, float | None]]:
    """For each direction: its neighbours, whether it is advised, its score for one and for all."""
    found = {
        "out": (audit.informativeness_out, audit.out_say),
        "in": (audit.informativeness_in, audit.in_say),
        "undirected": (None, audit.undirected_say),
    }
    return [(_DIRECTIONS[key], key == audit.direction, *said) for key, said in found.items()]
