"""The backward loops of graph attention with eight heads, see :mod:`.attention_loops`."""

from __future__ import annotations

import numpy as np

from memohop.nn._kernels.numba.attention_loops import (
    HEADS,
    PAIR,
    ROWS_AT_ONCE,
    draw,
    drop_of,
    largest_block,
    prepare,
    score,
    turn,
    turn_back,
)
from memohop.nn._kernels.numba.compile import Float, Index, jit
from memohop.nn._kernels.numba.lanes import alike, load, plus, plus_product, product, store
from memohop.nn._kernels.numba.row_loops import exp


@jit
def _weigh(pointers, begin, beyond, norms, weights):
    """Turn the scores of a block of rows into weights, in place."""
    start = Index(pointers[begin])
    for i in range(Index(begin), Index(beyond)):
        largest = load(norms, i * Index(PAIR))
        for e in range(Index(pointers[i]), Index(pointers[i + Index(1)])):
            slot = (e - start) * Index(HEADS)
            store(weights, slot, plus(load(weights, slot), Float(-1), largest))
    for number in range((Index(pointers[beyond]) - start) * Index(HEADS)):
        weights[number] = exp(weights[number])
    for i in range(Index(begin), Index(beyond)):
        inverse = load(norms, i * Index(PAIR) + Index(HEADS))
        for e in range(Index(pointers[i]), Index(pointers[i + Index(1)])):
            slot = (e - start) * Index(HEADS)
            store(weights, slot, product(load(weights, slot), inverse))


@jit
def _collect_backward(columns, first, last, weights, values, grad, of_values, of_weights):
    """The gradients of a row in the weights; those in the values are added to the array."""
    channels = Index(len(grad))
    for e in range(first, last):
        at, slot = Index(columns[e]) * channels, (e - first) * Index(HEADS)
        weight, total = load(weights, slot), alike(Float(0))
        for d in range(Index(0), channels, Index(HEADS)):
            above = load(grad, d)
            total = plus_product(total, above, load(values, at + d))
            store(of_values, at + d, plus_product(load(of_values, at + d), weight, above))
        store(of_weights, slot, total)


