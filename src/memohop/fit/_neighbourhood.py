r"""Features from a node's neighbours: means of their columns, and shares of their labels.

A :class:`Way` says which neighbours: all of them, those that a node's arcs go to or come from, or
those of one relation. With the adjacency matrix :math:`\mathbf{A}` of a way (of all neighbours,
every pair once, no self-loops) and the degrees :math:`d_i`, the mean over one hop is
:math:`\bar{\mathbf{X}}^1 = \mathbf{D}^{-1} \mathbf{A}\mathbf{X}`, and over two hops
:math:`\bar{\mathbf{X}}^2 = \mathbf{D}^{-1}\mathbf{A} \bar{\mathbf{X}}^1`. Given the labels that may
be used, :math:`\mathbf{Y}` with a row of zeros for a node without one, a node gets the shares

.. math::
    \mathbf{S}^1 = \frac{\mathbf{A}\mathbf{Y}}{\mathbf{A}\mathbf{1}_Y}, \qquad
    \mathbf{S}^2 = \frac{(\mathbf{A}^2 - \operatorname{diag}(\mathbf{A}^2))\mathbf{Y}}
        {(\mathbf{A}^2 - \operatorname{diag}(\mathbf{A}^2))\mathbf{1}_Y}

where :math:`\mathbf{1}_Y` marks the nodes with a label. A walk of two steps may return: the
diagonal of :math:`\mathbf{A}^2` is left out, so a node never uses its own label. That takes no
product of matrices. The diagonal matters in the column of a node's own class :math:`c = y_i` alone,
where its neighbour :math:`j` sends the sum over the others,

.. math:: \sum_{k \neq i,\, y_k = c} A_{jk} = (\mathbf{A}\mathbf{Y})_{jc} - A_{ji}.

If :math:`A_{ji}` is more than half of :math:`(\mathbf{A}\mathbf{Y})_{jc}`, the difference would be
left with its rounding error, and so with a trace of the label: there the sum is made without it. At
most one neighbour of :math:`j` in each class is so heavy.

If nodes have times, :math:`A_{ij}` is 0 unless :math:`i` may collect from :math:`j`
(:func:`~memohop.data.arcs.collects`). A row is what a node receives, so nothing that is made of the
rows, or of products of such matrices, knows what came later.

Along a relation :math:`\mathbf{A}` has the share of each arc's rows that are of it. Where arcs come
again, a way may also count each neighbour as often as its arc comes.

What structure says without columns and labels is in :mod:`memohop.fit._structure`.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from memohop.data.arcs import NUMBER_OF_EDGES, ArcAttribute, collects, matrix_of
from memohop.errors import UsageError
from memohop.fit._saved import Sizes
from memohop.fit._structure import COSTLY, spread, structure, triangles_cost

Matrix: TypeAlias = Any  # NDArray[np.float32] or sparse.csr_array, which has no type parameters

Rows: TypeAlias = NDArray[np.int64] | slice
"""Some of the nodes."""
EVERY = slice(None)

_UNSURE = 1.0  # weight of the overall shares, in labels, beside a node's neighbours


class Way(NamedTuple):
    """Which other nodes a node collects from, by their arcs."""

    direction: Literal["both", "out", "in"] = "both"
    attribute: int | None = None  # a relation, or how often an arc comes; None for every arc alike

    def named(self, described: Sequence[ArcAttribute]) -> str:
        """Its name before that of a feature, given what the attributes are."""
        direction = "" if self.direction == "both" else f"{self.direction} "
        return direction + ("" if self.attribute is None else f"{described[self.attribute].name} ")


MERGED = Way()
"""All neighbours, whatever their arcs."""
APART = 500
"""About the most features that relations make together."""
_RELATIONS = 8  # that are ways, the most frequent ones
_RARE = 10  # arcs of a relation that say too little
_DIRECTIONS: tuple[Literal["both", "out", "in"], ...] = ("both", "out", "in")


class Neighbourhood:
    """The adjacency matrix of a graph, and matrices derived from it.

    Args:
        arcs: ``[2, arcs]``, sources above targets.
        nodes: The number of nodes.
        weights: Of the arcs, those of the same pair added up; by default all pairs count 1.
        directed: Whether directions count; by default, if some arc lacks its opposite.
        times: Of the nodes, NaN where missing; by default all collect from each other.
        attributes: Of the arcs, ``[arcs, attributes]``.
        described: What each attribute is.
    """

    def __init__(
        self,
        arcs: NDArray[np.int64],
        nodes: int,
        weights: NDArray[np.float32] | None = None,
        directed: bool | None = None,
        times: NDArray[np.float64] | None = None,
        attributes: NDArray[np.float32] | None = None,
        described: Sequence[ArcAttribute] = (),
    ) -> None:
        proper = arcs[0] != arcs[1]
        self._arcs, self._weights, self._times = arcs, weights, times
        self._attributes, self._described = attributes, described
        self.out = matrix_of(arcs[:, proper], nodes, None if weights is None else weights[proper])
        if weights is None:
            self.out.data[:] = 1
        self.directed = not self.is_symmetric if directed is None else directed
        if times is not None:
            whole = self.out
            vars(self).pop("is_symmetric", None)  # of the whole
            self.out, self.into = (_earlier(way, times) for way in (whole, whole.T))

    @cached_property
    def into(self) -> sparse.csr_array:
        """The same with arcs reversed: a row for each target."""
        return sparse.csr_array(self.out.T)

    @cached_property
    def both(self) -> sparse.csr_array:
        """Every neighbour, in either direction."""
        return self.out if self.is_symmetric else sparse.csr_array(self.out.maximum(self.into))

    @cached_property
    def is_symmetric(self) -> bool:
        """Whether a node collects the same from either end: every arc has its opposite."""
        return (self.out != self.into).nnz == 0

    @property
    def ways(self) -> tuple[Way, ...]:
        """The ways of arcs alike: of all neighbours, and in a directed graph of either side."""
        return (MERGED, Way("out"), Way("in")) if self.directed else (MERGED,)

    def ways_apart(self, classes: int, numbers: int) -> tuple[Way, ...]:
        """Also those of the most frequent relations, by side, and where arcs come again, how often.

        There are as many relations as features allow, of which each makes one for every class and
        every number. One of few arcs, or of all, says nothing.
        """
        sides = self.ways[1:] or self.ways
        if self._attributes is None:
            return self.ways
        share = self._attributes.sum(axis=0)
        relations = [
            number
            for number in np.argsort(-share, kind="stable").tolist()
            if self._described[number].is_relation
            and _RARE <= share[number] < len(self._attributes)
        ]
        each = numbers + max(classes, 1) + 2  # with the number of labels, and the degree
        count = min(_RELATIONS, max(APART // (each * len(sides)) - 1, 1))
        again = [n for n, (name, _) in enumerate(self._described) if name == NUMBER_OF_EDGES]
        chosen = [*again, *relations[:count]]
        return (*self.ways, *(Way(side.direction, number) for number in chosen for side in sides))

    def matrix(self, way: Way) -> sparse.csr_array:
        """The neighbours along a way, with their weights."""
        if way.attribute is None:
            return {"both": self.both, "out": self.out, "in": self.into}[way.direction]
        assert self._attributes is not None
        values = self._attributes[:, way.attribute]
        if not self._described[way.attribute].is_relation:
            values = np.exp(values)
        if self._weights is not None:
            values = values * self._weights
        kept = (values > 0) & (self._arcs[0] != self._arcs[1])
        out = matrix_of(self._arcs[:, kept], self.out.shape[0], values[kept])
        ends = {"out": out, "in": sparse.csr_array(out.T)}
        if self._times is not None:
            ends = {name: _earlier(end, self._times) for name, end in ends.items()}
        if way.direction == "both":
            return sparse.csr_array(ends["out"].maximum(ends["in"]))
        return ends[way.direction]

    def degrees(self, ways: Sequence[Way] | None = None) -> NDArray[np.float32]:
        """The logarithm of one plus the degree, by each of some ways; by default :attr:`ways`."""
        ways = self.ways if ways is None else ways
        sums = [np.log1p(self.matrix(way).sum(axis=1, dtype=np.float64)) for way in ways]
        return np.stack(sums, axis=1).astype(np.float32)

    def mean(self, x: Matrix, rows: Rows = EVERY, way: Way = MERGED) -> Matrix:
        """The mean of some columns over the neighbours; zeros for a node without neighbours."""
        averaging = self._averaging if way == MERGED else _averaging(self.matrix(way))
        return _of_rows(averaging, rows) @ x

    @cached_property
    def _averaging(self) -> sparse.csr_array:
        return _averaging(self.both)

    def spread(self, x: Matrix, rows: Rows = EVERY) -> NDArray[np.float32]:
        """Least and greatest value of some columns over the neighbours, and standard deviation."""
        dense = x.toarray() if sparse.issparse(x) else x
        return np.hstack(spread(_of_rows(self.both, rows), dense)).astype(np.float32)

    def structure(self, *, triangles: bool) -> dict[str, NDArray[np.float64]]:
        """What structure says of each node, by name; see :func:`memohop.fit._structure`."""
        if triangles not in self._structures:
            onward = [self.out, self.into] if self.directed else [self.both]
            self._structures[triangles] = structure(self.both, onward, triangles=triangles)
        return self._structures[triangles]

    @cached_property
    def has_few_triangles(self) -> bool:
        """Whether it takes at most a few seconds to count triangles."""
        return triangles_cost(self.both) <= COSTLY

    @cached_property
    def _structures(self) -> dict[bool, dict[str, NDArray[np.float64]]]:
        return {}

    def label_shares(
        self,
        y: NDArray[Any],
        classes: int,
        overall: NDArray[Any] | None = None,
        rows: Rows = EVERY,
        ways: Sequence[Way] | None = None,
    ) -> NDArray[np.float32]:
        """The known labels one hop and two hops away; one hop alone along an attribute.

        For classes, the share of each one, drawn towards its overall share as if the node had one
        more neighbour; for numbers, their mean in the same way. Beside them is the logarithm of the
        number of labels.

        Args:
            y: Class numbers, -1 for unknown; or numbers, NaN for unknown.
            classes: The number of classes; 0 for numbers.
            overall: The overall shares, or the overall mean; by default those of ``y``.
            rows: The nodes to compute them for; by default all.
            ways: By default those of arcs alike, :attr:`ways`.
        """
        marked, ones = is_known(y, classes), np.ones(len(y))
        if classes:
            group, summands = y, [ones]
        else:
            group, summands = np.where(marked, 0, -1), [np.where(marked, y, 0.0), ones]
        overall = overall_of(y, classes) if overall is None else overall
        shares = []
        for way in self.ways if ways is None else ways:
            matrix, hops = self.matrix(way), 2 if way.attribute is None else 1
            sums = [
                _sums(matrix, group, values, max(classes, 1), rows, hops) for values in summands
            ]
            shares += [
                drawn(hop[0], hop[-1].sum(axis=1, keepdims=True), overall)
                for hop in zip(*sums, strict=True)
            ]
        return np.hstack(shares).astype(np.float32)


def is_known(y: NDArray[Any], classes: int) -> NDArray[np.bool_]:
    """Which nodes have a label."""
    return y >= 0 if classes else ~np.isnan(y)


def overall_of(y: NDArray[Any], classes: int) -> NDArray[np.float64]:
    """The share of each class among the labels, or the mean of the numbers."""
    labels = y[is_known(y, classes)]
    total = np.bincount(labels, minlength=classes) if classes else labels.sum()
    return np.atleast_1d(total / len(labels))


def drawn(
    sums: NDArray[np.float64], count: NDArray[np.float64], overall: NDArray[Any]
) -> NDArray[np.float64]:
    """Shares or mean, drawn towards the overall ones, and the logarithm of the number of labels."""
    shares = (sums + _UNSURE * overall) / (count + _UNSURE)
    return np.hstack([shares, np.log1p(count)])


def _sums(
    way: sparse.csr_array,
    group: NDArray[np.int64],
    values: NDArray[np.float64],
    groups: int,
    rows: Rows,
    hops: int,
) -> list[NDArray[np.float64]]:
    """Sums of the nodes' values by group, over some nodes' neighbours and over those of these.

    The latter, for two hops, are what each neighbour sends: its sum without the term of who
    receives it. Nodes of a negative group do not count.
    """
    counted, shape = np.flatnonzero(group >= 0), (len(group), groups)
    own = sparse.csr_array((values[counted], (counted, group[counted])), shape=shape)
    if hops == 1:
        return [(_of_rows(way, rows) @ own).toarray()]
    sums = sizes = (way @ own).toarray()
    if (values < 0).any():
        sizes = (way @ abs(own)).toarray()
    terms = way.data * np.where(group < 0, 0, values)[way.indices]
    light = way.copy()
    light.data[_is_heavy(terms, sizes[_rows_of(way), group[way.indices]])] = 0
    lighter = (light @ own).toarray()

    some, nodes = _of_rows(way, rows), np.arange(len(group))[rows]
    received, at = some @ sums, _rows_of(some)
    known = group[nodes] >= 0
    at, sender, weight = (each[known[at]] for each in (at, some.indices, some.data))
    receiver = nodes[at]
    term, place = way[sender, receiver] * values[receiver], (sender, group[receiver])
    sent = np.where(_is_heavy(term, sizes[place]), lighter[place], sums[place] - term)
    received[known, group[nodes[known]]] = np.bincount(at, weight * sent, len(nodes))[known]
    return [sums[rows], received]


def _averaging(matrix: sparse.csr_array) -> sparse.csr_array:
    """The matrix with rows that add up to 1, or are empty."""
    totals = matrix.sum(axis=1)
    inverse = np.divide(1, totals, out=np.zeros(len(totals)), where=totals > 0)
    return sparse.csr_array(sparse.diags_array(inverse.astype(np.float32)) @ matrix)


def _earlier(way: sparse.csr_array, times: NDArray[np.float64]) -> sparse.csr_array:
    """A matrix with only those entries by which the node of the row may collect."""
    pairs = sparse.coo_array(way)
    may, _ = collects(np.stack(pairs.coords), times)
    row, column = (ends[may] for ends in pairs.coords)
    return sparse.csr_array((pairs.data[may], (row, column)), shape=way.shape)


def _is_heavy(terms: NDArray[np.float64], sizes: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Whether a term is more than half of its sum."""
    return 2 * np.abs(terms) > sizes


