"""The base of the library's own differentiable operations."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, ClassVar

import torch
from torch import Tensor
from torch._functorch.utils import unwrap_dead_wrappers
from torch.utils._pytree import tree_map


class Operation(torch.autograd.Function):
    """An autograd function with a ``vmap`` rule, without the cost of either if not needed.

    The first ``tensors`` inputs and all results have a leading axis of members; an input may be
    None. Under ``vmap`` the members are folded into that axis. For one member it is added by
    ``[None]`` and removed by ``squeeze``: the backward pass of an index like ``[0]`` would fill a
    tensor with zeros and copy into it.

    ``torch.autograd.Function.apply`` inspects the signature of ``forward`` on every call to fill
    in defaults. Our operations have none, and on a small graph the inspection would take a tenth
    of a step. Like ``Function.apply``, this unwraps tensors that ``torch.func.vjp`` saved in the
    wrappers of a transform that has ended.

    ``torch.compile`` does not look inside: the operation runs as it does without it.
    """

    tensors: ClassVar[int]

    @classmethod
    def apply(cls, *inputs: Any) -> Any:
        """Run the operation."""
        if torch.compiler.is_dynamo_compiling():
            return torch.compiler.disable(cls.apply)(*inputs)
        if torch._C._are_functorch_transforms_active():
            return super().apply(*inputs)
        return super(torch.autograd.Function, cls).apply(*unwrap_dead_wrappers(inputs))  # type: ignore[misc]

    @classmethod
    def vmap(cls, info: Any, in_dims: tuple[int | None, ...], *inputs: Any) -> tuple[Any, Any]:
        """Fold the members into the leading axis, run, and unfold them again."""
        size = info.batch_size
        folded = [
            None if tensor is None else batch_first(tensor, dim, size).flatten(0, 1)
            for tensor, dim in zip(inputs[: cls.tensors], in_dims, strict=False)
        ]
        found = cls.apply(*folded, *inputs[cls.tensors :])
        if isinstance(found, Tensor):
            return found.unflatten(0, (size, -1)), 0
        return tuple(part.unflatten(0, (size, -1)) for part in found), (0,) * len(found)


def gradients(
    function: Callable[..., tuple[Tensor, ...]],
    inputs: Sequence[Tensor],
    grads: Sequence[Tensor | None],
) -> tuple[Tensor, ...]:
    """The gradients in the inputs, from those in the results, to be mapped or differentiated.

    For the backward pass of an operation with kernels, which allow neither: ``function`` computes
    the same with PyTorch's operations. A gradient of None counts as zeros.
    """
    plain = unwrap_dead_wrappers(tuple(inputs))
    outputs, pull_back = torch.func.vjp(function, *plain)  # type: ignore[misc]
    given = zip(outputs, grads, strict=True)
    return pull_back(tuple(torch.zeros_like(out) if grad is None else grad for out, grad in given))


def in_single(function: Callable[..., Any], *inputs: Any) -> Any:
    """``function(*inputs)``, computed in float32 if some of the inputs are bfloat16.

    Results of float32 are bfloat16 then too.
    """
    if not any(map(_is_half, inputs)):
        return function(*inputs)
    found = function(*(one.float() if _is_half(one) else one for one in inputs))
    return tree_map(lambda one: one.bfloat16() if one.is_floating_point() else one, found)


def _is_half(one: Any) -> bool:
    return isinstance(one, Tensor) and one.dtype == torch.bfloat16


def batch_first(tensor: Tensor, dim: int | None, size: int) -> Tensor:
    """A tensor inside a ``vmap`` rule with its members first, repeated if it has none."""
    return tensor.expand(size, *tensor.shape) if dim is None else tensor.movedim(dim, 0)
