"""How Numba compiles the loops of :mod:`memohop.nn.cpu_kernels`: at their first use, and kept.

Each loop goes through the matrices from ``first`` to ``last``, or through such rows of all of
them. Indices are unsigned, since Numba would look at each signed one for its sign. Sums may be
taken in another order than written, which makes vectors of them, in the functions that say so;
infinities and NaN count everywhere.
"""

from __future__ import annotations

import numba
import numpy as np

numba.config.SLP_VECTORIZE = 1  # makes one vector of sums that are written side by side

Float, Int, Index, Word = np.float32, np.int32, np.uint64, np.uint32
_OPTIONS = {"cache": True, "nogil": True, "error_model": "numpy"}
jit = numba.njit(**_OPTIONS, fastmath={"contract"})
jit_in_any_order = numba.njit(**_OPTIONS, fastmath={"contract", "reassoc", "nsz"})
