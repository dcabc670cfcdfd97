"""Seeds for the tests, and comparisons that allow for float32 rounding.

``MEMOHOP_TEST_SEED`` (0 by default) shifts all seeds; a test must pass for every value.
"""

from __future__ import annotations

import copy
import math
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn

BASE_SEED = 1000 * int(os.environ.get("MEMOHOP_TEST_SEED", "0"))


def seeded(offset: int = 0) -> int:
    """The base seed plus an offset."""
    return BASE_SEED + offset


def generator(offset: int = 0) -> torch.Generator:
    """A generator seeded with :func:`seeded`."""
    return torch.Generator().manual_seed(seeded(offset))


@contextmanager
def in_float64() -> Iterator[None]:
    """Make float64 the default type, so that rounding does not blur a comparison."""
    torch.set_default_dtype(torch.float64)
    try:
        yield
    finally:
        torch.set_default_dtype(torch.float32)


def with_parameters(networks: Sequence[nn.Module], parameters: Sequence[Tensor]) -> list[nn.Module]:
    """Float64 copies of the networks with the given parameters, network after network."""
    copies, values = [copy.deepcopy(network).double() for network in networks], iter(parameters)
    with torch.no_grad():
        for network in copies:
            for parameter in network.parameters():
                parameter.copy_(next(values))
    return copies


def assert_rounded(
    results: Tensor | Sequence[Tensor],
    function: Callable[..., Tensor | Sequence[Tensor]],
    *inputs: Tensor,
    length: int,
) -> None:
    r"""Assert that a float32 result equals ``function`` in float64, up to rounding.

    A float32 sum of :math:`n` products, in any order, is the exact sum of terms with a relative
    error of at most :math:`n\epsilon`, and rarely more than :math:`3\sqrt n\epsilon`, since
    roundings up and down cancel (Higham and Mary, 2019). The errors of successive steps add up. So
    a computation with ``length`` roundings between input and result gives roughly the exact result
    for inputs with that relative error. To see how large its effect is, the float64 inputs are
    perturbed several times by that much, with random signs. No element may differ by more than
    twice the largest change in its tensor, since all its elements are sums of the same kind.

    Args:
        results: the float32 result, or several.
        function: the same computation, or a plainer one; it gets the inputs in float64.
        inputs: all floating-point inputs, including incoming gradients; they are converted here.
        length: the number of terms in all successive sums, plus the other operations in between.
    """
    results = _as_list(results)
    exact_inputs = [tensor.detach().double() for tensor in inputs]
    exact = [part.detach() for part in _as_list(function(*exact_inputs))]
    signs, off = generator(99), _roundings(length) * torch.finfo(torch.float32).eps
    changes = [0.0] * len(exact)
    for _ in range(6):
        moved = [tensor * (1 + off * _signs(tensor, signs)) for tensor in exact_inputs]
        for i, part in enumerate(_as_list(function(*moved))):
            changes[i] = max(changes[i], _largest(part.detach() - exact[i]))
    for i, (single, double) in enumerate(zip(results, exact, strict=True)):
        assert single.dtype == torch.float32
        assert double.dtype == torch.float64
        assert single.shape == double.shape
        difference = _largest(single.detach().double().cpu() - double.cpu())
        allowed = 2 * changes[i]
        assert difference <= allowed, f"result {i}: off by {difference}, allowed {allowed}"


def assert_same_sums(sums: Tensor, other: Tensor, *, length: int) -> None:
    """Assert that two float32 results are the same sums of ``length`` terms in different orders.

    Each has the relative error of :func:`assert_rounded`; the terms are taken to be as large as
    the largest sum.
    """
    allowed = 2 * _roundings(length) * torch.finfo(torch.float32).eps * _largest(other)
    torch.testing.assert_close(sums, other, rtol=0, atol=allowed)


def _roundings(length: int) -> float:
    return min(length, 3 * math.sqrt(length))


def _signs(like: Tensor, numbers: torch.Generator) -> Tensor:
    return 2 * torch.randint(2, like.shape, generator=numbers).to(like.device) - 1


def _as_list(parts: Any) -> list[Tensor]:
    return [parts] if isinstance(parts, Tensor) else list(parts)


def _largest(tensor: Tensor) -> float:
    return float(tensor.detach().abs().max()) if tensor.numel() else 0.0


def mask_of(draw, shape, rate, dtype):
    """The mask that a draw stands for: zeros with probability ``rate``, else ``1 / (1 - rate)``."""
    from memohop.nn._randomness import keep_masks

    return keep_masks(draw.key[None], rate.reshape(1), draw.place, shape, dtype)[0]
