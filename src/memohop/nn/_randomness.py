r"""Randomness as a pure function of its position: no generator, no state, no order of draws.

A dropout mask is a hash of (seed, epoch, place, element), where *place* counts the draws within
one forward pass and *element* is the flat position within the tensor. A network gets the same
masks, bit for bit, whether it is trained alone, as one of seventy, in another chunk, on another
device or after a resume. A process that holds a part of a graph takes the positions in the whole
one's tensors (:mod:`memohop.nn._part`), and gets its part of the same masks.

The hash is the two-multiplication 32-bit finaliser with the low bias found by Christopher
Wellons' search (``lowbias32``), with one 32-bit word of the key added before it and a second in
its middle, so that two streams are never permutations of each other. Each 32-bit result decides
two elements: rates are exact to :math:`2^{-16}`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, NamedTuple

import torch
from torch import Tensor

from memohop.nn._operation import Operation
from memohop.nn._part import Axis, Part, held_part

_LARGE = 1 << 17  # elements of a mask
_FIRST, _SECOND = 0x7FEB352D, 0x846CA68B - (1 << 32)  # signed, as int32 tensors multiply


@dataclass
class _Stream:
    key: Tensor  # [2] int32
    place: int = 0


_stream: ContextVar[_Stream | None] = ContextVar("memohop_stream", default=None)


@contextmanager
def randomness(key: Tensor) -> Iterator[None]:
    """Draw every mask inside the block from ``key`` (see :func:`epoch_key`), in order of place.

    Example:
        >>> import torch
        >>> from memohop.nn import Dropout, epoch_key, randomness
        >>> key = epoch_key(torch.tensor(3), torch.tensor(7))
        >>> layer = Dropout(0.5)
        >>> with randomness(key):
        ...     once = layer(torch.ones(100))
        >>> with randomness(key):
        ...     again = layer(torch.ones(100))
        >>> torch.equal(once, again)
        True
    """
    token = _stream.set(_Stream(key))
    try:
        yield
    finally:
        _stream.reset(token)


def epoch_key(seed: Tensor, epoch: Tensor) -> Tensor:
    """The ``[..., 2]`` int32 key of one epoch of each seed (int64 tensors that broadcast).

    Example:
        >>> import torch
        >>> from memohop.nn import epoch_key
        >>> epoch_key(torch.arange(5), torch.tensor(0)).shape  # five seeds, first epoch
        torch.Size([5, 2])
    """
    seed, epoch = torch.broadcast_tensors(seed, epoch)
    low, high = _wrapped(seed), _wrapped(seed >> 32)
    first = _mix(_mix(low, high), _wrapped(epoch))
    second = _mix(first ^ 0x3C6EF372, _wrapped(epoch) ^ low)
    return torch.stack([first, second], dim=-1)


def replayed(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function, drawing the same masks in every call: those that are next now."""
    stream = _stream.get()
    if stream is None:
        return function
    now = replace(stream)  # the stream itself goes on

    def replay(*inputs: Any) -> Any:
        outer, inner = _stream.get(), replace(now)
        token = _stream.set(inner)
        try:
            return function(*inputs)
        finally:
            _stream.reset(token)
            if outer is not None:
                outer.place = inner.place

    return replay


def in_stream() -> bool:
    """Whether masks come from a key, and not from PyTorch's generator."""
    return _stream.get() is not None


@dataclass(frozen=True, eq=False)
class Place:
    """Where in a network a mask is drawn."""

    number: int  # in the order of the forward pass, from 1
    role: str = "hidden"  # of the dropout
    part: Part | None = None  # the nodes that this process holds; None if it holds all


class Draw(NamedTuple):
    """The right to one mask."""

    key: Tensor
    place: Place


def next_draw(role: str = "hidden") -> Draw | None:
    """The next place of the stream; None outside :func:`randomness`.

    A place is taken whether or not its mask is used: a mask that one member skips must not shift
    the masks of another.
    """
    stream = _stream.get()
    if stream is None:
        return None
    stream.place += 1
    return Draw(stream.key, Place(stream.place, role, held_part.get()))


