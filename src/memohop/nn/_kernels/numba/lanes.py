"""Eight numbers that the loops of :mod:`.kernels` handle side by side.

They are a tuple, each number with a name, because the compiler makes a vector of that.
"""

from __future__ import annotations

from memohop.nn._kernels.numba.compile import Index, jit

LANES = 8


@jit
def load(flat, at):
    """The lanes that start at an index."""
    return (
        flat[at], flat[at + Index(1)], flat[at + Index(2)], flat[at + Index(3)],
        flat[at + Index(4)], flat[at + Index(5)], flat[at + Index(6)], flat[at + Index(7)],
    )  # fmt: skip


@jit
def store(flat, at, lanes):
    """Store the lanes at an index."""
    flat[at], flat[at + Index(1)] = lanes[0], lanes[1]
    flat[at + Index(2)], flat[at + Index(3)] = lanes[2], lanes[3]
    flat[at + Index(4)], flat[at + Index(5)] = lanes[4], lanes[5]
    flat[at + Index(6)], flat[at + Index(7)] = lanes[6], lanes[7]


@jit
def plus(lanes, factor, more):
    """Add to each lane another one, times a common factor."""
    return (
        lanes[0] + factor * more[0], lanes[1] + factor * more[1], lanes[2] + factor * more[2],
        lanes[3] + factor * more[3], lanes[4] + factor * more[4], lanes[5] + factor * more[5],
        lanes[6] + factor * more[6], lanes[7] + factor * more[7],
    )  # fmt: skip


@jit
def plus_product(lanes, one, other):
    """Add to each lane the product of two others."""
    return (
        lanes[0] + one[0] * other[0], lanes[1] + one[1] * other[1],
        lanes[2] + one[2] * other[2], lanes[3] + one[3] * other[3],
        lanes[4] + one[4] * other[4], lanes[5] + one[5] * other[5],
        lanes[6] + one[6] * other[6], lanes[7] + one[7] * other[7],
    )  # fmt: skip


@jit
def product(one, other):
    """Lane by lane."""
    return (
        one[0] * other[0], one[1] * other[1], one[2] * other[2], one[3] * other[3],
        one[4] * other[4], one[5] * other[5], one[6] * other[6], one[7] * other[7],
    )  # fmt: skip


@jit
def larger(one, other):
    """The larger of the two in each lane; ``other`` where ``one`` is NaN."""
    return (
        one[0] if one[0] > other[0] else other[0], one[1] if one[1] > other[1] else other[1],
        one[2] if one[2] > other[2] else other[2], one[3] if one[3] > other[3] else other[3],
        one[4] if one[4] > other[4] else other[4], one[5] if one[5] > other[5] else other[5],
        one[6] if one[6] > other[6] else other[6], one[7] if one[7] > other[7] else other[7],
    )  # fmt: skip


@jit
def alike(value):
    """The same number in all lanes."""
    return (value, value, value, value, value, value, value, value)
