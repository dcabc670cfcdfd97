"""Outputs for validation nodes, of epochs that other validation nodes have chosen.

The epoch that counts is the best of hundreds on the validation nodes, so its score there is too
high, by a point or two for a few hundred nodes. The validation nodes are therefore dealt to two
halves, with the same shares of every class, and each half gets the outputs of the epoch that is
best on the other half: their score is that of a network whose epoch was chosen without them.
"""

from __future__ import annotations

import torch
from torch import Tensor

from memohop.training.task import Task

_VAL = 1


class CrossFit:
    """Keeps the outputs for validation nodes of every member, without reading from the host.

    Args:
        task: the data.
        split: ``[B]``, the split of each member.
    """

    def __init__(self, task: Task, split: Tensor) -> None:
        self._task = task
        dealt = [_deal(task.y, mask > 0) for mask in task.masks[:, _VAL]]
        size = max(len(rows) for rows, _ in dealt)
        self.rows = torch.stack([_padded(rows, size) for rows, _ in dealt])[split]
        self.second = torch.stack([_padded(second, size) for _, second in dealt])[split]
        self.counts = [len(dealt[one][0]) for one in split.tolist()]
        new = task.masks.new_zeros  # of the same type, and on the same device
        inside = torch.stack([~self.second, self.second], dim=1).to(task.masks.dtype)
        self.halves = new(len(split), 2, len(task.y))
        self.halves.scatter_(2, self.rows[:, None].expand_as(inside), inside)
        self.best = new(len(split), 2) - torch.inf
        self.outputs = new(*self.rows.shape, task.objective.outputs(task.y))

    def look(self, outputs: Tensor, running: Tensor) -> None:
        """Look at an epoch: outputs ``[B, N, C]``, and which members are ``running``, ``[B]``."""
        scores = self._task.objective.scores(outputs, self._task.y, self.halves)
        better = running[:, None] & (scores > self.best)
        unknown = self.best == -torch.inf  # a half without nodes, or of one class, has no score
        self.best.copy_(torch.where(better, scores, self.best))
        taken = (better | (running[:, None] & unknown)).flip(1)  # by the other half
        chosen = torch.where(self.second, taken[:, 1:], taken[:, :1])
        index = self.rows[:, :, None].expand_as(self.outputs)
        self.outputs.copy_(torch.where(chosen[:, :, None], outputs.gather(1, index), self.outputs))

    def of(self, member: int) -> Tensor:
        """The outputs for a member's validation nodes, in the order of the nodes."""
        return self.outputs[member, : self.counts[member]].cpu().clone()

    def select(self, index: Tensor) -> None:
        """Continue with these members alone."""
        self.counts = [self.counts[i] for i in index.tolist()]
        for name in ("rows", "second", "halves", "best", "outputs"):
            setattr(self, name, getattr(self, name)[index])


def _deal(y: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
    """The nodes of a mask, and which of them are in the second half: every other one by target."""
    rows = mask.nonzero().flatten()
    order = y[rows].argsort(stable=True)
    second = torch.zeros(len(rows), dtype=torch.bool, device=y.device)
    second[order[1::2]] = True
    return rows, second


def _padded(values: Tensor, size: int) -> Tensor:
    """With the last value repeated: the splits may differ by a node or two."""
    return torch.cat([values, values[-1:].expand(size - len(values))])
