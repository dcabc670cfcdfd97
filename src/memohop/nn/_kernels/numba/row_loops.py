"""The loops of attention, softmax and sums over rows, for :mod:`.kernels`.

Access to RAM takes most of the time, so a block of rows is finished while it is in the cache. If
rows are short, the processor waits at the end of each loop over a row, so everything that can run
over the whole block at once does.
"""

from __future__ import annotations

import numpy as np

from memohop.nn._kernels.numba.compile import Float, Index, Int, jit, jit_in_any_order


@jit
def exp(x):
    """The exponential of a number that is not positive, accurate to 1.3 ulp.

    It is 2^n times a polynomial in the rest (from the Cephes library). Adding 1.5 * 2^23 rounds
    and leaves n in the last bits.
    """
    shifted = x * Float(1.44269504) + Float(12582912)
    n = shifted - Float(12582912)
    rest = x - n * Float(0.693359375)
    rest = rest + n * Float(2.12194440e-4)
    series = Float(1.9875691500e-4)
    series = series * rest + Float(1.3981999507e-3)
    series = series * rest + Float(8.3334519073e-3)
    series = series * rest + Float(4.1665795894e-2)
    series = series * rest + Float(1.6666665459e-1)
    series = series * rest + Float(5.0000001201e-1)
    series = series * (rest * rest) + (rest + Float(1))
    power = Int((Float(shifted).view(Int) << Int(23)) + Int(0x3F800000)).view(Float)
    return Float(0) if x < Float(-87) else series * power


@jit_in_any_order
def _row_sum(pointers, i, values):
    total = Float(0)
    for e in range(Index(pointers[i]), Index(pointers[i + 1])):
        total += values[e]
    return total


@jit
def _rows_of(pointers):
    rows = np.empty(pointers[-1], np.int32)
    for i in range(len(pointers) - 1):
        rows[pointers[i] : pointers[i + 1]] = i
    return rows


@jit
def top(value):
    """The number to subtract from the scores of a row with the largest score ``value``."""
    return Float(0) if value == -np.inf else value


@jit
def _normalise(pointers, begin, end, rows, tops, out):
    """Softmax of the scores in ``out``, given the largest score of each row."""
    first, last = Index(pointers[begin]), Index(pointers[end])
    for e in range(first, last):
        out[e] -= tops[Index(rows[e])]
    for e in range(first, last):
        out[e] = exp(out[e])
    for i in range(begin, end):
        total = _row_sum(pointers, i, out)
        tops[i] = Float(1) / (total if total != 0 else Float(1))
    for e in range(first, last):
        out[e] *= tops[Index(rows[e])]


@jit
def attention(first, last, pointers, columns, receive, send, keep, slope, step, out):
    """Weights; ``keep`` is empty if all entries stay."""
    rows, tops = _rows_of(pointers), np.empty(len(pointers) - 1, np.float32)
    for k in range(first, last):
        ours, theirs = out[k], send[k]
        for begin in range(0, len(tops), step):
            end = min(begin + step, len(tops))
            for i in range(begin, end):
                own, largest = receive[k, i], Float(-np.inf)
                for e in range(Index(pointers[i]), Index(pointers[i + 1])):
                    score = own + theirs[Index(columns[e])]
                    score = slope * score if score < 0 else score
                    if len(keep) and not keep[k, e]:
                        score = Float(-np.inf)
                    ours[e] = score
                    largest = score if score > largest else largest
                tops[i] = top(largest)
            _normalise(pointers, begin, end, rows, tops, ours)


@jit
def attention_backward(
    first, last, pointers, columns, receive, send, weights, grad, slope, of_receive, of_send
):
    """Gradients in both ends of the entries; ``of_send`` starts at zero."""
    for k in range(first, last):
        theirs, weight, of_weight, of_theirs = send[k], weights[k], grad[k], of_send[k]
        for i in range(len(pointers) - 1):
            start, end = Index(pointers[i]), Index(pointers[i + 1])
            mean = _row_dot(start, end, weight, of_weight)
            own, total, slope_of_first = receive[k, i], Float(0), Float(0)
            for e in range(start, end):
                j = Index(columns[e])
                here = slope if own + theirs[j] < 0 else Float(1)
                if e == start:
                    slope_of_first = here
                of_score = weight[e] * (of_weight[e] - mean)
                total += (here - slope_of_first) * of_score
                of_theirs[j] += here * of_score
            of_receive[k, i] = total


@jit_in_any_order
def _row_dot(start, end, left, right):
    total = Float(0)
    for e in range(start, end):
        total += left[e] * right[e]
    return total


@jit
def row_softmax(first, last, pointers, scores, step, out):
    """Softmax within rows."""
    rows, tops = _rows_of(pointers), np.empty(len(pointers) - 1, np.float32)
    for k in range(first, last):
        ours, given = out[k], scores[k]
        for begin in range(0, len(tops), step):
            end = min(begin + step, len(tops))
            for i in range(begin, end):
                largest = Float(-np.inf)
                for e in range(Index(pointers[i]), Index(pointers[i + 1])):
                    ours[e] = given[e]
                    largest = given[e] if given[e] > largest else largest
                tops[i] = top(largest)
            _normalise(pointers, begin, end, rows, tops, ours)


@jit
def softmax_backward(first, last, pointers, weights, grad, out):
    """The gradient in the scores."""
    for k in range(first, last):
        weight, of_weight, ours = weights[k], grad[k], out[k]
        for i in range(len(pointers) - 1):
            start, end = Index(pointers[i]), Index(pointers[i + 1])
            mean = _row_dot(start, end, weight, of_weight)
            for e in range(start, end):
                ours[e] = weight[e] * (of_weight[e] - mean)


@jit
def row_sums(first, last, pointers, values, out):
    """Sums within rows."""
    for k in range(first, last):
        for i in range(len(pointers) - 1):
            out[k, i] = _row_sum(pointers, i, values[k])
