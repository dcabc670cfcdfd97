"""What an audit found, as a page without a network."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from memohop.data.probes import FOLDS
from memohop.report.environment import render

if TYPE_CHECKING:
    from memohop.data.audit import Audit

_MODELS = {
    "mlp": "a network that sees the features of a node and nothing of the graph",
    "gcn": "a network that takes the mean over a node and its neighbours",
    "gcn+mmp": "a network in which a node keeps what it hears apart from what it knows of itself",
}
_DIRECTIONS = {
    "out": "the nodes that a node points to",
    "in": "the nodes that point to a node",
    "undirected": "all neighbours, whichever way the arc goes",
}
_SHOWN_CLASSES = 40


class Measure(NamedTuple):
    """A figure, or None where it is not defined, and one line on what it means."""

    name: str
    value: float | None
    meaning: str


class Voice(NamedTuple):
    """What one source says of the label; `kind` names the colour of its bar."""

    name: str
    kind: str
    score: float
    error: float | None = None

    @property
    def part(self) -> float:
        """Length of the bar; nothing is drawn below chance."""
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
        voices=_voices(audit),
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
            "The share of edges whose two ends have one label. Where one class is large, this is "
            "high by chance alone.",
        ),
        Measure(
            "node homophily",
            audit.node_homophily,
            "The share of like neighbours, mean over nodes, so that a node with many neighbours "
            "counts no more than others.",
        ),
        Measure(
            "class homophily",
            audit.class_homophily,
            "How far classes keep to themselves beyond what their size explains, mean over "
            "classes. 0: not at all, 1: wholly.",
        ),
        Measure(
            "adjusted homophily",
            audit.adjusted_homophily,
            "Edge homophily beyond chance: 1 if all edges join likes, 0 as often as by chance, "
            "below 0 less often. The one to compare graphs by.",
        ),
        Measure(
            "label informativeness",
            audit.label_informativeness,
            "How much of a label the label of one neighbour tells, from 0 to 1. High too where "
            "neighbours are unlike in a regular way.",
        ),
    ]


def _voices(audit: Audit) -> list[Voice]:
    """Who was asked for the label; nobody, if there were too few labels."""
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
        Voice(title, kind, score, error) for title, kind, score, error in rows if score is not None
    ]


def _directions(audit: Audit) -> list[tuple[str, bool, float | None, float | None]]:
    """For each direction: whom, whether it is the advice, what one node tells, what all say."""
    found = {
        "out": (audit.informativeness_out, audit.out_say),
        "in": (audit.informativeness_in, audit.in_say),
        "undirected": (None, audit.undirected_say),
    }
    return [(_DIRECTIONS[key], key == audit.direction, *said) for key, said in found.items()]
