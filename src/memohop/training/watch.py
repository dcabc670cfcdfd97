"""Which members continue, and which epoch counts: bookkeeping on the population's device."""

from __future__ import annotations

import torch
from torch import Tensor

from memohop.training.rules import Rules

_VAL, _TEST = 1, 2


class Watch:
    """Applies the stopping and keeping rules to each member, without reading from the host.

    Args:
        rules: the rules.
        patience: see :class:`Rules`; None for never stopping.
        members: the number of members.
        epochs: the most steps that will be taken.
        device: the device of the scores.

    Attributes:
        running: ``[B]``, whether a member has not stopped.
        ran: ``[B]``, epochs taken.
        kept_epoch: ``[B]``, the epoch that counts so far, from 0.
        kept_scores: ``[B, 3]``, its scores: train, validation, test.
        losses: ``[B, epochs]``, validation losses, if a rule needs them.
        diverged: ``[B]``, whether a loss or an output was not finite.
    """

    def __init__(
        self, rules: Rules, patience: int | None, members: int, epochs: int, device: torch.device
    ) -> None:
        self.rules, self.patience = rules, patience
        self.running = torch.ones(members, dtype=torch.bool, device=device)
        self.ran = torch.zeros(members, dtype=torch.int64, device=device)
        self.kept_epoch = torch.zeros_like(self.ran)
        self.kept_scores = torch.full((members, 3), -1.0, device=device)
        self.best_score = torch.full((members,), -1.0, device=device)
        self.best_loss = torch.full((members,), torch.inf, device=device)
        self.last_progress = torch.zeros_like(self.ran)
        self.diverged = torch.zeros_like(self.running)
        width = epochs if rules.needs_loss else 0
        self.losses = torch.full((members, width), torch.nan, device=device)

    def look(self, epoch: Tensor, scores: Tensor, loss: Tensor | None) -> Tensor:
        """Record an epoch (from 0), its scores ``[B, 3]`` and its validation losses ``[B]``.

        Returns the members for which it is the epoch to keep, ``[B]``.
        """
        keep = self.running & self._is_to_keep(scores, loss)
        self.kept_scores.copy_(torch.where(keep[:, None], scores, self.kept_scores))
        self.kept_epoch.copy_(torch.where(keep, epoch, self.kept_epoch))
        progress = self._is_progress(scores[:, _VAL], loss)
        self.last_progress.copy_(torch.where(progress, epoch, self.last_progress))
        self.best_score.copy_(torch.fmax(self.best_score, scores[:, _VAL]))
        if loss is not None:
            self.best_loss.copy_(torch.fmin(self.best_loss, loss))
            self.losses.index_copy_(1, epoch[None], loss[:, None])
        self.ran += self.running
        if self.patience is not None:
            self.running &= ~self._has_to_stop(epoch, loss)
        return keep

    def mark_diverged(self, sound: Tensor) -> None:
        """Mark running members that are not ``sound``, ``[B]``; called before :meth:`look`."""
        self.diverged |= self.running & ~sound

    def select(self, index: Tensor) -> None:
        """Continue with these members alone."""
        for name, value in vars(self).items():
            if isinstance(value, Tensor):
                setattr(self, name, value[index])

    def _is_to_keep(self, scores: Tensor, loss: Tensor | None) -> Tensor:
        score, rule = scores[:, _VAL], self.rules.keep
        if rule == "first":
            return score > self.best_score
        if rule == "latest":
            return score >= self.best_score
        if rule == "last":
            return torch.ones_like(self.running)
        if rule == "leak-test":
            tie_broken = (score == self.best_score) & (
                scores[:, _TEST] > self.kept_scores[:, _TEST]
            )
            return (score > self.best_score) | tie_broken
        assert loss is not None
        if rule == "loss":
            return loss < self.best_loss
        return (score >= self.best_score) & (loss <= self.best_loss)

    def _is_progress(self, score: Tensor, loss: Tensor | None) -> Tensor:
        rule = self.rules.stop
        if rule == "score":
            return score > self.best_score
        assert loss is not None
        if rule == "loss":
            return loss < self.best_loss
        return (score >= self.best_score) | (loss <= self.best_loss)

    def _has_to_stop(self, epoch: Tensor, loss: Tensor | None) -> Tensor:
        assert self.patience is not None
        if self.rules.stop != "window":
            return epoch - self.last_progress >= self.patience
        assert loss is not None
        window = epoch - self.patience + torch.arange(self.patience, device=epoch.device)
        before = self.losses.index_select(1, window.clamp(min=0)).mean(1)
        return (epoch > self.patience) & (loss > before)
