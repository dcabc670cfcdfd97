"""Reads arrays from NumPy's ``.npz`` archives, without ever unpickling."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from memohop.errors import DataError


def read_npz(path: Path, names: Sequence[str]) -> list[NDArray[Any]]:
    """The arrays with these names; if the archive is not readable, a :class:`DataError`."""
    try:
        with path.open("rb") as file, np.load(file, allow_pickle=False) as archive:
            return [np.asarray(archive[name]) for name in names]
    except Exception as error:  # a damaged archive fails in a dozen ways
        raise DataError(
            f"{path} is not an archive of the arrays {', '.join(names)}: {error!r}; fetch it again"
        ) from error


def as_masks(
    path: Path, arrays: Sequence[NDArray[Any]], *, shape: tuple[int, ...]
) -> tuple[NDArray[np.bool_], ...]:
    """The arrays as boolean masks, once their type and shape are checked."""
    for array in arrays:
        if array.shape != shape or array.dtype.kind not in "biu":
            raise DataError(
                f"{path} has a mask of shape {array.shape} and type {array.dtype} instead "
                f"of a boolean one of shape {shape}; fetch it again"
            )
    return tuple(array.astype(bool) for array in arrays)
