"""Products with a matrix of zeros and ones by tables of sums, for :mod:`.table_kernels`.

This is the method of four Russians. Four columns of the matrix have 16 possible sums of the four
dense rows that they multiply; four bits of a row of the matrix select the sum to add. That is
one addition for four entries, whether they are zero or one. A word holds the bits of eight such
groups; their tables stay in the cache for all rows of the matrix.
"""

from __future__ import annotations

import numba
import numpy as np

from memohop.nn._kernels.numba.compile import Float, Index, Word, jit

BITS = 4  # columns of a group
GROUPS = 8  # groups of a word
WIDE = 64  # columns of a table
LANES = 8  # columns that are added side by side; a width is a multiple of it
_SUMS = 1 << BITS


@jit
def pack(pointers, columns, words):
    """Write the bits ``[words, rows]`` of the entries into an array that starts at zero."""
    for i in range(len(pointers) - 1):
        for e in range(Index(pointers[i]), Index(pointers[i + 1])):
            column = Index(columns[e])
            bit = Word(1) << Word(column % Index(BITS * GROUPS))
            words[column // Index(BITS * GROUPS), i] |= bit


@jit
def product(first, last, words, row_factors, column_factors, dense, out):
    """The rows from ``first`` to ``last`` of all products."""
    width = Index(dense.shape[2])
    tables = np.zeros(GROUPS * _SUMS * WIDE, Float)
    for k in range(len(dense)):
        ours = out[k, first:last].reshape(-1)
        ours[:] = Float(0)
        for w in range(len(words)):
            _tabulate(w * BITS * GROUPS, column_factors, dense[k].reshape(-1), width, tables)
            if width == Index(WIDE):  # a loop of known length is quicker
                _add(words[w, first:last], tables, Index(WIDE), ours)
            else:
                _add(words[w, first:last], tables, width, ours)
        for i in range(first, last):
            out[k, i] *= row_factors[i]


@jit
def _tabulate(start, factors, flat, width, tables):
    """The sums of the scaled dense rows from ``start``; the empty sum is 0 and stays 0."""
    for c in range(min(BITS * GROUPS, len(factors) - start)):
        column = Index(start + c)
        group, new = Index(c // BITS * _SUMS * WIDE), Index(WIDE) << Index(c % BITS)
        for old in range(Index(0), new, Index(WIDE)):
            for d in range(width):
                more = factors[column] * flat[column * width + d]
                tables[group + new + old + d] = tables[group + old + d] + more


@numba.njit(inline="always")
def _add(words, tables, width, flat):
    """Add to each row the sums that its word selects, one from each table."""
    for i in range(len(words)):
        word, row = words[i], Index(i) * width
        at = (
            _start(word, 0), _start(word, 1), _start(word, 2), _start(word, 3),
            _start(word, 4), _start(word, 5), _start(word, 6), _start(word, 7),
        )  # fmt: skip
        for d in range(Index(0), width, Index(LANES)):
            lanes = (
                _sum(tables, at, d), _sum(tables, at, d + Index(1)),
                _sum(tables, at, d + Index(2)), _sum(tables, at, d + Index(3)),
                _sum(tables, at, d + Index(4)), _sum(tables, at, d + Index(5)),
                _sum(tables, at, d + Index(6)), _sum(tables, at, d + Index(7)),
            )  # fmt: skip
            _increase(flat, row + d, lanes)


@jit
def _start(word, group):
    """The start of the sum that the bits of a group select."""
    chosen = (word >> Word(BITS * group)) & Word(_SUMS - 1)
    return Index(chosen) * Index(WIDE) + Index(group * _SUMS * WIDE)


@jit
def _sum(tables, at, d):
    return (
        ((tables[at[0] + d] + tables[at[1] + d]) + (tables[at[2] + d] + tables[at[3] + d]))
        + ((tables[at[4] + d] + tables[at[5] + d]) + (tables[at[6] + d] + tables[at[7] + d]))
    )  # fmt: skip


@jit
def _increase(flat, at, lanes):
    (
        flat[at], flat[at + Index(1)], flat[at + Index(2)], flat[at + Index(3)],
        flat[at + Index(4)], flat[at + Index(5)], flat[at + Index(6)], flat[at + Index(7)],
    ) = (
        flat[at] + lanes[0], flat[at + Index(1)] + lanes[1],
        flat[at + Index(2)] + lanes[2], flat[at + Index(3)] + lanes[3],
        flat[at + Index(4)] + lanes[4], flat[at + Index(5)] + lanes[5],
        flat[at + Index(6)] + lanes[6], flat[at + Index(7)] + lanes[7],
    )  # fmt: skip
