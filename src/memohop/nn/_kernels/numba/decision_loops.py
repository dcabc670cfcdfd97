"""The loops of dropout and a narrow linear map in one pass, for :mod:`.kernels`.

They handle one node after the other, so a row after dropout is never written to RAM.
"""

from __future__ import annotations

import numpy as np

from memohop.nn._kernels.numba.compile import Float, jit
from memohop.nn._kernels.numba.dropout_loops import draw
from memohop.nn._kernels.numba.product_loops import dot

_ROWS_AT_ONCE = 256  # a sum of sums is more exact than one long sum


@jit
def dropped_linear(first, last, values, weight, words, thresholds, scales, rows, out):
    """The product of each row after dropout with each row of the weight."""
    nodes, width = values.shape[1:]
    mask = np.empty(width, np.float32)
    for k in range(first, last):
        for i in range(nodes):
            draw(mask, rows, i, words[k], thresholds[k], scales[k])
            row = values[k, i]
            for d in range(width):
                mask[d] *= row[d]
            for c in range(weight.shape[1]):
                out[k, i, c] = dot(mask, weight[k, c])


@jit
def _has_any(row):
    found = False
    for value in row:
        found |= value != Float(0)
    return found


@jit
def _add(sums, factor, row):
    for d in range(len(sums)):
        sums[d] += factor * row[d]


@jit
def dropped_linear_backward(
    first, last, values, weight, words, thresholds, scales, rows, grad, of_values, of_weight
):
    """The sums in ``of_weight`` start at zero; a node without gradient needs no mask."""
    nodes, width = values.shape[1:]
    mask, left = np.empty(width, np.float32), np.empty(width, np.float32)
    part = np.zeros(weight.shape[1:], np.float32)
    for k in range(first, last):
        for i in range(nodes):
            ours, above = of_values[k, i], grad[k, i]
            ours[:] = Float(0)
            if _has_any(above):
                draw(mask, rows, i, words[k], thresholds[k], scales[k])
                row = values[k, i]
                for d in range(width):
                    left[d] = row[d] * mask[d]
                for c in range(len(above)):
                    _add(ours, above[c], weight[k, c])
                    _add(part[c], above[c], left)
                for d in range(width):
                    ours[d] *= mask[d]
            if (i + 1) % _ROWS_AT_ONCE == 0 or i + 1 == nodes:
                of_weight[k] += part
                part[:] = Float(0)
