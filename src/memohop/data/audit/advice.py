"""Advice that follows from an audit, by these rules.

Labels of test nodes are never used. *Labels* are those of the training and validation nodes here,
and homophily is that between them; in a graph without splits, all labels count.

*Direction.* In a directed graph, the direction in which neighbours say most, if they say more than
both directions together (``undirected``), by more than .02 and by more than two standard errors;
otherwise ``undirected``.

*Model.* Neighbours say something if their score is above .05 and above three standard errors.

1. The neighbours say nothing: ``mlp``. The graph would only add noise.
2. They say something, and adjusted homophily is at least .3: ``gcn``. Neighbours mostly agree, and
   the mean of a neighbourhood is worth having; ``gcn+mmp`` should do as well there.
3. They say something, and adjusted homophily is below .3: ``gcn+mmp``. Neighbours are not alike,
   and a node's own features must not be averaged away.

If features and neighbours together do not say more than the features, by the same margin as for
the direction, the advice is to expect little from the graph.

*Distrust.* Twins, if a tenth of the test nodes have a close one in training, and nine in ten of the
validation nodes with a close one have its class; duplicates, if they are a hundredth of the nodes;
classes with fewer than three labels; accuracy, if one class has three quarters of the labels;
single scores, if there are fewer than 200 test nodes; the graph, if a tenth of the nodes are
isolated; and any model, if neither features nor neighbours say something.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from memohop.outputs import first_few

if TYPE_CHECKING:
    from memohop.data.audit.examine import Audit
    from memohop.data.audit.probes import Said

_SOMETHING = 0.05
_ALIKE = 0.3
_MORE = 0.02


@dataclass(frozen=True)
class Advice:
    """The model to begin with, its direction, the reasons, and what to be wary of."""

    model: str
    direction: str
    reasons: tuple[str, ...]
    distrust: tuple[str, ...]


def best_direction(neighbours: Mapping[str, Said]) -> str:
    """The direction in which neighbours say most, or ``undirected`` if that says as much."""
    best = max(neighbours, key=lambda name: neighbours[name].score)
    gain = neighbours[best].score - neighbours["undirected"].score
    return best if gain > max(_MORE, 2 * neighbours[best].error) else "undirected"


def advise(audit: Audit) -> Advice:
    """Apply the rules above."""
    if audit.neighbours_say is None or audit.neighbours_error is None:
        reason = "fewer than two classes have three labels, which is too little to judge by"
        return Advice("mlp", audit.direction, (reason,), tuple(distrust(audit)))
    alike = (audit.known_homophily or 0) >= _ALIKE
    heard = _says_something(audit.neighbours_say, audit.neighbours_error)
    model = ("gcn" if alike else "gcn+mmp") if heard else "mlp"
    reasons = (_of_model(audit, model), *_of_probes(audit), _of_direction(audit))
    return Advice(model, audit.direction, reasons, tuple(distrust(audit)))


def _says_something(score: float, error: float) -> bool:
    return score > max(_SOMETHING, 3 * error)


def _of_known(audit: Audit) -> str:
    """Which labels the advice is based on, if not all."""
    return "" if audit.split is None else " among training and validation nodes"


def _share(share: float) -> str:
    return "more than 99%" if 0.995 <= share < 1 else f"{share:.0%}"


def _of_model(audit: Audit, model: str) -> str:
    homophily = f"(adjusted homophily {audit.known_homophily or 0:.2f}{_of_known(audit)})"
    if model == "mlp":
        return (
            "mlp: a quick test finds nothing in the neighbours; also try gcn+mmp, which can learn "
            "to ignore them"
        )
    if model == "gcn":
        return f"gcn: neighbours are mostly alike {homophily}; gcn+mmp should do as well"
    return (
        f"gcn+mmp: the neighbours tell something, but are not alike {homophily}, so a node must "
        "keep its own features"
    )


def _of_probes(audit: Audit) -> list[str]:
    reasons = [
        f"the features alone say {audit.features_say:.2f} of the label, the neighbours alone "
        f"{audit.neighbours_say:.2f}, both together {audit.together_say:.2f} (0 is chance, 1 all)"
    ]
    gain = (audit.together_say or 0) - (audit.features_say or 0)
    if gain <= max(_MORE, 2 * (audit.neighbours_error or 0)):
        reasons.append(
            "together they do not clearly say more than the features: expect little from the graph"
        )
    return reasons


def _of_direction(audit: Audit) -> str:
    if not audit.directed:
        return "direction: none, every arc has its opposite"
    if audit.direction == "undirected":
        return "direction: undirected; no direction alone says clearly more"
    whom = {"out": "the nodes that a node points to", "in": "the nodes that point to a node"}
    return (
        f"direction: {audit.direction}; {whom[audit.direction]} say {audit.neighbours_say:.2f}, "
        f"all neighbours {audit.undirected_say:.2f}"
    )


def distrust(audit: Audit) -> list[str]:
    """What not to trust, of all that the audit knows."""
    found = []
    tests = max(audit.test_nodes, 1)
    largest = max(audit.known_sizes) / max(sum(audit.known_sizes), 1)
    if audit.close_twins >= 0.1 * tests and (audit.twin_agreement or 0) >= 0.9:
        found.append(
            f"the scores of this split leak: {audit.twins / tests:.0%} of the test nodes point to "
            f"exactly the same nodes as a training node, and {audit.twin_agreement:.0%} of such "
            "validation nodes with two links or more have its class; remove the duplicates first"
        )
    if audit.duplicates >= 0.01 * audit.nodes:
        found.append(
            f"{audit.duplicates} nodes have the same features and links as an earlier one; keep "
            "duplicates on one side of a split"
        )
    if audit.small_classes:
        found.append(
            f"fewer than three labels{_of_known(audit)}: class {first_few(audit.small_classes)}; "
            "no score is meaningful for it, so merge it with another or leave it out"
        )
    if largest >= 0.75:
        found.append(
            f"{_share(largest)} of the labels{_of_known(audit)} are of one class, so always "
            "predicting it is right as often; use balanced accuracy or the area under the ROC curve"
        )
    if 0 < audit.test_nodes < 200:
        found.append(
            f"one of the {audit.test_nodes} test nodes is worth {100 / audit.test_nodes:.1f} "
            "points of accuracy; compare means over many splits only"
        )
    if audit.isolated >= 0.1 * audit.nodes:
        found.append(
            f"{audit.isolated} of {audit.nodes} nodes have no neighbour; a graph cannot help them"
        )
    said = max(audit.features_say or 0, audit.neighbours_say or 0)
    if audit.neighbours_error is not None and not _says_something(said, audit.neighbours_error):
        found.append("neither features nor neighbours say anything; expect chance from any model")
    return found
