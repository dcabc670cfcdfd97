"""Seeds that a base seed moves, and how far rounding may take a float32 computation.

``MEMOHOP_TEST_SEED`` (0 by default) is the base seed: a test must hold for each of them.
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


def seeded(place: int = 0) -> int:
    """The seed at a place of its own beyond the base seed."""
    return BASE_SEED + place


def generator(place: int = 0) -> torch.Generator:
    """Random numbers of a place."""
    return torch.Generator().manual_seed(seeded(place))


@contextmanager
def in_float64() -> Iterator[None]:
    """What is made without a type is float64, so that rounding does not blur a comparison."""
    torch.set_default_dtype(torch.float64)
    try:
        yield
    finally:
        torch.set_default_dtype(torch.float32)


def with_parameters(networks: Sequence[nn.Module], parameters: Sequence[Tensor]) -> list[nn.Module]:
    """Copies of the networks in float64, with other parameters, one network's after the other."""
    copies, values = [copy.deepcopy(network).double() for network in networks], iter(parameters)
    with torch.no_grad():
        for network in copies:
            for parameter in network.parameters():
                parameter.copy_(next(values))
    return copies


def assert_rounded(
    found: Tensor | Sequence[Tensor],
    function: Callable[..., Tensor | Sequence[Tensor]],
    *inputs: Tensor,
    length: int,
) -> None:
    r"""What was found in float32 is what ``function`` gives in float64, up to rounding.

    A sum of :math:`n` products in float32, in whatever order a processor takes them, is the exact
    sum of terms that are off by at most :math:`n\epsilon` of themselves, and by hardly ever more
    than :math:`3\sqrt n\epsilon`, since roundings up and down make up for each other (Higham and
    Mary, 2019); those of one step after another add up. So a computation with ``length`` roundings
    on the way from an input to a result gives about what exact arithmetic gives for inputs
    that are off by so much. How much that makes, float64 tells: the inputs are moved, with
    random signs, several times. No element may be farther off than twice the largest of these
    moves in its tensor: all of them are sums of the same kind.

    Args:
        found: in float32.
        function: the same computation, or a plainer one, from the inputs in float64.
        inputs: all floating-point numbers that enter, gradients from above too; they are
            converted.
        length: the number of terms of the sums that follow on each other, with the other operations
            on the way.
    """
    found = _as_list(found)
    exact_inputs = [tensor.detach().double() for tensor in inputs]
    exact = [part.detach() for part in _as_list(function(*exact_inputs))]
    signs, off = generator(99), _roundings(length) * torch.finfo(torch.float32).eps
    moves = [0.0] * len(exact)
    for _ in range(6):
        moved = [tensor * (1 + off * _signs(tensor, signs)) for tensor in exact_inputs]
        for place, part in enumerate(_as_list(function(*moved))):
            moves[place] = max(moves[place], _largest(part.detach() - exact[place]))
    for place, (one, two) in enumerate(zip(found, exact, strict=True)):
        assert one.dtype == torch.float32
        assert two.dtype == torch.float64
        assert one.shape == two.shape
        difference = _largest(one.detach().double().cpu() - two.cpu())
        allowed = 2 * moves[place]
        assert difference <= allowed, f"result {place}: off by {difference}, allowed {allowed}"


def assert_same_sums(found: Tensor, other: Tensor, *, length: int) -> None:
    """Two float32 computations of the same sums of ``length`` terms, in another order.

    Each is off as above by a part of its terms, which are of the size of the largest sums.
    """
    allowed = 2 * _roundings(length) * torch.finfo(torch.float32).eps * _largest(other)
    torch.testing.assert_close(found, other, rtol=0, atol=allowed)


def _roundings(length: int) -> float:
    return min(length, 3 * math.sqrt(length))


def _signs(like: Tensor, numbers: torch.Generator) -> Tensor:
    return 2 * torch.randint(2, like.shape, generator=numbers).to(like.device) - 1


def _as_list(parts: Any) -> list[Tensor]:
    return [parts] if isinstance(parts, Tensor) else list(parts)


def _largest(tensor: Tensor) -> float:
    return float(tensor.detach().abs().max()) if tensor.numel() else 0.0
