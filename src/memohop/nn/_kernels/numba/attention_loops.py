"""The loops of graph attention with eight heads, for :mod:`.attention_kernels`.

The eight heads form one processor vector: their values for a node, for one of its channels or
for an entry lie side by side, so the linear map's result is transposed from
``[heads, width]`` to ``[width, heads]``. Nothing is kept per entry: the weights of a
block of rows are computed and used while they are in the cache, forwards and again backwards.

``ends`` holds each node's scores as receiver and as sender; ``norms`` holds the largest score of
its row, and one over the row's sum of ``exp(score - largest)``.
"""

from __future__ import annotations

import numpy as np

from memohop.nn._kernels.numba.compile import Float, Index, Int, Word, jit
from memohop.nn._kernels.numba.dropout_loops import mix
from memohop.nn._kernels.numba.lanes import (
    LANES,
    alike,
    larger,
    load,
    plus,
    plus_product,
    product,
    store,
)
from memohop.nn._kernels.numba.row_loops import exp, top

HEADS = LANES
SUMS = 4  # channels of a head that are summed side by side
PAIR = 2 * HEADS
ROWS_AT_ONCE = 64  # a sum of sums is more exact than one long sum


@jit
def turn(given, first, rows, channels, out, to):
    """Transpose some rows from ``[heads, width]`` to ``[width, heads]``."""
    width = channels // Index(HEADS)
    for i in range(rows):
        for d in range(width):
            at = (first + i) * channels + d
            lanes = (
                given[at], given[at + width], given[at + Index(2) * width],
                given[at + Index(3) * width], given[at + Index(4) * width],
                given[at + Index(5) * width], given[at + Index(6) * width],
                given[at + Index(7) * width],
            )  # fmt: skip
            store(out, (to + i) * channels + d * Index(HEADS), lanes)


@jit
def turn_back(given, first, rows, channels, out, to):
    """Transpose some rows from ``[width, heads]`` to ``[heads, width]``."""
    width = channels // Index(HEADS)
    for i in range(rows):
        for d in range(width):
            lanes = load(given, (first + i) * channels + d * Index(HEADS))
            at = (to + i) * channels + d
            out[at], out[at + width] = lanes[0], lanes[1]
            out[at + Index(2) * width], out[at + Index(3) * width] = lanes[2], lanes[3]
            out[at + Index(4) * width], out[at + Index(5) * width] = lanes[4], lanes[5]
            out[at + Index(6) * width], out[at + Index(7) * width] = lanes[6], lanes[7]


@jit
def drop_of(k, words, thresholds, scales):
    """A member's dropout in the form that :func:`draw` takes; zeros if there is none."""
    if len(words):
        return words[k], thresholds[k], scales[k]
    return np.zeros(2, np.uint32), np.int16(0), Float(0)


