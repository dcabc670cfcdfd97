"""The result of an audit, as one page that needs no network."""

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


class Prediction(NamedTuple):
    """How well something predicts the labels; ``kind`` names the colour of its bar."""

    name: str
    kind: str
    score: float
    error: float | None = None

    @property
    def part(self) -> float:
        """Length of the bar; there is none below chance."""
        return min(max(self.score, 0.0), 1.0)


def audit_page(audit: Audit, name: str) -> str:
    """The whole page as text; ``name`` is that of the graph."""
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
        predictions=_predictions(audit),
        directions=_directions(audit),
        classes=by_size[:_SHOWN_CLASSES],
        more_classes=by_size[_SHOWN_CLASSES:],
        labels=sum(audit.class_sizes),
        folds=FOLDS,
    )


def _predictions(audit: Audit) -> list[Prediction]:
    """The scores; none if there were too few labels."""
    neighbours = {"undirected": ("neighbours", audit.neighbours_say)}
    if audit.directed:
        neighbours = {
            "out": ("nodes it points to", audit.out_say),
            "in": ("nodes that point to it", audit.in_say),
            "undirected": ("all its neighbours", audit.undirected_say),
        }
    errors = {audit.direction: audit.neighbours_error}
    rows = [
        ("features", "features", audit.features_say, None),
        *((name, "neighbours", say, errors.get(key)) for key, (name, say) in neighbours.items()),
        ("features and neighbours", "together", audit.together_say, None),
    ]
    return [
        Prediction(name, kind, say, error) for name, kind, say, error in rows if say is not None
    ]


def _directions(audit: Audit) -> list[tuple[str, bool, float | None, float | None]]:
    """For each direction: its name, whether it is advised, its score for one and all neighbours."""
    found = {
        "out": (audit.informativeness_out, audit.out_say),
        "in": (audit.informativeness_in, audit.in_say),
        "undirected": (None, audit.undirected_say),
    }
    return [(_DIRECTIONS[key], key == audit.direction, *said) for key, said in found.items()]
