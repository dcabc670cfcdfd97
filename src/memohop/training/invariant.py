"""Matrix products that round each member alike in any population."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from memohop.nn._backends.table import serve


class _Invariant(TorchDispatchMode):
    """Sends the batched matrix products of ``vmap`` to a kernel of ours.

    Intercepting every operation costs some host time, but only once for a captured step.

    Args:
        alone: whether products of a member without ``vmap`` go there too: over a long sum of
            bfloat16 the library's product is less exact.
    """

    def __init__(self, alone: bool) -> None:
        super().__init__()
        self._alone = alone

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        if func is torch.ops.aten.bmm.default:
            func = serve("batched_product", args[0]) or func
        elif self._alone and func is torch.ops.aten.mm.default:
            kernel = serve("batched_product", args[0])
            if kernel is not None:
                return kernel(args[0][None], args[1][None])[0]
        return func(*args, **(kwargs or {}))


def invariant_products(device: torch.device, *, alone: bool = False) -> AbstractContextManager[Any]:
    """Within it a member's products do not depend on the size of its population.

    Args:
        device: the device of the products.
        alone: whether the member is computed without ``vmap``.
    """
    kernel = serve("batched_product", torch.empty(0, device=device))
    return nullcontext() if kernel is None else _Invariant(alone)
