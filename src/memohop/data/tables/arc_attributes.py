"""What the rows of an edge table say of each arc, those of the same arc taken together.

A row of the table has features, as one of a node table would have. An arc has their mean over its
rows: of a number the mean, and of a category the share of each value. If some arc comes again, the
logarithm of the number of rows is one more attribute. In a graph without directions, both arcs of a
pair have the mean over the rows of either.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from memohop.data.arcs import LARGEST_ATTRIBUTES
from memohop.data.tables.columns import ColumnEncoder, EdgeColumns
from memohop.data.tables.links import EdgeRows, Links, totals


def fits_in_ram(columns: EdgeColumns, rows: EdgeRows, links: Links) -> bool:
    """Whether the attributes that columns would make are few enough to be kept."""
    return len(columns.attributes) * max(rows.ends.shape[1], links.arcs.shape[1]) <= (
        LARGEST_ATTRIBUTES
    )


def comes_again(rows: EdgeRows, links: Links, nodes: int) -> bool:
    """Whether an arc has several rows; where all are listed both ways, those of one way count."""
    return bool(_times(rows, links, nodes).max(initial=1) > 1)


def arc_attributes(
    columns: EdgeColumns, rows: EdgeRows, links: Links, nodes: int
) -> tuple[NDArray[np.float32] | None, list[str]]:
    """The attributes, ``[arcs, attributes]``, if there are any, and notes on values without one."""
    made, notes = list[NDArray[np.float32]](), list[str]()
    if columns.on_arcs:
        features, notes = ColumnEncoder(columns.columns).transform(rows.columns)
        means = _averaging(rows, links, nodes) @ features
        made.append(means.toarray() if sparse.issparse(means) else means)
    if columns.repeated:
        made.append(np.log(_times(rows, links, nodes))[:, None])
    return np.hstack(made).astype(np.float32, copy=False) if made else None, notes


def _times(rows: EdgeRows, links: Links, nodes: int) -> NDArray[np.float64]:
    """How often each arc comes."""
    return totals(links.arcs, rows.ends, None, nodes=nodes, directed=links.directed)


def _averaging(rows: EdgeRows, links: Links, nodes: int) -> sparse.csr_array:
    """The matrix ``[arcs, rows]`` that takes the mean over the rows of an arc."""
    ends, every = rows.ends, np.arange(rows.ends.shape[1])
    if not links.directed:
        other = ends[0] != ends[1]
        ends, every = np.hstack([ends, ends[::-1, other]]), np.concatenate([every, every[other]])
    arc = np.searchsorted(links.arcs[0] * nodes + links.arcs[1], ends[0] * nodes + ends[1])
    share = (1 / np.bincount(arc, minlength=links.arcs.shape[1]))[arc].astype(np.float32)
    return sparse.csr_array((share, (arc, every)), shape=(links.arcs.shape[1], rows.ends.shape[1]))
