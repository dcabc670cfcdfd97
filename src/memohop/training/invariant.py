"""Matrix products that round each member alike in any population."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from memohop.training.device import traits_of

try:
    from memohop.nn._backends.triton.dense_kernels import batched_product
except ImportError:  # without Triton, the matrix library decides how products round
    batched_product = None  # type: ignore[assignment]


class _Invariant(TorchDispatchMode):
    """Sends the batched matrix products of ``vmap`` to a kernel of ours.

    Intercepting every operation costs some host time, but only once for a captured step.
    """

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        if func is torch.ops.aten.bmm.default and args[0].dtype == torch.float32:
            return batched_product(*args)
        return func(*args, **(kwargs or {}))


def invariant_products(device: torch.device) -> AbstractContextManager[Any]:
    """A context in which a member's products do not depend on the size of its population."""
    ours = traits_of(device).rounds_alike and batched_product is not None
    return _Invariant() if ours else nullcontext()
