"""Optimisers for a population: each member has its own learning rate and weight decay."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from memohop.training.rules import Rules

_BETA1, _BETA2, _EPSILON = 0.9, 0.999, 1e-8  # the usual values


class Optimiser(ABC):
    """Changes the parameters of all members in place.

    Args:
        params: all parameters of each member in a row, ``[B, P]``.
        lr: ``[B]``.
        weight_decay: ``[B]``.
        decayed: ``[P]``, 1 for parameters that are decayed and 0 for the others; None for all.
    """

    per_member: tuple[str, ...] = ("lr", "weight_decay")

    def __init__(
        self, params: Tensor, lr: Tensor, weight_decay: Tensor, decayed: Tensor | None = None
    ) -> None:
        self.params, self.lr, self.weight_decay, self.decayed = params, lr, weight_decay, decayed

    @abstractmethod
    def step(self, grad: Tensor, epoch: Tensor) -> None:
        """One update; ``epoch`` counts from 0. The gradient is overwritten."""

    def select(self, params: Tensor, index: Tensor) -> None:
        """Continue with some members, given their parameters."""
        self.params = params
        for name in self.per_member:
            setattr(self, name, getattr(self, name)[index])

    def penalty(self) -> Tensor:
        """Half the weight decay times the sum of squares, ``[B]``: its gradient is the decay."""
        squares = self.params**2 if self.decayed is None else self.params**2 * self.decayed
        return squares.sum(1) * self.weight_decay / 2

    def _decay(self, grad: Tensor) -> None:
        """Add the gradient of :meth:`penalty`."""
        factor = self.weight_decay[:, None]
        grad.addcmul_(self.params, factor if self.decayed is None else factor * self.decayed)


class SGD(Optimiser):
    """Gradient descent without momentum, as in ``torch.optim.SGD``."""

    @torch.no_grad()
    def step(self, grad: Tensor, epoch: Tensor) -> None:
        """One update."""
        self._decay(grad)
        self.params.addcmul_(grad, self.lr[:, None], value=-1)


class Adam(Optimiser):
    """Adam (Kingma and Ba, 2015) with L2 weight decay, as in ``torch.optim.Adam``."""

    per_member = (*Optimiser.per_member, "first", "second")

    def __init__(self, params: Tensor, *others: Any) -> None:
        super().__init__(params, *others)
        self.first, self.second = torch.zeros_like(params), torch.zeros_like(params)

    @torch.no_grad()
    def step(self, grad: Tensor, epoch: Tensor) -> None:
        """One update."""
        count = (epoch + 1).to(torch.float32)
        if grad.is_cuda:
            self._decay(grad)
            self._step_together(grad, count)
        else:
            self._step_each(grad, count)

    def _step_each(self, grad: Tensor, count: Tensor) -> None:
        """A fused pass for each member. Unlike a GPU's it corrects the moments in float64."""
        weight_decay = self.weight_decay
        if self.decayed is not None:
            self._decay(grad)
            weight_decay = torch.zeros_like(weight_decay)
        rates = zip(self.lr.tolist(), weight_decay.tolist(), strict=True)
        for member, (rate, decay) in enumerate(rates):
            torch._fused_adam_(
                [self.params[member]],
                [grad[member]],
                [self.first[member]],
                [self.second[member]],
                [],
                [count],
                lr=rate,
                beta1=_BETA1,
                beta2=_BETA2,
                weight_decay=decay,
                eps=_EPSILON,
                amsgrad=False,
                maximize=False,
            )

    def _step_together(self, grad: Tensor, count: Tensor) -> None:
        """The whole stack without reading from the host, so that a CUDA graph can replay it."""
        root = (1 - _BETA2**count).sqrt()
        rate = self.lr * root / (1 - _BETA1**count)
        self.first.lerp_(grad, 1 - _BETA1)
        self.second.mul_(_BETA2).addcmul_(grad, grad, value=1 - _BETA2)
        scale = self.second.sqrt().add_(_EPSILON * root)
        self.params.addcdiv_(self.first * rate[:, None], scale, value=-1)


class AdamW(Adam):
    """Adam with decay apart from the gradient (Loshchilov and Hutter, 2019)."""

    per_member = (*Adam.per_member, "shrinkage")

    def __init__(
        self, params: Tensor, lr: Tensor, weight_decay: Tensor, decayed: Tensor | None = None
    ) -> None:
        super().__init__(params, lr, torch.zeros_like(weight_decay), decayed)
        self.shrinkage = weight_decay

    @torch.no_grad()
    def step(self, grad: Tensor, epoch: Tensor) -> None:
        """One update."""
        share = (self.lr * self.shrinkage)[:, None]
        self.params.sub_(self.params * (share if self.decayed is None else share * self.decayed))
        super().step(grad, epoch)


OPTIMISERS: dict[str, Callable[..., Optimiser]] = {"adam": Adam, "adamw": AdamW, "sgd": SGD}


class Schedule:
    """Changes the members' learning rates, in place, after each epoch.

    Args:
        rules: the schedule and its two numbers.
        lr: ``[B]``, the rates.
    """

    def __init__(self, rules: Rules, lr: Tensor) -> None:
        self.rules, self.lr = rules, lr
        self.best_loss = torch.full_like(lr, torch.inf)
        self.waited = torch.zeros_like(lr)

    def step(self, epoch: Tensor, loss: Tensor | None) -> None:
        """Take in an epoch (from 0) and its validation losses."""
        rules = self.rules
        if rules.schedule == "steps":
            due = (epoch + 1) % rules.schedule_epochs == 0
            self.lr.sub_(due * rules.schedule_amount).clamp_(min=0)
        elif rules.schedule == "plateau":
            assert loss is not None
            # As in torch's ReduceLROnPlateau, a fall by less than 1e-4 of the loss does not count.
            better = loss < self.best_loss * (1 - 1e-4)
            self.best_loss.copy_(torch.where(better, loss, self.best_loss))
            self.waited.add_(1).mul_(~better)
            due = self.waited > rules.schedule_epochs
            self.lr.mul_(torch.where(due, rules.schedule_amount, 1.0))
            self.waited.mul_(~due)

    def select(self, lr: Tensor, index: Tensor) -> None:
        """Continue with some members, given their rates."""
        self.lr = lr
        self.best_loss, self.waited = self.best_loss[index], self.waited[index]
