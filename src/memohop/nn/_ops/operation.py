"""What the library's own differentiable operations have in common."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor
from torch._functorch.utils import unwrap_dead_wrappers


class Operation(torch.autograd.Function):
    """An autograd function with a ``vmap`` rule, without the cost of either where not needed.

    ``torch.autograd.Function.apply`` inspects the signature of ``forward`` on every call to fill
    in defaults. Ours have none, and on a small graph that inspection would be a tenth of a step.
    Like that one, this takes tensors out of the wrappers of a transform that is over: what
    ``torch.func.vjp`` saved arrives in them.
    """

    @classmethod
    def apply(cls, *inputs: Any) -> Any:
        """Run the operation."""
        if torch._C._are_functorch_transforms_active():
            return super().apply(*inputs)
        return super(torch.autograd.Function, cls).apply(*unwrap_dead_wrappers(inputs))  # type: ignore[misc]


def gradients(
    function: Callable[..., tuple[Tensor, ...]],
    inputs: Sequence[Tensor],
    grads: Sequence[Tensor | None],
) -> tuple[Tensor, ...]:
    """The gradients in the inputs, from those in the results, as values to map or derive again.

    For the backward pass of an operation whose kernels give neither: ``function`` is the same
    from PyTorch's operations. A gradient of None counts as zeros.
    """
    plain = unwrap_dead_wrappers(tuple(inputs))
    outputs, pull_back = torch.func.vjp(function, *plain)  # type: ignore[misc]
    given = zip(outputs, grads, strict=True)
    return pull_back(tuple(torch.zeros_like(out) if grad is None else grad for out, grad in given))


def batch_first(tensor: Tensor, dim: int | None, size: int) -> Tensor:
    """A tensor inside a vmap rule with its members first, repeated where it has none."""
    return tensor.expand(size, *tensor.shape) if dim is None else tensor.movedim(dim, 0)
