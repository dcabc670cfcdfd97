"""Which kernels serve a tensor; dropout and the product with dropped features, fused.

Every operation works on a leading axis of members; under ``vmap`` the members are that axis.
For one member the axis comes and goes by ``unsqueeze`` and ``squeeze``: the backward pass of an
index like ``[0]`` would fill a tensor with zeros and copy into it.
"""

from __future__ import annotations

from functools import cache
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from memohop.nn._ops.operation import Operation, batch_first
from memohop.nn.randomness import Draw, place_words

if TYPE_CHECKING:
    from memohop.nn._ops.pattern import Pattern

kernels: ModuleType | None
gate_kernels: ModuleType | None
try:
    from memohop.nn._backends.triton import gate_kernels as gate_kernels
    from memohop.nn._backends.triton import kernels as kernels
except ImportError:  # no Triton: the plain computations serve
    kernels = gate_kernels = None


def use_kernels(tensor: Tensor) -> bool:
    """Whether the GPU kernels can take this tensor."""
    return kernels is not None and tensor.is_cuda and tensor.dtype == torch.float32


def cpu_kernels(tensor: Tensor) -> ModuleType | None:
    """The CPU kernels where they serve this tensor, whose leading axis is that of the members."""
    if not tensor.is_cpu or tensor.dtype != torch.float32 or not _shared_out(tensor):
        return None
    return numba_kernels()


def cpu_gate_kernels(tensor: Tensor) -> ModuleType | None:
    """The same for those of MMP; of their hashes each decides two columns."""
    even = tensor.shape[-1] % 2 == 0
    return numba_kernels("gate_kernels") if even and cpu_kernels(tensor) is not None else None


def cpu_table_kernels(tensor: Tensor) -> ModuleType | None:
    """The same for products by tables, which share out rows and not members."""
    serves = tensor.is_cpu and tensor.dtype == torch.float32
    return numba_kernels("table_kernels") if serves else None


def cpu_attention_kernels(tensor: Tensor, heads: int) -> ModuleType | None:
    """The same for graph attention as a whole, which is made for eight heads."""
    served = numba_kernels("attention_kernels") if cpu_kernels(tensor) is not None else None
    width = tensor.shape[-1] // heads
    return served if served is not None and served.serves(heads, width) else None


def _shared_out(tensor: Tensor) -> bool:
    """Whether all threads have work: the kernels share out members, PyTorch also their rows."""
    threads = torch.get_num_threads()
    return len(tensor) >= threads or torch._C._are_functorch_transforms_active()


def cpu_kernels_backward(tensor: Tensor) -> ModuleType | None:
    """The CPU kernels where they can take this tensor in a backward pass."""
    return cpu_kernels(tensor) if in_plain_backward() else None


def in_plain_backward() -> bool:
    """In a backward pass, whether nobody will map its gradients or derive them again.

    What the CPU kernels give can be neither.
    """
    return not (torch.is_grad_enabled() or torch._C._are_functorch_transforms_active())


def kernels_for(tensor: Tensor) -> ModuleType | None:
    """The module whose ``dropout``, ``row_softmax`` and ``row_sums`` serve this tensor, if any."""
    return kernels if use_kernels(tensor) else cpu_kernels(tensor)


def gate_kernels_for(tensor: Tensor) -> ModuleType | None:
    """The module whose gated update serves this tensor, if any."""
    return gate_kernels if use_kernels(tensor) else cpu_gate_kernels(tensor)


@cache
def numba_kernels(name: str = "kernels") -> ModuleType | None:
    """One of the modules of CPU kernels, loaded at its first use, since Numba takes its time."""
    try:
        return import_module(f"memohop.nn._backends.numba.{name}")
    except (ImportError, RuntimeError):  # no Numba, or no place for what it compiles
        return None


def dropped(values: Tensor, draw: Draw, rate: Tensor) -> Tensor:
    """Dropout in one pass, and in one pass backwards."""
    return dropped_members(values[None], draw.key[None], rate.reshape(1), draw.place).squeeze(0)


def dropped_members(values: Tensor, keys: Tensor, rates: Tensor, place: int) -> Tensor:
    """Dropout of ``[K, ...]``, each member by its own key and rate, all at one place."""
    return _Dropped.apply(values, keys, rates, place)


def dropped_product(
    values: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    pattern: Pattern,
    draw: Draw,
    rate: Tensor,
) -> Tensor:
    """``drop(X) @ weight + bias`` for sparse ``X`` with constant values, in one pass."""
    if bias is None:
        bias = weight.new_zeros(weight.shape[-1])
    tensors = (weight[None], bias[None], draw.key[None], rate.reshape(1))
    return _DroppedProduct.apply(*tensors, draw.place, values, pattern, False).squeeze(0)


class _Dropped(Operation):
    @staticmethod
    def forward(values: Tensor, keys: Tensor, rates: Tensor, place: int) -> Tensor:
        served = kernels if use_kernels(values) else numba_kernels()
        assert served is not None
        return served.dropout(values, keys.contiguous(), rates.contiguous(), *place_words(place))

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
        _, keys, rates, ctx.place = inputs
        ctx.save_for_backward(keys, rates)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        keys, rates = ctx.saved_tensors
        return _Dropped.apply(grads[0], keys, rates, ctx.place), None, None, None

    @staticmethod
    def vmap(info: Any, in_dims: tuple[int | None, ...], *inputs: Any) -> tuple[Tensor, int]:
        values, keys, rates = fold_members(info, in_dims, inputs[:3])
        return unfold_members(info, _Dropped.apply(values, keys, rates, inputs[3])), 0


class _DroppedProduct(Operation):
    """``drop(X) @ dense + bias``, or ``drop(X).T @ dense``, which is its gradient."""

    @staticmethod
    def forward(
        dense: Tensor,
        bias: Tensor | None,
        keys: Tensor,
        rates: Tensor,
        place: int,
        values: Tensor,
        pattern: Pattern,
        transposed: bool,
    ) -> Tensor:
        drop = (keys.contiguous(), rates.contiguous(), *place_words(place))
        if transposed:
            return pattern.transposed_product(values, dense, drop=drop)
        return pattern.product(values, dense, bias=bias, drop=drop)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
        _, bias, keys, rates, ctx.place, values, ctx.pattern, ctx.transposed = inputs
        ctx.has_bias = bias is not None
        ctx.save_for_backward(keys, rates, values)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        keys, rates, values = ctx.saved_tensors
        turned = (ctx.place, values, ctx.pattern, not ctx.transposed)
        of_dense = _DroppedProduct.apply(grads[0], None, keys, rates, *turned)
        return of_dense, grads[0].sum(1) if ctx.has_bias else None, *[None] * 6

    @staticmethod
    def vmap(info: Any, in_dims: tuple[int | None, ...], *inputs: Any) -> tuple[Tensor, int]:
        folded = fold_members(info, in_dims, inputs[:4])
        return unfold_members(info, _DroppedProduct.apply(*folded, *inputs[4:])), 0


def fold_members(info: Any, in_dims: tuple[int | None, ...], inputs: Any) -> list[Any]:
    """Members into the leading axis that every operation has; what is None stays None."""
    return [
        None if tensor is None else batch_first(tensor, dim, info.batch_size).flatten(0, 1)
        for tensor, dim in zip(inputs, in_dims, strict=False)
    ]


def unfold_members(info: Any, folded: Tensor) -> Tensor:
    """Members out of the leading axis again, into one before it."""
    return folded.unflatten(0, (info.batch_size, -1))
