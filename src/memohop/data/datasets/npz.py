"""Reads arrays out of NumPy's `.npz` archives, without ever unpickling."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from memohop.errors import DataError


def read_npz(path: Path, names: Sequence[str]) -> list[NDArray[Any]]:
    """The arrays called `names`; anything that is not such an archive is a `DataError`."""
    try:
        with path.open("rb") as file, np.load(file, allow_pickle=False) as archive:
            return [np.asarray(archive[name]) for name in names]
    except Exception as error:  # a damaged archive fails in a dozen ways
        raise DataError(
            f"{path} is not an archive of the arrays {', '.join(names)}: {error!r}; fetch it anew"
        ) from error


def as_masks(
    path: Path, arrays: Sequence[NDArray[Any]], *, shape: tuple[int, ...]
) -> tuple[NDArray[np.bool_], ...]:
    """The arrays as boolean masks, after a look at their type and shape."""
    for array in arrays:
        if array.shape != shape or array.dtype.kind not in "biu":
            raise DataError(
                f"{path} has a mask of shape {array.shape} and type {array.dtype} where a "
                f"boolean one of shape {shape} belongs; fetch it anew"
            )
    return tuple(array.astype(bool) for array in arrays)
