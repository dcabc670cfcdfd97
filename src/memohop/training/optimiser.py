"""Optimisers for a population: each member has its own learning rate and weight decay."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable

import torch
from torch import Tensor

from memohop.nn._backends.table import serve

_BETA1, _BETA2, _EPSILON = 0.9, 0.999, 1e-8  # as everybody has them


class Optimiser(ABC):
    """Changes the parameters of all members in place.

    Args:
        params: all parameters of each member in a row, ``[B, P]``.
        lr: ``[B]``.
        weight_decay: ``[B]``.
        decayed: ``[P]``, 1 for parameters that are decayed and 0 for the others; None for all.
    """

    def __init__(
        self, params: Tensor, lr: Tensor, weight_decay: Tensor, decayed: Tensor | None = None
    ) -> None:
        self.params, self.lr, self.weight_decay, self.decayed = params, lr, weight_decay, decayed

    @abstractmethod
    def step(self, grad: Tensor, epoch: Tensor) -> None:
        """One update; ``epoch`` counts from 0. The gradient is used up."""

    def select(self, params: Tensor, index: Tensor) -> None:
        """Go on with some members, whose parameters are given."""
        self.params = params
        self.lr, self.weight_decay = self.lr[index], self.weight_decay[index]

    def penalty(self) -> Tensor:
        """Half the weight decay times the sum of squares, whose gradient the decay is, ``[B]``."""
        squares = self.params**2 if self.decayed is None else self.params**2 * self.decayed
        return squares.sum(1) * self.weight_decay / 2

    def _decay(self, grad: Tensor) -> None:
        """Add the gradient of :meth:`penalty`."""
        if self.decayed is None:
            grad.addcmul_(self.params, self.weight_decay[:, None])
        else:
            grad.addcmul_(self.params, self.weight_decay[:, None] * self.decayed)


class SGD(Optimiser):
    """Gradient descent without momentum, as in ``torch.optim.SGD``."""

    @torch.no_grad()
    def step(self, grad: Tensor, epoch: Tensor) -> None:
        """One update."""
        self._decay(grad)
        self.params.addcmul_(grad, self.lr[:, None], value=-1)


class Adam(Optimiser):
    """Adam (Kingma and Ba, 2015) with L2 weight decay, as in ``torch.optim.Adam``."""

    def __init__(
        self, params: Tensor, lr: Tensor, weight_decay: Tensor, decayed: Tensor | None = None
    ) -> None:
        super().__init__(params, lr, weight_decay, decayed)
        self.first, self.second = torch.zeros_like(params), torch.zeros_like(params)

    @torch.no_grad()
    def step(self, grad: Tensor, epoch: Tensor) -> None:
        """One update; ``epoch`` counts from 0. The gradient is used up."""
        count = (epoch + 1).to(torch.float32)
        kernel = serve("adam", grad)
        if kernel is None:
            self._decay(grad)
            self._step_together(grad, count)
            return
        weight_decay = self.weight_decay
        if self.decayed is not None:
            self._decay(grad)
            weight_decay = torch.zeros_like(weight_decay)
        moments = self.first, self.second
        rates = self.lr, weight_decay, (_BETA1, _BETA2), _EPSILON
        kernel(self.params, grad, *moments, count, *rates)

    def select(self, params: Tensor, index: Tensor) -> None:
        """Go on with some members, whose parameters are given."""
        super().select(params, index)
        self.first, self.second = self.first[index], self.second[index]

    def _step_together(self, grad: Tensor, count: Tensor) -> None:
        """The whole stack, without a look at the host: this is what a CUDA graph can replay."""
        root = (1 - _BETA2**count).sqrt()
        rate = self.lr * root / (1 - _BETA1**count)
        self.first.lerp_(grad, 1 - _BETA1)
        self.second.mul_(_BETA2).addcmul_(grad, grad, value=1 - _BETA2)
        scale = self.second.sqrt().add_(_EPSILON * root)
        self.params.addcdiv_(self.first * rate[:, None], scale, value=-1)


class AdamW(Adam):
    """Adam with decay apart from the gradient (Loshchilov and Hutter, 2019)."""

    def __init__(
        self, params: Tensor, lr: Tensor, weight_decay: Tensor, decayed: Tensor | None = None
    ) -> None:
        super().__init__(params, lr, torch.zeros_like(weight_decay), decayed)
        self.shrinkage = weight_decay

    @torch.no_grad()
    def step(self, grad: Tensor, epoch: Tensor) -> None:
        """One update; ``epoch`` counts from 0. The gradient is used up."""
        share = (self.lr * self.shrinkage)[:, None]
        self.params.sub_(self.params * (share if self.decayed is None else share * self.decayed))
        super().step(grad, epoch)

    def select(self, params: Tensor, index: Tensor) -> None:
        """Go on with some members, whose parameters are given."""
        super().select(params, index)
        self.shrinkage = self.shrinkage[index]


OPTIMISERS: dict[str, Callable[..., Optimiser]] = {"adam": Adam, "adamw": AdamW, "sgd": SGD}
