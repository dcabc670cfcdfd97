"""Results that are computed again in the backward pass, instead of being kept for it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from torch import nn
from torch.func import functional_call
from torch.utils.checkpoint import checkpoint

from memohop.nn._randomness import in_stream, replayed


def recomputed(module: nn.Module, method: Callable[..., Any], *inputs: Any) -> Any:
    """``method(*inputs)``; of all that it computes, only the inputs are kept for its gradient.

    The backward pass calls it again. It then finds the module with the parameters and buffers that
    it has now, which a population puts in only for the time of a forward pass, and draws the same
    dropout masks. It cannot be mapped by ``vmap``. The method may be any function of the module's
    tensors.
    """
    held, caller = dict(_tensors(module)), _Caller(module, method)
    call = replayed(lambda *inputs: functional_call(caller, held, inputs, tie_weights=False))
    return checkpoint(call, *inputs, use_reentrant=False, preserve_rng_state=not in_stream())


def _tensors(module: nn.Module) -> Iterator[tuple[str, Any]]:
    """Parameters and buffers by name, and those of a module that is shared by one name alone.

    Swapping a shared module's tensors twice would not restore its own: it would keep those of the
    step before, and with them the step's autograd graph.
    """
    for name, part in module.named_modules(prefix="module"):
        for own in (part.named_parameters, part.named_buffers):
            yield from own(name, recurse=False)


class _Caller(nn.Module):
    """A module whose forward pass is a method of another one."""

    def __init__(self, module: nn.Module, method: Callable[..., Any]) -> None:
        super().__init__()
        self.module, self.method = module, method

    def forward(self, *inputs: Any) -> Any:
        return self.method(*inputs)
