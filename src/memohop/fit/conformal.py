r"""The distance from a prediction within which nine of ten new numbers are.

It is the distance of rank :math:`\lceil (n + 1) p \rceil` among the :math:`n` distances between
prediction and truth of validation nodes: a new node is within it with probability :math:`p` or
more, as it is as likely to have any rank among them. If there is no such rank, as for fewer than 9
nodes, it is infinite.

If nodes have groups, those of a new group are as far from these as they are from each other. So
each group counts once, in equal parts for its nodes (Y. Lee, R. F. Barber and R. Willett,
*Distribution-free inference with hierarchical data*, 2023): of :math:`K` groups, :math:`(K + 1) p`
must be within the distance.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

_WITHIN = 0.9  # share of numbers in their interval
_ROUNDING = 1e-12


def reach(distances: NDArray[np.float64], groups: NDArray[Any] | None = None) -> float:
    """The distance that holds for new nodes; infinite if these are too few.

    Args:
        distances: Between prediction and truth, of nodes that were not learned from.
        groups: The group of each of them; None if each is one by itself.
    """
    group = np.arange(len(distances))
    if groups is not None:
        group = np.unique(groups, return_inverse=True)[1]
    order, sizes = np.argsort(distances), np.bincount(group)
    within = np.cumsum(1 / sizes[group[order]])
    needed = (len(sizes) + 1) * _WITHIN * (1 - _ROUNDING)
    rank = int(np.searchsorted(within, needed))
    return float(distances[order[rank]]) if rank < len(order) else math.inf
