"""Examines a graph: what it is like, what predicts the labels, and what not to trust."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from scipy import sparse

from memohop.data.adjacency import matrix_of
from memohop.data.arguments import whole_number
from memohop.data.audit.advice import Advice, advise, best_direction
from memohop.data.audit.homophily import homophily, informativeness_of_a_neighbour
from memohop.data.audit.probes import FOLDS, probe
from memohop.data.audit.twins import duplicates, link_keys, twin_agreement, twins
from memohop.data.check import as_columns, check_graph
from memohop.data.sparse_features import as_matrix, is_sparse
from memohop.data.tables.read import OwnGraph
from memohop.errors import UsageError
from memohop.pyg import Data


@dataclass(frozen=True)
class Audit:
    """Plain numbers about a graph, and advice that follows from them; None is unknown.

    What features or neighbours *say* of the label is a balanced accuracy on the scale from chance,
    0, to always right, 1; see :mod:`memohop.data.audit.probes`. The measures of homophily are those
    of :mod:`memohop.data.audit.homophily`, on the undirected graph without self-loops and repeated
    arcs.

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
        >>> found = memohop.audit(memohop.load("csbm", nodes=200, homophily=0.9))
        >>> found.class_sizes
        (40, 40, 40, 40, 40)
        >>> found.adjusted_homophily > 0.5
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
        """Model, direction and causes for distrust; see :mod:`memohop.data.audit.advice`."""
        return advise(self)


def audit(data: Data | OwnGraph, split: int = 0, *, probes: bool = True) -> Audit:
    """Examine a graph in a few seconds; :mod:`memohop.data.audit.advice` has the rules of advice.

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
        >>> found = memohop.audit(memohop.load("csbm", nodes=200, homophily=0.1))
        >>> found.nodes, found.directed
        (200, False)
        >>> found.edge_homophily < 0.3
        True
    """
    names: tuple[str, ...] = ()
    if not isinstance(data, Data | OwnGraph):
        raise UsageError(
            f"data is of type {type(data).__name__} and no graph; give a Data of PyTorch Geometric "
            "or a graph from memohop.data.tables"
        )
    if isinstance(data, OwnGraph):
        if data.task == "numbers":
            raise UsageError(
                "the labels are numbers, and an audit is for classes; say task=classes"
            )
        data, names = data.data, tuple(str(name) for name in data.classes)
    check_graph(data)
    x = as_matrix(data.x, torch.float32) if is_sparse(data.x) else data.x.cpu().numpy()
    y, arcs = (tensor.cpu().numpy() for tensor in (data.y, data.edge_index))
    if (y < 0).all():
        raise UsageError("data.y has no label; an audit needs some")
    train, val, test = _sets(data, split)
    known = (y >= 0) & (train | val if "test_mask" in data else True)
    sizes = np.bincount(y[y >= 0], minlength=len(names))
    known_sizes = np.bincount(y[known], minlength=len(sizes))
    names = names or tuple(str(number) for number in range(len(sizes)))
    pointing = _matrix(arcs, len(y))
    links = _links(_matrix(arcs[:, arcs[0] != arcs[1]], len(y)))
    agreement = homophily(links["undirected"], y)
    said = probe(x, links, y, known) if probes else None
    direction = best_direction(said.neighbours) if said else "undirected"
    scores = {name: found.score for name, found in said.neighbours.items()} if said else {}
    keys = link_keys(pointing)
    degree, learnt = np.diff(pointing.indptr), train & (y >= 0)
    of_twins = twins(keys, degree, learnt, test)
    informativeness = [
        informativeness_of_a_neighbour(links[name], y) for name in ("out", "in") if name in links
    ] or 2 * [informativeness_of_a_neighbour(links["undirected"], y)]
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
        isolated=int((np.diff(links["undirected"].indptr) == 0).sum()),
        small_classes=tuple(
            name for name, size in zip(names, known_sizes, strict=True) if 0 < size < FOLDS
        ),
        duplicates=duplicates(keys, x),
        edge_homophily=agreement.edge,
        node_homophily=agreement.node,
        class_homophily=agreement.class_insensitive,
        adjusted_homophily=agreement.adjusted,
        known_homophily=homophily(links["undirected"], np.where(known, y, -1)).adjusted,
        label_informativeness=agreement.informativeness,
        informativeness_out=informativeness[0],
        informativeness_in=informativeness[1],
        features_say=said.features.score if said else None,
        out_say=scores.get("out"),
        in_say=scores.get("in"),
        undirected_say=scores.get("undirected"),
        direction=direction,
        neighbours_say=scores.get(direction),
        neighbours_error=said.neighbours[direction].error if said else None,
        together_say=said.together[direction].score if said else None,
        split=split if "test_mask" in data else None,
        test_nodes=int(test.sum()),
        twins=of_twins.twins,
        close_twins=of_twins.close,
        twin_agreement=twin_agreement(keys, degree, y, learnt, val & (y >= 0)),
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


def _matrix(arcs: NDArray[np.int64], nodes: int) -> sparse.csr_array:
    """A matrix with 1 where the row points to the column, columns in order."""
    matrix = matrix_of(arcs, nodes)
    matrix.data[:] = 1
    return matrix


def _links(out: sparse.csr_array) -> dict[str, sparse.csr_array]:
    """The neighbours of each node by direction; there is only one if every arc has its opposite."""
    into = out.T.tocsr()
    either = out.maximum(into)
    if either.nnz == out.nnz:
        return {"undirected": either}
    return {"out": out, "in": into, "undirected": either}
