"""Products that round each member alike, whoever else is in the population."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

try:
    from memohop.nn._backends.triton.dense_kernels import batched_product
except ImportError:  # no Triton: products round as the matrix library likes
    batched_product = None  # type: ignore[assignment]


class _Invariant(TorchDispatchMode):
    """Sends the batched matrix products that ``vmap`` makes to a kernel of our own.

    Looking at every operation costs the host some time, but a captured step is looked at once.
    """

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        if func is torch.ops.aten.bmm.default and args[0].dtype == torch.float32:
            return batched_product(*args)
        return func(*args, **(kwargs or {}))


def invariant_products(device: torch.device) -> AbstractContextManager[Any]:
    """Within it a member's products do not depend on the size of its population."""
    if device.type != "cuda" or batched_product is None:
        return nullcontext()
    return _Invariant()
