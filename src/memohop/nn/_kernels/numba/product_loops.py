"""The loops of sparse products, for :mod:`.kernels`."""

from __future__ import annotations

import numpy as np

from memohop.nn._kernels.numba.compile import Float, Index, jit, jit_in_any_order
from memohop.nn._kernels.numba.lanes import LANES, load, plus, store

WIDE = 2 * LANES  # columns multiplied side by side if there are many


@jit_in_any_order
def dot(one, other):
    """The inner product of two rows."""
    total = Float(0)
    for d in range(len(one)):
        total += one[d] * other[d]
    return total


@jit_in_any_order
def inner(first, last, pointers, columns, left, right, out):
    """Inner products of the rows at both ends of each entry, of any width."""
    width = left.shape[2]
    for k in range(first, last):
        one, two, ours = left[k], right[k], out[k]
        for i in range(len(pointers) - 1):
            row = one[i]
            for e in range(Index(pointers[i]), Index(pointers[i + 1])):
                column = two[Index(columns[e])]
                total = Float(0)
                for d in range(width):
                    total += row[d] * column[d]
                ours[e] = total


@jit
def product(first, last, pointers, columns, values, dense, out):
    """Sums of dense rows times values, in lanes of the width."""
    width, zero = Index(dense.shape[2]), Float(0)
    for k in range(first, last):
        value, flat, ours = values[k], dense[k].reshape(-1), out[k].reshape(-1)
        for i in range(len(pointers) - 1):
            start, end = Index(pointers[i]), Index(pointers[i + 1])
            for d in range(Index(0), width, Index(LANES)):
                total = (zero, zero, zero, zero, zero, zero, zero, zero)
                for e in range(start, end):
                    total = plus(total, value[e], load(flat, Index(columns[e]) * width + d))
                store(ours, Index(i) * width + d, total)


@jit
def transposed_product(first, last, pointers, columns, values, dense, out):
    """Add each dense row, times values, to rows of ``out``, which starts at zero."""
    width = Index(dense.shape[2])
    for k in range(first, last):
        value = values[k if len(values) > 1 else 0]
        flat, ours = dense[k].reshape(-1), out[k].reshape(-1)
        for i in range(len(pointers) - 1):
            start, end = Index(pointers[i]), Index(pointers[i + 1])
            for d in range(Index(0), width, Index(LANES)):
                row = load(flat, Index(i) * width + d)
                for e in range(start, end):
                    at = Index(columns[e]) * width + d
                    store(ours, at, plus(load(ours, at), value[e], row))


@jit
def _leave_out_zeros(pointers, columns, values, kept_pointers, kept_columns, kept_values):
    """The nonzero entries of one matrix."""
    count = Index(0)
    for i in range(len(pointers) - 1):
        kept_pointers[i] = count
        for e in range(Index(pointers[i]), Index(pointers[i + 1])):
            kept_columns[count], kept_values[count] = columns[e], values[e]
            count += Index(values[e] != Float(0))
    kept_pointers[len(pointers) - 1] = count


@jit
def pair_product(first, last, pointers, columns, values, rows, parts, dense, each, step, out):
    """Rows of products with one part of the dense matrices, which are ``each`` numbers apart.

    Their rows have ``step`` numbers, with the parts side by side.
    """
    width, zero = Index(out.shape[2]), Float(0)
    begin, column, value = np.empty_like(pointers), np.empty_like(columns), np.empty_like(values[0])
    for k in range(first, last):
        if k == first or len(values) > 1:
            ours = values[k if len(values) > 1 else 0]
            _leave_out_zeros(pointers, columns, ours, begin, column, value)
        flat, result = dense[k * each :], out[k].reshape(-1)
        for i in range(len(rows)):
            row, part = Index(rows[i]), Index(parts[i]) * width
            start, end = Index(begin[row]), Index(begin[row + Index(1)])
            for d in range(Index(0), width, Index(WIDE)):
                one = (zero, zero, zero, zero, zero, zero, zero, zero)
                two = one
                for e in range(start, end):
                    at = Index(column[e]) * Index(step) + part + d
                    one = plus(one, value[e], load(flat, at))
                    two = plus(two, value[e], load(flat, at + Index(LANES)))
                store(result, Index(i) * width + d, one)
                store(result, Index(i) * width + d + Index(LANES), two)


@jit
def transposed_pair_product(first, last, pointers, columns, values, rows, parts, dense, out):
    """Add each pair's dense row, times values, to a part of ``out``, which starts at zero."""
    width = Index(out.shape[3])
    step = Index(out.shape[2]) * width
    begin, column, value = np.empty_like(pointers), np.empty_like(columns), np.empty_like(values[0])
    for k in range(first, last):
        if k == first or len(values) > 1:
            ours = values[k if len(values) > 1 else 0]
            _leave_out_zeros(pointers, columns, ours, begin, column, value)
        flat, result = dense[k].reshape(-1), out[k].reshape(-1)
        for i in range(len(rows)):
            row, part = Index(rows[i]), Index(parts[i]) * width
            start, end = Index(begin[row]), Index(begin[row + Index(1)])
            for d in range(Index(0), width, Index(WIDE)):
                one = load(flat, Index(i) * width + d)
                two = load(flat, Index(i) * width + d + Index(LANES))
                for e in range(start, end):
                    at = Index(column[e]) * step + part + d
                    store(result, at, plus(load(result, at), value[e], one))
                    at += Index(LANES)
                    store(result, at, plus(load(result, at), value[e], two))