@jit
def draw(start, count, total, drop, masks):
    """Part of the masks ``[heads, total]``, transposed: ``[count, heads]``."""
    (key, middle), threshold, scale = drop
    least = Int(Int(threshold) << Int(16))
    for slot in range(Index(count) * Index(HEADS)):
        head, there = Word(slot % Index(HEADS)), Word(start) + Word(slot // Index(HEADS))
        flat = Word(Word(head * Word(total)) + Word(there))
        bits = mix(Word(Word(flat >> Word(1)) ^ key), middle)
        upper = Int(bits) if flat & Word(1) else Int(Word(bits << Word(16)))
        masks[slot] = scale if upper >= least else Float(0)


@jit
def prepare(mapped, nodes, receive, send, drop, dropping, ends, values):
    """Transpose and drop the values; write the nodes' scores into ``ends`` unless it is empty."""
    channels = Index(len(mapped)) // Index(nodes)
    width = channels // Index(HEADS)
    masks = np.empty(Index(ROWS_AT_ONCE) * channels, np.float32)
    for begin in range(Index(0), Index(nodes), Index(ROWS_AT_ONCE)):
        rows = min(Index(ROWS_AT_ONCE), Index(nodes) - begin)
        turn(mapped, begin, rows, channels, values, begin)
        if len(ends):
            for i in range(begin, begin + rows):
                of_receive, of_send = alike(Float(0)), alike(Float(0))
                for d in range(Index(0), channels, Index(HEADS)):
                    here = load(values, i * channels + d)
                    of_receive = plus_product(of_receive, here, load(receive, d))
                    of_send = plus_product(of_send, here, load(send, d))
                store(ends, i * Index(PAIR), of_receive)
                store(ends, i * Index(PAIR) + Index(HEADS), of_send)
        if dropping:
            draw(begin * width, rows * width, Index(nodes) * width, drop, masks)
            block = values[begin * channels : (begin + rows) * channels]
            for d in range(rows * channels):
                block[d] *= masks[d]


@jit
def score(pointers, columns, begin, beyond, ends, keep, slope, slopes, scores):
    """The scores of a block of rows, -inf for entries left out, and the rectifier's slopes."""
    start = Index(pointers[begin])
    count = Index(pointers[beyond]) - start
    for i in range(Index(begin), Index(beyond)):
        own = load(ends, i * Index(PAIR))
        for e in range(Index(pointers[i]), Index(pointers[i + Index(1)])):
            other = load(ends, Index(columns[e]) * Index(PAIR) + Index(HEADS))
            store(scores, (e - start) * Index(HEADS), plus(own, Float(1), other))
    for slot in range(count * Index(HEADS)):
        slopes[slot] = slope if scores[slot] < 0 else Float(1)
        scores[slot] *= slopes[slot]
    if len(keep):
        for e in range(count):
            if not keep[start + e]:
                store(scores, e * Index(HEADS), alike(Float(-np.inf)))


@jit
def _subtract_largest(scores, first, last):
    """Subtract a row's largest scores, or 0 if it has none, from its scores."""
    largest = alike(Float(-np.inf))
    for slot in range(first, last, Index(HEADS)):
        largest = larger(load(scores, slot), largest)
    largest = (
        top(largest[0]), top(largest[1]), top(largest[2]), top(largest[3]),
        top(largest[4]), top(largest[5]), top(largest[6]), top(largest[7]),
    )  # fmt: skip
    for slot in range(first, last, Index(HEADS)):
        store(scores, slot, plus(load(scores, slot), Float(-1), largest))
    return largest


@jit
def _inverse(value):
    return Float(1) / (value if value != 0 else Float(1))


@jit
def _inverse_sums(weights, first, last):
    total = alike(Float(0))
    for slot in range(first, last, Index(HEADS)):
        total = plus(load(weights, slot), Float(1), total)
    return (
        _inverse(total[0]), _inverse(total[1]), _inverse(total[2]), _inverse(total[3]),
        _inverse(total[4]), _inverse(total[5]), _inverse(total[6]), _inverse(total[7]),
    )  # fmt: skip


@jit
def _collect(columns, first, last, weights, values, bias, out, row):
    """A row of the result: the weighted values plus the bias."""
    channels, step = Index(len(bias)), Index(HEADS)
    for d in range(Index(0), channels, Index(SUMS * HEADS)):
        d1, d2, d3 = d + step, d + Index(2) * step, d + Index(3) * step
        one, two, three, four = load(bias, d), load(bias, d1), load(bias, d2), load(bias, d3)
        for e in range(first, last):
            at, weight = Index(columns[e]) * channels, load(weights, (e - first) * step)
            one = plus_product(one, weight, load(values, at + d))
            two = plus_product(two, weight, load(values, at + d1))
            three = plus_product(three, weight, load(values, at + d2))
            four = plus_product(four, weight, load(values, at + d3))
        store(out, row + d, one)
        store(out, row + d1, two)
        store(out, row + d2, three)
        store(out, row + d3, four)


@jit
def largest_block(pointers, step):
    """The number of entries in the largest block of ``step`` rows."""
    most, rows = 0, len(pointers) - 1
    for begin in range(0, rows, step):
        most = max(most, pointers[min(begin + step, rows)] - pointers[begin])
    return most


@jit
def attend(
    first, last, pointers, columns, mapped, vectors, keep, slope, step,
    value_words, value_thresholds, value_scales, words, thresholds, scales, out, ends, norms,
):  # fmt: skip
    """Without words there are no masks; ``keep`` is empty if all entries stay."""
    nodes, channels = mapped.shape[1:]
    most = largest_block(pointers, step) * HEADS
    weights, masks = np.empty(most, np.float32), np.empty(most, np.float32)
    values, rows = np.empty(nodes * channels, np.float32), np.empty(step * channels, np.float32)
    value_dropping, dropping = len(value_words) > 0, len(words) > 0
    for k in range(first, last):
        value_drop = drop_of(k, value_words, value_thresholds, value_scales)
        drop = drop_of(k, words, thresholds, scales)
        end, norm, ours = ends[k].reshape(-1), norms[k].reshape(-1), out[k].reshape(-1)
        kept = keep[k] if len(keep) else keep.reshape(-1)
        receive, send, bias = vectors[k, 0], vectors[k, 1], vectors[k, 2]
        prepare(
            mapped[k].reshape(-1), nodes, receive, send, value_drop, value_dropping, end, values
        )
        for begin in range(0, nodes, step):
            beyond = min(begin + step, nodes)
            start = Index(pointers[begin])
            count = Index(pointers[beyond]) - start
            score(pointers, columns, begin, beyond, end, kept, slope, masks, weights)
            for i in range(Index(begin), Index(beyond)):
                here = (Index(pointers[i]) - start) * Index(HEADS)
                there = (Index(pointers[i + Index(1)]) - start) * Index(HEADS)
                store(norm, i * Index(PAIR), _subtract_largest(weights, here, there))
            for slot in range(count * Index(HEADS)):
                weights[slot] = exp(weights[slot])
            if dropping:
                draw(start, count, len(columns), drop, masks)
            for i in range(Index(begin), Index(beyond)):
                here = (Index(pointers[i]) - start) * Index(HEADS)
                there = (Index(pointers[i + Index(1)]) - start) * Index(HEADS)
                inverse = _inverse_sums(weights, here, there)
                store(norm, i * Index(PAIR) + Index(HEADS), inverse)
                for slot in range(here, there, Index(HEADS)):
                    weight = product(load(weights, slot), inverse)
                    if dropping:
                        weight = product(weight, load(masks, slot))
                    store(weights, slot, weight)
                _collect(
                    columns, Index(pointers[i]), Index(pointers[i + Index(1)]), weights[here:],
                    values, bias, rows, (i - Index(begin)) * Index(channels),
                )  # fmt: skip
            turn_back(rows, Index(0), Index(beyond - begin), Index(channels), ours, Index(begin))
