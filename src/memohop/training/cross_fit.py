"""Outputs for validation nodes, of epochs that other validation nodes have chosen.

The epoch that counts is the best of hundreds on the validation nodes, so its score there is too
high, the more so the fewer they are. The validation nodes are therefore dealt to five groups, with
the same shares of every class, and each group gets the outputs of the epoch that is best on the
other four: their score is that of a network whose epoch was chosen without them.
"""

from __future__ import annotations

import torch
from torch import Tensor

from memohop.training.task import Task

_VAL = 1
_GROUPS = 5


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
        self.groups = torch.stack([_padded(groups, size) for _, groups in dealt])[split]
        self.counts = [len(dealt[one][0]) for one in split.tolist()]
        new = task.masks.new_zeros  # of the same type, and on the same device
        numbers = torch.arange(_GROUPS, device=self.rows.device)
        outside = (self.groups[:, None] != numbers[:, None]).to(task.masks.dtype)
        self.others = new(len(split), _GROUPS, len(task.y))
        self.others.scatter_(2, self.rows[:, None].expand_as(outside), outside)
        self.best = new(len(split), _GROUPS) - torch.inf
        self.outputs = new(*self.rows.shape, task.objective.outputs(task.y))

    def look(self, outputs: Tensor, running: Tensor) -> None:
        """Look at an epoch: outputs ``[B, N, C]``, and which members are ``running``, ``[B]``."""
        scores = self._task.objective.scores(outputs, self._task.y, self.others)
        better = running[:, None] & (scores > self.best)
        unknown = self.best == -torch.inf  # without other nodes there is no score
        self.best.copy_(torch.where(better, scores, self.best))
        chosen = (better | (running[:, None] & unknown)).gather(1, self.groups)
        index = self.rows[:, :, None].expand_as(self.outputs)
        self.outputs.copy_(torch.where(chosen[:, :, None], outputs.gather(1, index), self.outputs))

    def of(self, member: int) -> Tensor:
        """The outputs for a member's validation nodes, in the order of the nodes."""
        return self.outputs[member, : self.counts[member]].cpu().clone()

    def select(self, index: Tensor) -> None:
        """Continue with these members alone."""
        self.counts = [self.counts[i] for i in index.tolist()]
        for name in ("rows", "groups", "others", "best", "outputs"):
            setattr(self, name, getattr(self, name)[index])


def _deal(y: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
    """The nodes of a mask, and the group of each: in turns, in the order of their targets."""
    rows = mask.nonzero().flatten()
    groups = torch.empty_like(rows)
    groups[y[rows].argsort(stable=True)] = torch.arange(len(rows), device=y.device) % _GROUPS
    return rows, groups


def _padded(values: Tensor, size: int) -> Tensor:
    """With the last value repeated: the splits may differ by a node or two."""
    return torch.cat([values, values[-1:].expand(size - len(values))])