def draw_masks(
    keys: Tensor,
    rates: Tensor,
    places: tuple[Place, ...],
    shape: tuple[int, ...],
    dtype: torch.dtype,
) -> Tensor:
    """The scaled masks ``[places, B, *shape]`` of several members at several places."""
    count, first = torch.Size(shape).numel(), places[0]
    words = _words(tuple(place.number for place in places), keys.device)[:, None] ^ keys
    second = None
    if first.part is None:
        numbers = _numbers((count + 1) // 2, keys.device)
    else:
        numbers, second = _local_numbers(*first.part.axis(first.role, shape))
    # The least signed 16-bit number that keeps an element, and the factor of those that are kept.
    least = (rates * 65536 - 32768).round().clamp(max=32767).to(torch.int16)[:, None]
    scale = (1 / (1 - rates)).to(dtype)[:, None]
    masks = torch.empty(len(places), len(keys), count, dtype=dtype, device=keys.device)
    # On a CPU a large mask is made alone, so that a hash stays in the cache between its passes.
    alone = count >= _LARGE and not keys.is_cuda
    every: list[int | slice] = [slice(None)]
    for place in range(len(places)) if alone else every:
        for member in range(len(keys)) if alone else every:
            halves = _hash(numbers, words[place, member])
            if second is None:
                halves = halves[..., :count]
            else:
                halves = torch.where(second, halves[..., 1::2], halves[..., ::2])
            mask = masks[place, member]
            torch.ge(halves, least[member], out=mask)
            mask.mul_(scale[member])
    return masks.unflatten(-1, shape)


def keep_masks(
    keys: Tensor, rates: Tensor, place: Place, shape: tuple[int, ...], dtype: torch.dtype
) -> Tensor:
    """The scaled masks ``[B, *shape]`` of members at one place, also under ``vmap``."""
    if not torch._C._are_functorch_transforms_active():
        return draw_masks(keys, rates, (place,), shape, dtype)[0]
    return _KeepMasks.apply(keys, rates, place, shape, dtype)


class _KeepMasks(Operation):
    """:func:`draw_masks` as an operation that can be mapped; it works in place and cannot."""

    tensors = 2

    @staticmethod
    def forward(
        keys: Tensor, rates: Tensor, place: Place, shape: tuple[int, ...], dtype: torch.dtype
    ) -> Tensor:
        return draw_masks(keys, rates, (place,), shape, dtype)[0]

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
        ctx.mark_non_differentiable(output)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[None, ...]:
        return None, None, None, None, None


def _hash(numbers: Tensor, words: Tensor) -> Tensor:
    """Two 16-bit hashes for each number, one after the other: ``[places, B, 2 * numbers]``."""
    # Hashing begins with a shift that is done once for all numbers, and once for each key.
    return _finish(numbers ^ _fold(words[..., :1]), words[..., 1:]).view(torch.int16)


@lru_cache(maxsize=64)
def _numbers(count: int, device: torch.device) -> Tensor:
    if count <= 1 << 31:
        return _fold(torch.arange(count, dtype=torch.int32, device=device))
    return _fold(_wrapped(torch.arange(count, device=device)))


def _local_numbers(axis: Axis, outer: int, inner: int) -> tuple[Tensor, Tensor | None]:
    """The same for a part of a tensor, and which of each pair an element is, if pairs are torn."""
    if (outer, inner) not in axis.hashed:
        pairs, second = axis.pairs(outer, inner)
        axis.hashed[outer, inner] = _fold(_wrapped(pairs)), second
    return axis.hashed[outer, inner]


@lru_cache(maxsize=64)
def _words(numbers: tuple[int, ...], device: torch.device) -> Tensor:
    words = [place_words(number) for number in numbers]
    return torch.tensor(words, dtype=torch.int32, device=device)


def place_words(number: int) -> tuple[int, int]:
    """Two int32 constants for the place of a number (the steps of two Weyl sequences)."""
    return _signed(number * 0x9E3779B9), _signed(number * 0x85EBCA6B)


def _mix(value: Tensor, middle: Tensor) -> Tensor:
    """The hash of int32 values."""
    return _finish(_fold(value), middle)


def _fold(value: Tensor) -> Tensor:
    return value ^ ((value >> 16) & 0xFFFF)  # `>>` keeps the sign, hence the mask


def _finish(value: Tensor, middle: Tensor) -> Tensor:
    """The rest of the hash after the first shift, in place."""
    value *= _FIRST
    spare = value >> 15
    value ^= spare.bitwise_and_(0x1FFFF)
    value ^= middle
    value *= _SECOND
    torch.bitwise_right_shift(value, 16, out=spare)
    value ^= spare.bitwise_and_(0xFFFF)
    return value


def _signed(word: int) -> int:
    word &= 0xFFFFFFFF
    return word - (1 << 32) if word >= 1 << 31 else word


def _wrapped(numbers: Tensor) -> Tensor:
    """Whole numbers modulo 2**32, as int32."""
    word = numbers & 0xFFFFFFFF
    return torch.where(word >= 1 << 31, word - (1 << 32), word).to(torch.int32)
