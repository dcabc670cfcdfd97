"""How Numba compiles the loops of :mod:`.kernels`: at their first use, then cached.

Each loop goes through the matrices from ``first`` to ``last``, or through those rows of all
matrices. Indices are unsigned because Numba checks the sign of each signed index. Functions that
allow it may sum in another order than written, which lets the compiler vectorise the sums;
infinities and NaN are respected everywhere.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numba
import numpy as np
from numba.core.compiler_lock import global_compiler_lock

Float, Int, Index, Word = np.float32, np.int32, np.uint64, np.uint32
_OPTIONS = {"cache": True, "nogil": True, "error_model": "numpy"}
_IN_ORDER, _IN_ANY_ORDER = {"contract"}, {"contract", "reassoc", "nsz"}


def jit(function: Callable[..., Any]) -> Any:
    """A loop whose sums are taken in the order in which they are written."""
    return _with_vectors(numba.njit(**_OPTIONS, fastmath=_IN_ORDER)(function))


def jit_in_any_order(function: Callable[..., Any]) -> Any:
    """A loop whose sums may be taken in any order."""
    return _with_vectors(numba.njit(**_OPTIONS, fastmath=_IN_ANY_ORDER)(function))


def _with_vectors(dispatcher: Any) -> Any:
    """Always compile sums that are written side by side in this loop into one vector.

    Numba has one switch for that, which applies to the whole process. The lock keeps other
    compilations away while it is on.
    """
    if numba.config.DISABLE_JIT:  # a plain function, for debugging
        return dispatcher
    compile_plainly = dispatcher.compile

    def compile_with_vectors(signature: Any) -> Any:
        with global_compiler_lock:
            before = numba.config.SLP_VECTORIZE
            numba.config.SLP_VECTORIZE = 1
            try:
                return compile_plainly(signature)
            finally:
                numba.config.SLP_VECTORIZE = before

    dispatcher.compile = compile_with_vectors
    return dispatcher
