"""The base of the library's own differentiable operations, and where they find GPU kernels."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from types import ModuleType
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
            None if tensor is None else _members_first(tensor, dim, size).flatten(0, 1)
            for tensor, dim in zip(inputs[: cls.tensors], in_dims, strict=False)
        ]
        outputs = cls.apply(*folded, *inputs[cls.tensors :])
        if isinstance(outputs, Tensor):
            return outputs.unflatten(0, (size, -1)), 0
        return tuple(part.unflatten(0, (size, -1)) for part in outputs), (0,) * len(outputs)


def kernels_for(tensor: Tensor) -> ModuleType | None:
    """The GPU kernels (:mod:`memohop.nn._kernels`), or None to compute with PyTorch.

    They serve float32 and bfloat16 on a GPU, with sums in float32, where Triton is installed.
    Kernels cannot be mapped or differentiated: an operation has a ``vmap`` rule and a backward pass
    of its own.
    """
    if not tensor.is_cuda or tensor.dtype not in (torch.float32, torch.bfloat16):
        return None
    return _kernels()


@cache
def _kernels() -> ModuleType | None:
    try:
        from memohop.nn import _kernels as kernels
    except (ImportError, RuntimeError):  # not installed, or no folder for compiled code
        return None
    return kernels


def in_plain_backward() -> bool:
    """Whether nothing will map or differentiate the gradients of this backward pass."""
    return not (torch.is_grad_enabled() or torch._C._are_functorch_transforms_active())


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
    outputs = function(*(item.float() if _is_half(item) else item for item in inputs))
    return tree_map(lambda out: out.bfloat16() if out.is_floating_point() else out, outputs)


def _is_half(item: Any) -> bool:
    return isinstance(item, Tensor) and item.dtype == torch.bfloat16


def _members_first(tensor: Tensor, dim: int | None, size: int) -> Tensor:
    """A tensor inside a ``vmap`` rule with its members first, repeated if it has none."""
    return tensor.expand(size, *tensor.shape) if dim is None else tensor.movedim(dim, 0)