@jit
def _scores_backward(columns, weights, of_weights, slopes, first, last, i, of_ends):
    """Add the gradients of a row's scores to both ends.

    They sum to 0, so at the receiver only slopes that differ from the first entry's slope count.
    """
    count = (last - first) * Index(HEADS)
    mean = alike(Float(0))
    for slot in range(Index(0), count, Index(HEADS)):
        mean = plus_product(mean, load(weights, slot), load(of_weights, slot))
    total, slope_of_first = alike(Float(0)), alike(Float(0))
    for slot in range(Index(0), count, Index(HEADS)):
        of_score = plus(load(of_weights, slot), Float(-1), mean)
        of_score = product(of_score, load(weights, slot))
        slope = load(slopes, slot)
        if slot == 0:
            slope_of_first = slope
        total = plus_product(total, plus(slope, Float(-1), slope_of_first), of_score)
        at = Index(columns[first + slot // Index(HEADS)]) * Index(PAIR) + Index(HEADS)
        store(of_ends, at, plus_product(load(of_ends, at), slope, of_score))
    store(of_ends, i * Index(PAIR), total)


@jit
def _finish(
    mapped, nodes, receive, send, drop, dropping, grad, of_ends, of_values, of_mapped, sums
):
    """Gradients from values and scores back to the linear map; sums for receive, send and bias."""
    channels = Index(len(receive))
    width = channels // Index(HEADS)
    given = np.empty(Index(ROWS_AT_ONCE) * channels, np.float32)
    masks = np.empty(Index(ROWS_AT_ONCE) * channels, np.float32)
    part = np.zeros((3, channels), np.float32)
    of_receive, of_send, of_bias = part[0], part[1], part[2]
    for begin in range(Index(0), Index(nodes), Index(ROWS_AT_ONCE)):
        rows = min(Index(ROWS_AT_ONCE), Index(nodes) - begin)
        block = of_values[begin * channels : (begin + rows) * channels]
        if dropping:
            draw(begin * width, rows * width, Index(nodes) * width, drop, masks)
            for d in range(rows * channels):
                block[d] *= masks[d]
        turn(mapped, begin, rows, channels, given, Index(0))
        for i in range(rows):
            as_receiver = load(of_ends, (begin + i) * Index(PAIR))
            as_sender = load(of_ends, (begin + i) * Index(PAIR) + Index(HEADS))
            for d in range(Index(0), channels, Index(HEADS)):
                at = i * channels + d
                through = plus_product(load(block, at), as_receiver, load(receive, d))
                store(block, at, plus_product(through, as_sender, load(send, d)))
                value = load(given, at)
                store(of_receive, d, plus_product(load(of_receive, d), as_receiver, value))
                store(of_send, d, plus_product(load(of_send, d), as_sender, value))
                above = load(grad, (begin + i) * channels + d)
                store(of_bias, d, plus(above, Float(1), load(of_bias, d)))
        turn_back(of_values, begin, rows, channels, of_mapped, begin)
        sums += part
        part[:] = Float(0)


@jit
def attend_backward(
    first, last, pointers, columns, mapped, vectors, keep, slope, step, value_words,
    value_thresholds, value_scales, words, thresholds, scales, ends, norms, grad,
    of_mapped, of_vectors,
):  # fmt: skip
    """The gradients in the linear map's result and in the layer's vectors."""
    nodes, channels = mapped.shape[1:]
    most = largest_block(pointers, step) * HEADS
    weights, dropped = np.empty(most, np.float32), np.empty(most, np.float32)
    masks, slopes = np.empty(most, np.float32), np.empty(most, np.float32)
    of_weights, above = np.empty(most, np.float32), np.empty(step * channels, np.float32)
    values = np.empty(nodes * channels, np.float32)
    of_values = np.empty(nodes * channels, np.float32)
    of_ends = np.empty(nodes * PAIR, np.float32)
    value_dropping, dropping = len(value_words) > 0, len(words) > 0
    for k in range(first, last):
        value_drop = drop_of(k, value_words, value_thresholds, value_scales)
        drop = drop_of(k, words, thresholds, scales)
        given, end, norm, of_out = (
            mapped[k].reshape(-1), ends[k].reshape(-1), norms[k].reshape(-1), grad[k].reshape(-1),
        )  # fmt: skip
        kept = keep[k] if len(keep) else keep.reshape(-1)
        receive, send = vectors[k, 0], vectors[k, 1]
        prepare(given, nodes, receive, send, value_drop, value_dropping, end[:0], values)
        of_values[:] = Float(0)
        of_ends[:] = Float(0)
        for begin in range(0, nodes, step):
            beyond = min(begin + step, nodes)
            start = Index(pointers[begin])
            count = Index(pointers[beyond]) - start
            score(pointers, columns, begin, beyond, end, kept, slope, slopes, weights)
            _weigh(pointers, begin, beyond, norm, weights)
            turn(of_out, Index(begin), Index(beyond - begin), Index(channels), above, Index(0))
            if dropping:
                draw(start, count, len(columns), drop, masks)
            for slot in range(count * Index(HEADS)):
                dropped[slot] = weights[slot] * masks[slot] if dropping else weights[slot]
            for i in range(Index(begin), Index(beyond)):
                ours = Index(pointers[i]), Index(pointers[i + Index(1)])
                here, row = (ours[0] - start) * Index(HEADS), (i - Index(begin)) * Index(channels)
                _collect_backward(
                    columns, *ours, dropped[here:], values, above[row : row + Index(channels)],
                    of_values, of_weights[here:],
                )  # fmt: skip
            if dropping:
                for slot in range(count * Index(HEADS)):
                    of_weights[slot] *= masks[slot]
            for i in range(Index(begin), Index(beyond)):
                ours = Index(pointers[i]), Index(pointers[i + Index(1)])
                here = (ours[0] - start) * Index(HEADS)
                _scores_backward(
                    columns, weights[here:], of_weights[here:], slopes[here:], *ours, i, of_ends
                )
        _finish(
            given, nodes, receive, send, value_drop, value_dropping, of_out, of_ends,
            of_values, of_mapped[k].reshape(-1), of_vectors[k],
        )  # fmt: skip