def _rows_of(matrix: sparse.csr_array) -> NDArray[np.int32]:
    """The row of each entry."""
    return np.repeat(np.arange(matrix.shape[0], dtype=np.int32), np.diff(matrix.indptr))


def _of_rows(matrix: sparse.csr_array, rows: Rows) -> sparse.csr_array:
    """Some rows of a matrix; all of them without a copy."""
    return matrix if rows is EVERY else matrix[rows]


def as_numbers(ways: Sequence[Way]) -> NDArray[np.int64]:
    """Ways as they are saved: the number of the direction, and of the attribute or -1."""
    numbers = [(_DIRECTIONS.index(side), -1 if n is None else n) for side, n in ways]
    return np.array(numbers, dtype=np.int64)


def ways_from(numbers: NDArray[np.int64], sizes: Sizes) -> tuple[Way, ...]:
    """The ways that were saved; a ``UsageError`` if there are none such in the graph."""
    ways, directions = [], _DIRECTIONS if sizes.directed else _DIRECTIONS[:1]
    for side, number in numbers.tolist():
        if not 0 <= side < len(directions) or not -1 <= number < len(sizes.described):
            raise UsageError(
                f"a part collects along {[side, number]}, which the graph does not have"
            )
        if number >= 0:
            name, is_relation = sizes.described[number]
            if not is_relation and name != NUMBER_OF_EDGES:
                raise UsageError(f"a part collects along {name!r}, which is no relation")
        ways.append(Way(directions[side], None if number < 0 else number))
    if ways[:1] != [MERGED] or len({*ways}) < len(ways):
        raise UsageError("the ways of a part do not begin with all neighbours, or come again")
    return tuple(ways)
