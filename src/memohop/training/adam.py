"""Adam for a population: each member has its own learning rate and weight decay."""

from __future__ import annotations

import torch
from torch import Tensor

_BETA1, _BETA2, _EPSILON = 0.9, 0.999, 1e-8  # as everybody has them


class Adam:
    """Adam (Kingma and Ba, 2015) with L2 weight decay, as in ``torch.optim.Adam``.

    Args:
        params: all parameters of each member in a row, ``[B, P]``, changed in place.
        lr: ``[B]``.
        weight_decay: ``[B]``.
    """

    def __init__(self, params: Tensor, lr: Tensor, weight_decay: Tensor) -> None:
        self.params, self.lr, self.weight_decay = params, lr, weight_decay
        self.first, self.second = torch.zeros_like(params), torch.zeros_like(params)

    @torch.no_grad()
    def step(self, grad: Tensor, epoch: Tensor) -> None:
        """One update; ``epoch`` counts from 0. The gradient is used up."""
        count = (epoch + 1).to(torch.float32)
        if grad.is_cuda:
            self._step_together(grad, count)
        else:
            self._step_each(grad, count)

    def select(self, params: Tensor, index: Tensor) -> None:
        """Go on with some members, whose parameters are given."""
        self.params = params
        self.lr, self.weight_decay = self.lr[index], self.weight_decay[index]
        self.first, self.second = self.first[index], self.second[index]

    def _step_each(self, grad: Tensor, count: Tensor) -> None:
        """One fused pass per member: on a CPU this is several times faster than whole stacks."""
        rates = zip(self.lr.tolist(), self.weight_decay.tolist(), strict=True)
        for member, (lr, weight_decay) in enumerate(rates):
            torch._fused_adam_(
                [self.params[member]],
                [grad[member]],
                [self.first[member]],
                [self.second[member]],
                [],
                [count],
                lr=lr,
                beta1=_BETA1,
                beta2=_BETA2,
                weight_decay=weight_decay,
                eps=_EPSILON,
                amsgrad=False,
                maximize=False,
            )

    def _step_together(self, grad: Tensor, count: Tensor) -> None:
        """The whole stack, without a look at the host: this is what a CUDA graph can replay."""
        root = (1 - _BETA2**count).sqrt()
        rate = self.lr * root / (1 - _BETA1**count)
        grad.addcmul_(self.params, self.weight_decay[:, None])
        self.first.lerp_(grad, 1 - _BETA1)
        self.second.mul_(_BETA2).addcmul_(grad, grad, value=1 - _BETA2)
        scale = self.second.sqrt().add_(_EPSILON * root)
        self.params.addcdiv_(self.first * rate[:, None], scale, value=-1)
