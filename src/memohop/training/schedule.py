"""How learning rates change during training, per member and on the device."""

from __future__ import annotations

import torch
from torch import Tensor

from memohop.training.rules import Rules


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
