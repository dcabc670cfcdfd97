"""The loops of MMP's gated update and of the cosine, for :mod:`.gate_kernels`.

They handle one node after the other: a row of each matrix stays in the cache until all work on
it is done.
"""

from __future__ import annotations

import numpy as np

from memohop.nn._kernels.numba.compile import Float, jit, jit_in_any_order
from memohop.nn._kernels.numba.dropout_loops import draw
from memohop.nn._kernels.numba.product_loops import dot

_ROWS_AT_ONCE = 256  # a sum of sums is more exact than one long sum


@jit_in_any_order
def _scores(hidden, message, mask, message_mask, weight, bias):
    width = len(hidden)
    first, second, third = bias[0], bias[1], bias[2]
    for d in range(width):
        dropped = hidden[d] * mask[d]
        first += dropped * weight[0, d]
        second += dropped * weight[1, d]
        third += dropped * weight[2, d]
    for d in range(width):
        dropped = message[d] * message_mask[d]
        first += dropped * weight[0, width + d]
        second += dropped * weight[1, width + d]
        third += dropped * weight[2, width + d]
    return first, second, third


@jit
def _sigmoid(score):
    return Float(1) / (Float(1) + np.exp(-score))


@jit
def gated_update(
    first, last, hidden, message, weight, bias, words, thresholds, scales, rows, out, memory, gates
):
    """Without words there are no masks; an empty memory array is not filled."""
    nodes, width = hidden.shape[1:]
    mask, message_mask = np.ones(width, np.float32), np.ones(width, np.float32)
    for k in range(first, last):
        for i in range(nodes):
            if len(words):
                draw(mask, rows, i, words[k, 0], thresholds[k], scales[k])
                draw(message_mask, rows, i, words[k, 1], thresholds[k], scales[k])
            h, m = hidden[k, i], message[k, i]
            scores = _scores(h, m, mask, message_mask, weight[k], bias[k])
            keep, absorb, pass_on = _sigmoid(scores[0]), _sigmoid(scores[1]), _sigmoid(scores[2])
            gates[k, i, 0], gates[k, i, 1], gates[k, i, 2] = keep, absorb, pass_on
            for d in range(width):
                out[k, i, d] = keep * h[d] + absorb * m[d]
            if memory.shape[1]:
                for d in range(width):
                    memory[k, i, d] = pass_on * m[d]


@jit
def gated_update_backward(
    first, last, hidden, message, weight, gates, of_out, of_memory, words, thresholds, scales,
    rows, of_hidden, of_message, of_weight, of_bias,
):  # fmt: skip
    """The sums in ``of_weight`` and ``of_bias`` start at zero."""
    nodes, width = hidden.shape[1:]
    mask, message_mask = np.ones(width, np.float32), np.ones(width, np.float32)
    part_weight, part_bias = np.zeros((3, 2 * width), np.float32), np.zeros(3, np.float32)
    of_score = np.empty(3, np.float32)
    for k in range(first, last):
        for i in range(nodes):
            if len(words):
                draw(mask, rows, i, words[k, 0], thresholds[k], scales[k])
                draw(message_mask, rows, i, words[k, 1], thresholds[k], scales[k])
            h, m, gate, above = hidden[k, i], message[k, i], gates[k, i], of_out[k, i]
            of_score[0], of_score[1], of_score[2] = dot(above, h), dot(above, m), Float(0)
            if of_memory.shape[1]:
                of_score[2] = dot(of_memory[k, i], m)
            for j in range(3):
                of_score[j] *= gate[j] * (Float(1) - gate[j])
                part_bias[j] += of_score[j]
            one, two, three = of_score[0], of_score[1], of_score[2]
            w = weight[k]
            for d in range(width):
                through = one * w[0, d] + two * w[1, d] + three * w[2, d]
                of_hidden[k, i, d] = above[d] * gate[0] + through * mask[d]
            for d in range(width):
                through = one * w[0, width + d] + two * w[1, width + d] + three * w[2, width + d]
                of_message[k, i, d] = above[d] * gate[1] + through * message_mask[d]
            if of_memory.shape[1]:
                for d in range(width):
                    of_message[k, i, d] += of_memory[k, i, d] * gate[2]
            for d in range(width):
                dropped = h[d] * mask[d]
                part_weight[0, d] += one * dropped
                part_weight[1, d] += two * dropped
                part_weight[2, d] += three * dropped
            for d in range(width):
                dropped = m[d] * message_mask[d]
                part_weight[0, width + d] += one * dropped
                part_weight[1, width + d] += two * dropped
                part_weight[2, width + d] += three * dropped
            if (i + 1) % _ROWS_AT_ONCE == 0 or i + 1 == nodes:
                of_weight[k] += part_weight
                of_bias[k] += part_bias
                part_weight[:] = Float(0)
                part_bias[:] = Float(0)


@jit_in_any_order
def _three_dots(one, other):
    both, first, second = Float(0), Float(0), Float(0)
    for d in range(len(one)):
        both += one[d] * other[d]
        first += one[d] * one[d]
        second += other[d] * other[d]
    return both, first, second


@jit
def _inverse(length, least):
    return Float(1) / length if length >= least else Float(0)


@jit
def cosine(first, last, one, other, least, out, of_one, of_other):
    """Cosines of rows, and the inverses of both lengths."""
    for k in range(first, last):
        for i in range(one.shape[1]):
            both, square_one, square_other = _three_dots(one[k, i], other[k, i])
            of_one[k, i] = _inverse(np.sqrt(square_one), least)
            of_other[k, i] = _inverse(np.sqrt(square_other), least)
            out[k, i] = both * of_one[k, i] * of_other[k, i]


@jit
def cosine_backward(
    first, last, one, other, cosines, inverse_one, inverse_other, grad, of_one, of_other
):
    """The gradients in both inputs, from the cosines, the inverse lengths and the gradient."""
    for k in range(first, last):
        for i in range(one.shape[1]):
            left, right = inverse_one[k, i], inverse_other[k, i]
            across = grad[k, i] * left * right
            along_one = grad[k, i] * cosines[k, i] * left * left
            along_other = grad[k, i] * cosines[k, i] * right * right
            a, b = one[k, i], other[k, i]
            for d in range(len(a)):
                of_one[k, i, d] = across * b[d] - along_one * a[d]
            for d in range(len(a)):
                of_other[k, i, d] = across * a[d] - along_other * b[d]
