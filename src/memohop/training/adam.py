"""Adam for a population: each member has its own learning rate and weight decay."""

from __future__ import annotations

import torch
from torch import Tensor

_BETA1, _BETA2, _EPSILON = 0.9, 0.999, 1e-8  # as everybody has them

Stack = dict[str, Tensor]


class Adam:
    """Adam (Kingma and Ba, 2015) with L2 weight decay, as in ``torch.optim.Adam``.

    Args:
        params: stacked parameters ``[B, ...]`` by name, changed in place.
        lr: ``[B]``.
        weight_decay: ``[B]``.
    """

    def __init__(self, params: Stack, lr: Tensor, weight_decay: Tensor) -> None:
        self.params, self.lr, self.weight_decay = params, lr, weight_decay
        self.first = {name: torch.zeros_like(value) for name, value in params.items()}
        self.second = {name: torch.zeros_like(value) for name, value in params.items()}

    @torch.no_grad()
    def step(self, grads: Stack, epoch: Tensor) -> None:
        """One update; ``epoch`` counts from 0. The gradients are used up."""
        count = (epoch + 1).to(torch.float32)
        if epoch.is_cuda:
            self._step_together(grads, count)
        else:
            self._step_each(grads, count)

    def select(self, params: Stack, index: Tensor) -> None:
        """Go on with some members, whose parameters are given."""
        self.params = params
        self.lr, self.weight_decay = self.lr[index], self.weight_decay[index]
        self.first = {name: value[index] for name, value in self.first.items()}
        self.second = {name: value[index] for name, value in self.second.items()}

    def _step_each(self, grads: Stack, count: Tensor) -> None:
        """One fused pass per member: on a CPU this is several times faster than whole stacks."""
        names = list(self.params)
        grads = {name: grads[name].contiguous() for name in names}  # the fused pass assumes it
        rates = zip(self.lr.tolist(), self.weight_decay.tolist(), strict=True)
        for member, (lr, weight_decay) in enumerate(rates):
            torch._fused_adam_(
                [self.params[name][member] for name in names],
                [grads[name][member] for name in names],
                [self.first[name][member] for name in names],
                [self.second[name][member] for name in names],
                [],
                [count] * len(names),
                lr=lr,
                beta1=_BETA1,
                beta2=_BETA2,
                weight_decay=weight_decay,
                eps=_EPSILON,
                amsgrad=False,
                maximize=False,
            )

    def _step_together(self, grads: Stack, count: Tensor) -> None:
        """Whole stacks, without a look at the host: this is what a CUDA graph can replay."""
        root = (1 - _BETA2**count).sqrt()
        rate = self.lr * root / (1 - _BETA1**count)
        for name, value in self.params.items():
            shape = (-1, *[1] * (value.dim() - 1))
            grad = grads[name].addcmul_(value, self.weight_decay.view(shape))
            first, second = self.first[name], self.second[name]
            first.lerp_(grad, 1 - _BETA1)
            second.mul_(_BETA2).addcmul_(grad, grad, value=1 - _BETA2)
            value.addcdiv_(first * rate.view(shape), second.sqrt().add_(_EPSILON * root), value=-1)
