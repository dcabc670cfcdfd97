"""The rules of a training, applied to all members at once, without reading from the host.

The optimiser and the schedule of its rates, which members continue, and which epoch counts.
"""

from __future__ import annotations

from typing import ClassVar

import torch
from torch import Tensor

from memohop.training.job import Rules
from memohop.training.task import Task

_BETA1, _BETA2, _EPSILON = 0.9, 0.999, 1e-8  # of Adam, the usual values
_VAL, _TEST = 1, 2
_GROUPS = 5  # of validation nodes


class PerMember:
    """State with a row for each member, in its attributes that are tensors."""

    shared: ClassVar[str] = ""  # the name of one that all members share

    def select(self, index: Tensor) -> None:
        """Continue with these members alone."""
        for name, value in vars(self).items():
            if isinstance(value, Tensor) and name != self.shared:
                setattr(self, name, value[index])


class Optimiser(PerMember):
    """Changes the parameters of all members in place, each with its own rate and weight decay.

    ``adam`` (Kingma and Ba, 2015) adds the gradient of the L2 penalty, as ``torch.optim.Adam``
    does; ``adamw`` (Loshchilov and Hutter, 2019) decays apart from the gradient; ``sgd`` is
    gradient descent without momentum.

    Args:
        kind: which of them.
        params: all parameters of each member in a row, ``[B, P]``.
        lr: ``[B]``.
        weight_decay: ``[B]``.
        decayed: ``[P]``, 1 for parameters that are decayed and 0 for the others; None for all.
    """

    shared = "decayed"

    def __init__(
        self,
        kind: str,
        params: Tensor,
        lr: Tensor,
        weight_decay: Tensor,
        decayed: Tensor | None = None,
    ) -> None:
        self.kind, self.lr, self.decayed = kind, lr, decayed
        self.weight_decay = torch.zeros_like(weight_decay) if kind == "adamw" else weight_decay
        self.shrinkage = weight_decay
        moments = params[:, :0] if kind == "sgd" else params
        self.first, self.second = torch.zeros_like(moments), torch.zeros_like(moments)

    @torch.no_grad()
    def step(self, params: Tensor, grad: Tensor, epoch: Tensor) -> None:
        """One update of ``params``; ``epoch`` counts from 0. The gradient is overwritten."""
        if self.kind == "adamw":
            share = (self.lr * self.shrinkage)[:, None]
            params.sub_(params * self._of_decayed(share))
        each = self.kind != "sgd" and not grad.is_cuda
        weight_decay = self.weight_decay
        if not each or self.decayed is not None:  # the gradient of the penalty
            grad.addcmul_(params, self._of_decayed(self.weight_decay[:, None]))
            weight_decay = torch.zeros_like(weight_decay)
        if self.kind == "sgd":
            params.addcmul_(grad, self.lr[:, None], value=-1)
        elif each:
            self._step_each(params, grad, (epoch + 1).to(torch.float32), weight_decay)
        else:
            self._step_together(params, grad, (epoch + 1).to(torch.float32))

    def _step_each(self, params: Tensor, grad: Tensor, count: Tensor, weight_decay: Tensor) -> None:
        """A fused pass for each member. Unlike a GPU's it corrects the moments in float64."""
        rates = zip(self.lr.tolist(), weight_decay.tolist(), strict=True)
        for member, (rate, decay) in enumerate(rates):
            torch._fused_adam_(
                [params[member]],
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

    def _step_together(self, params: Tensor, grad: Tensor, count: Tensor) -> None:
        """The whole stack without reading from the host, so that a CUDA graph can replay it."""
        root = (1 - _BETA2**count).sqrt()
        rate = self.lr * root / (1 - _BETA1**count)
        self.first.lerp_(grad, 1 - _BETA1)
        self.second.mul_(_BETA2).addcmul_(grad, grad, value=1 - _BETA2)
        scale = self.second.sqrt().add_(_EPSILON * root)
        params.addcdiv_(self.first * rate[:, None], scale, value=-1)

    def penalty(self, params: Tensor) -> Tensor:
        """Half the weight decay times the sum of squares, ``[B]``: its gradient is the decay."""
        return self._of_decayed(params**2).sum(1) * self.weight_decay / 2

    def _of_decayed(self, values: Tensor) -> Tensor:
        return values if self.decayed is None else values * self.decayed


class Schedule(PerMember):
    """Changes the members' learning rates, in place, after each epoch; ``rules`` say how."""

    def __init__(self, rules: Rules, lr: Tensor) -> None:
        self.rules = rules
        self.best_loss = torch.full_like(lr, torch.inf)
        self.waited = torch.zeros_like(lr)

    def step(self, lr: Tensor, epoch: Tensor, loss: Tensor | None) -> None:
        """Change the rates ``[B]`` after an epoch (from 0) with these validation losses."""
        rules = self.rules
        if rules.schedule == "steps":
            due = (epoch + 1) % rules.schedule_epochs == 0
            lr.sub_(due * rules.schedule_amount).clamp_(min=0)
        elif rules.schedule == "plateau":
            assert loss is not None
            # As in torch's ReduceLROnPlateau, a fall by less than 1e-4 of the loss does not count.
            better = loss < self.best_loss * (1 - 1e-4)
            self.best_loss.copy_(torch.where(better, loss, self.best_loss))
            self.waited.add_(1).mul_(~better)
            due = self.waited > rules.schedule_epochs
            lr.mul_(torch.where(due, rules.schedule_amount, 1.0))
            self.waited.mul_(~due)


class Watch(PerMember):
    """Which members continue, and which epoch of each counts.

    With a ``patience`` of None, or of as many as the epochs, none of them stops.

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
        if patience is not None and patience >= epochs:
            patience = None  # a member cannot wait that long
        self.rules, self.patience = rules, patience
        self.running = torch.ones(members, dtype=torch.bool, device=device)
        self.ran = torch.zeros(members, dtype=torch.int64, device=device)
        self.kept_epoch = torch.zeros_like(self.ran)
        self.kept_scores = torch.full((members, 3), -torch.inf, device=device)
        self.best_score = torch.full((members,), -torch.inf, device=device)
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


class CrossFit(PerMember):
    """Keeps outputs for validation nodes, of epochs that other validation nodes have chosen.

    The epoch that counts is the best of hundreds on the validation nodes, so its score there is too
    high, the more so the fewer they are. The validation nodes are therefore dealt to five groups,
    with the same shares of every class, and each group gets the outputs of the epoch that is best
    on the other four: their score is that of a network whose epoch was chosen without them.

    Args:
        task: the data.
        split: ``[B]``, the split of each member.
    """

    def __init__(self, task: Task, split: Tensor) -> None:
        self._task, val = task, task.masks[:, _VAL] > 0
        groups = torch.stack([_deal(task.y, mask) for mask in val])
        numbers = torch.arange(_GROUPS, device=val.device)[:, None]
        others = val[:, None] & (groups[:, None] != numbers)
        new = task.masks.new_zeros  # of the same type, and on the same device
        self.val, self.groups, self.others = val[split], groups[split], others[split].to(new(0))
        self.best = new(len(split), _GROUPS) - torch.inf
        self.outputs = new(*self.val.shape, task.objective.outputs(task.y))

    def look(self, outputs: Tensor, running: Tensor) -> None:
        """Look at an epoch: outputs ``[B, N, C]``, and which members are ``running``, ``[B]``."""
        scores = self._task.objective.scores(outputs, self._task.y, self.others)
        better = running[:, None] & (scores > self.best)
        unknown = self.best == -torch.inf  # without other nodes there is no score
        self.best.copy_(torch.where(better, scores, self.best))
        chosen = (better | (running[:, None] & unknown)).gather(1, self.groups)
        self.outputs.copy_(torch.where(chosen[:, :, None], outputs, self.outputs))

    def of(self, member: int) -> Tensor:
        """The outputs for a member's validation nodes, in the order of the nodes."""
        return self.outputs[member, self.val[member]].cpu()


def _deal(y: Tensor, mask: Tensor) -> Tensor:
    """The group of each node of a mask: in turns, in the order of their targets."""
    rows = mask.nonzero().flatten()
    groups = torch.zeros_like(mask, dtype=torch.int64)
    in_order = rows[y[rows].argsort(stable=True)]
    return groups.index_copy_(0, in_order, torch.arange(len(rows), device=y.device) % _GROUPS)
