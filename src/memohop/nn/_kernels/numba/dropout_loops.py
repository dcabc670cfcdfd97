"""The hash of :mod:`memohop.nn.randomness` and its masks, for the CPU kernels.

Each hash decides two neighbouring elements: its halves are read as signed 16-bit numbers.
"""

from __future__ import annotations

from memohop.nn._kernels.numba.compile import Float, Index, Int, Word, jit


@jit
def mix(value, middle):
    """The hash of :mod:`memohop.nn.randomness`."""
    value = Word(value ^ (value >> Word(16)))
    value = Word(value * Word(0x7FEB352D))
    value = Word(value ^ (value >> Word(15)) ^ middle)
    value = Word(value * Word(0x846CA68B))
    return Word(value ^ (value >> Word(16)))


@jit
def draw(mask, rows, i, words, threshold, scale):
    """A row of a mask with an even number of columns: scaled, or 0.

    It is row i, or, if ``rows`` is not empty, row ``rows[i]``; positions wrap at 32 bits.
    """
    row = rows[i] if len(rows) else i
    key, middle = words[0], words[1]
    pairs, least = Index(len(mask) // 2), Int(threshold) << Int(16)
    before = Word(row) * Word(pairs)
    for pair in range(pairs):
        bits = mix(Word(Word(before + Word(pair)) ^ key), middle)
        low, high = Int(bits << Word(16)), Int(bits)
        mask[pair + pair] = scale if low >= least else Float(0)
        mask[pair + pair + Index(1)] = scale if high >= least else Float(0)
