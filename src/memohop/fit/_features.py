"""What a feature means, and features side by side."""

from __future__ import annotations

from typing import Literal, NamedTuple

import numpy as np
from scipy import sparse

from memohop.fit._neighbourhood import Matrix


class Feature(NamedTuple):
    """A feature's meaning: its source, and its column, node or direction."""

    source: Literal[
        "own",
        "edges",
        "one hop",
        "two hops",
        "least",
        "greatest",
        "spread",
        "degree",
        "structure",
        "labels",
        "values",
        "rows",
        "position",
        "network",
        "around",
    ]  # networks take own columns and those of the nodes around together
    name: str


def side_by_side(parts: list[Matrix]) -> Matrix:
    """Blocks of features as one matrix, sparse if one of them is."""
    if any(sparse.issparse(part) for part in parts):
        return sparse.csr_array(sparse.hstack(parts, format="csr", dtype=np.float32))
    return np.hstack(parts).astype(np.float32, copy=False)
