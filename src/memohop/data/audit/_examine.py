"""Examines a graph: what it is like, what predicts the labels, and what not to trust.

Advice follows by these rules. Labels of test nodes are never used. *Labels* are those of the
training and validation nodes here, and homophily is that between them; in a graph without splits,
all labels count.

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

import numpy as np
import torch
from numpy.typing import NDArray
from scipy import sparse

from memohop.data.arcs import matrix_of
from memohop.data.audit._measures import (
    FOLDS,
    Said,
    duplicates,
    homophily,
    informativeness_of_a_neighbour,
    probe,
    twins,
)
from memohop.data.check import as_columns, check_graph
from memohop.data.sparse_features import as_matrix, is_sparse
from memohop.data.tables import OwnGraph
from memohop.errors import UsageError, whole_number
from memohop.outputs import first_few
from memohop.pyg import Data

HEARD = {  # in each direction
    "out": "the nodes that a node points to",
    "in": "the nodes that point to a node",
    "undirected": "all neighbours, whichever way the arc goes",
}
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


@dataclass(frozen=True)
class Audit:
    """Plain numbers about a graph, and advice that follows from them; None is unknown.

    What features or neighbours *say* of the label is a balanced accuracy on the scale from chance,
    0, to always right, 1. The measures of homophily are those of the literature, on the undirected
    graph without self-loops and repeated arcs.

    Attributes:
        class_names: What the classes are called.
        class_sizes: How many nodes have each class as their label.
        known_sizes: How many of these are training or validation nodes, or all without splits.
        unlabelled: Number of nodes without a label.
        directed: Whether some arc has no opposite.
        multi_arcs: Number of repeated arcs.
        isolated: Number of nodes without an arc from or to another node.
        small_classes: Classes with one or two such nodes.
        duplicates: Number of nodes with the same features and links as an earlier one.
        edge_homophily: Share of the edges within a class.
        node_homophily: Mean share of a node's neighbours that are of its class.
        class_homophily: Class-insensitive homophily.
        adjusted_homophily: Edge homophily on the scale from chance, 0, to 1.
        known_homophily: The same between training and validation nodes alone, or between all nodes
            without splits.
        label_informativeness: How much of a label one neighbour's label tells, from 0 to 1.
        informativeness_out: The same for a node that this node points to, nodes counting alike.
        informativeness_in: The same for a node that points to this one.
        out_say: What the nodes that a node points to say; None if there is no direction.
        in_say: What the nodes that point to it say.
        undirected_say: What all its neighbours say.
        direction: The direction in which neighbours say most; see :func:`best_direction`.
        neighbours_say: What the neighbours say in that direction.
        neighbours_error: The standard error of ``neighbours_say``.
        together_say: What features and neighbours say together.
        split: The split that is examined; None if the graph has no splits.
        test_nodes: Number of its test nodes.
        twins: How many of them point to exactly the same nodes as a training node.
        close_twins: How many of these point to two nodes or more.
        twin_agreement: How often a training twin has the same class as a validation node; test
            labels are not used.

    Example:
        >>> import memohop
        >>> report = memohop.audit(memohop.load("csbm", nodes=200, homophily=0.9))
        >>> report.class_sizes
        (40, 40, 40, 40, 40)
        >>> report.adjusted_homophily > 0.5
        True
    """

    nodes: int
    arcs: int
    features: int
    class_names: tuple[str, ...]
    class_sizes: tuple[int, ...]
    known_sizes: tuple[int, ...]
    unlabelled: int
    directed: bool
    self_loops: int
    multi_arcs: int
    isolated: int
    small_classes: tuple[str, ...]
    duplicates: int
    edge_homophily: float | None
    node_homophily: float | None
    class_homophily: float | None
    adjusted_homophily: float | None
    known_homophily: float | None
    label_informativeness: float | None
    informativeness_out: float | None
    informativeness_in: float | None
    features_say: float | None
    out_say: float | None
    in_say: float | None
    undirected_say: float | None
    direction: str
    neighbours_say: float | None
    neighbours_error: float | None
    together_say: float | None
    split: int | None
    test_nodes: int
    twins: int
    close_twins: int
    twin_agreement: float | None

    @property
    def advice(self) -> Advice:
        """Model, direction and causes for distrust, by the rules of this module."""
        return advise(self)


def audit(data: Data | OwnGraph, split: int = 0, *, probes: bool = True) -> Audit:
    """Examine a graph in a few seconds.

    Sizes of classes, homophily and informativeness are those of all labels, as in papers. All
    else, and so the advice, comes from the labels of training and validation nodes; if the graph
    has no splits, from all labels.

    Args:
        data: A graph with ``x``, ``edge_index`` and ``y`` (negative for a node without a label),
            with or without splits; or a graph of your own from :mod:`memohop.data.tables`.
        split: The split to examine, if there are splits.
        probes: Whether to find out what features and neighbours say, which takes nearly all of
            the time, and without which there is no advice on models.

    Example:
        >>> import memohop
        >>> report = memohop.audit(memohop.load("csbm", nodes=200, homophily=0.1))
        >>> report.nodes, report.directed
        (200, False)
        >>> report.edge_homophily < 0.3
        True
    """
    names, of_edges = tuple[str, ...](), 0
    if isinstance(data, OwnGraph):
        if data.task == "numbers":
            raise UsageError(
                "the labels are numbers to predict, and an audit is for classes; name a column "
                "with groups of them, such as low and high (with task=classes, each is a class)"
            )
        of_edges = 0 if data.encoder is None else data.encoder.of_edges
        data, names = data.data, tuple(str(name) for name in data.classes)
    if not isinstance(data, Data):
        raise UsageError(
            f"data is of type {type(data).__name__} and no graph; give a Data of PyTorch Geometric "
            "or a graph from memohop.data.tables"
        )
    check_graph(data)
    x = as_matrix(data.x, torch.float32) if is_sparse(data.x) else data.x.cpu().numpy()
    y, arcs = (tensor.cpu().numpy() for tensor in (data.y, data.edge_index))
    if (y < 0).all():
        raise UsageError("data.y has no label; an audit needs some")
    sets = _sets(data, split)
    known = (y >= 0) & (sets[0] | sets[1] if "test_mask" in data else True)
    sizes = np.bincount(y[y >= 0], minlength=len(names))
    known_sizes = np.bincount(y[known], minlength=len(sizes))
    names = names or tuple(str(number) for number in range(len(sizes)))
    pointing = matrix_of(arcs, len(y))
    pointing.data[:] = 1
    links = _links(pointing)
    said = probe(x, links, y, known, of_edges) if probes else {}
    scores = {name: way.score for name, way in said.items()}
    direction = best_direction({name: said[name] for name in links}) if said else "undirected"
    either = links["undirected"]
    return Audit(
        nodes=len(y),
        arcs=arcs.shape[1],
        features=x.shape[1],
        class_names=names,
        class_sizes=tuple(sizes.tolist()),
        known_sizes=tuple(known_sizes.tolist()),
        unlabelled=int((y < 0).sum()),
        directed="out" in links,
        self_loops=int((arcs[0] == arcs[1]).sum()),
        multi_arcs=arcs.shape[1] - pointing.nnz,
        isolated=int((np.diff(either.indptr) == 0).sum()),
        small_classes=tuple(
            name for name, size in zip(names, known_sizes, strict=True) if 0 < size < FOLDS
        ),
        duplicates=duplicates(pointing, x),
        **homophily(either, y)._asdict(),
        known_homophily=homophily(either, np.where(known, y, -1)).adjusted_homophily,
        informativeness_out=informativeness_of_a_neighbour(links.get("out", either), y),
        informativeness_in=informativeness_of_a_neighbour(links.get("in", either), y),
        features_say=scores.get("features"),
        out_say=scores.get("out"),
        in_say=scores.get("in"),
        undirected_say=scores.get("undirected"),
        direction=direction,
        neighbours_say=scores.get(direction),
        neighbours_error=said[direction].error if said else None,
        together_say=scores.get(f"features and {direction}"),
        split=split if "test_mask" in data else None,
        test_nodes=int(sets[2].sum()),
        **twins(pointing, y, sets),
    )


def _sets(data: Data, split: int) -> list[NDArray[np.bool_]]:
    """Training, validation and test nodes of one split; none if there are no splits."""
    if "test_mask" not in data:
        return 3 * [np.zeros(len(data.y), dtype=bool)]
    split = whole_number("split", split, least=0)
    masks = as_columns(data)
    splits = masks[0].shape[1]
    if split >= splits:
        raise UsageError(f"split={split} does not exist; give one from 0 to {splits - 1}")
    return [mask[:, split].cpu().numpy() for mask in masks]


def _links(pointing: sparse.csr_array) -> dict[str, sparse.csr_array]:
    """The neighbours of each node by direction; there is only one if every arc has its opposite."""
    out = pointing.copy()
    out.setdiag(0)
    out.eliminate_zeros()
    into = out.T.tocsr()
    either = out.maximum(into)
    if either.nnz == out.nnz:
        return {"undirected": either}
    return {"out": out, "in": into, "undirected": either}


def best_direction(neighbours: Mapping[str, Said]) -> str:
    """The direction in which neighbours say most, or ``undirected`` if that says as much."""
    best, both = max(neighbours, key=lambda name: neighbours[name].score), neighbours["undirected"]
    score, error = neighbours[best]
    return best if _clearly_more(score, both.score, error) else "undirected"


def advise(audit: Audit) -> Advice:
    """Apply the rules above."""
    doubts, error = tuple(_distrust(audit)), audit.neighbours_error
    if audit.neighbours_say is None or error is None:
        reason = "fewer than two classes have three labels, which is too little to judge by"
        return Advice("mlp", audit.direction, (reason,), doubts)
    alike = audit.known_homophily or 0
    measured = f"(adjusted homophily {alike:.2f}{_of_known(audit)})"
    if not _says_something(audit.neighbours_say, error):
        model = "mlp"
        reason = (
            "a quick test finds nothing in the neighbours; also try gcn+mmp, which can learn to "
            "ignore them"
        )
    elif alike >= _ALIKE:
        model = "gcn"
        reason = f"neighbours are mostly alike {measured}; gcn+mmp should do as well"
    else:
        model = "gcn+mmp"
        reason = (
            f"the neighbours tell something, but are not alike {measured}, so a node must keep its "
            "own features"
        )
    reasons = [
        f"{model}: {reason}",
        f"the features alone say {audit.features_say:.2f} of the label, the neighbours alone "
        f"{audit.neighbours_say:.2f}, both together {audit.together_say:.2f} (0 is chance, 1 all)",
    ]
    if not _clearly_more(audit.together_say or 0, audit.features_say or 0, error):
        reasons.append(
            "together they do not clearly say more than the features: expect little from the graph"
        )
    return Advice(model, audit.direction, (*reasons, _of_direction(audit)), doubts)


def _says_something(score: float, error: float) -> bool:
    return score > max(_SOMETHING, 3 * error)


def _clearly_more(score: float, other: float, error: float) -> bool:
    return score - other > max(_MORE, 2 * error)


def _of_known(audit: Audit) -> str:
    """Which labels the advice is based on, if not all."""
    return "" if audit.split is None else " among training and validation nodes"


def _of_direction(audit: Audit) -> str:
    if not audit.directed:
        return "direction: none, every arc has its opposite"
    if audit.direction == "undirected":
        return "direction: undirected; no direction alone says clearly more"
    return (
        f"direction: {audit.direction}; {HEARD[audit.direction]} say {audit.neighbours_say:.2f}, "
        f"all neighbours {audit.undirected_say:.2f}"
    )


def _distrust(audit: Audit) -> list[str]:
    """What not to trust, of all that the audit knows."""
    doubts = []
    tests = max(audit.test_nodes, 1)
    largest = max(audit.known_sizes) / max(sum(audit.known_sizes), 1)
    if audit.close_twins >= 0.1 * tests and (audit.twin_agreement or 0) >= 0.9:
        doubts.append(
            f"the scores of this split leak: {audit.twins / tests:.0%} of the test nodes point to "
            f"exactly the same nodes as a training node, and {audit.twin_agreement:.0%} of such "
            "validation nodes with two links or more have its class; remove the duplicates first"
        )
    if audit.duplicates >= 0.01 * audit.nodes:
        doubts.append(
            f"{audit.duplicates} nodes have the same features and links as an earlier one; keep "
            "duplicates on one side of a split"
        )
    if audit.small_classes:
        doubts.append(
            f"fewer than three labels{_of_known(audit)}: class {first_few(audit.small_classes)}; "
            "no score is meaningful for it, so merge it with another or leave it out"
        )
    if largest >= 0.75:
        share = "more than 99%" if 0.995 <= largest < 1 else f"{largest:.0%}"
        doubts.append(
            f"{share} of the labels{_of_known(audit)} are of one class, so always "
            "predicting it is right as often; use balanced accuracy or the area under the ROC curve"
        )
    if 0 < audit.test_nodes < 200:
        doubts.append(
            f"one of the {audit.test_nodes} test nodes is worth {100 / audit.test_nodes:.1f} "
            "points of accuracy; compare means over many splits only"
        )
    if audit.isolated >= 0.1 * audit.nodes:
        doubts.append(
            f"{audit.isolated} of {audit.nodes} nodes have no neighbour; a graph cannot help them"
        )
    said = max(audit.features_say or 0, audit.neighbours_say or 0)
    if audit.neighbours_error is not None and not _says_something(said, audit.neighbours_error):
        doubts.append("neither features nor neighbours say anything; expect chance from any model")
    return doubts
