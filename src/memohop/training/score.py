"""Scores of a whole population at once."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor


def accuracy(logits: Tensor, y: Tensor, masks: Tensor) -> Tensor:
    """Share of nodes whose largest logit is that of their class.

    Args:
        logits: ``[B, N, C]``.
        y: ``[N]``.
        masks: ``[B, parts, N]``, 1 for the nodes of a part and 0 elsewhere.
    """
    correct = (logits.argmax(-1) == y).to(logits.dtype)
    return torch.einsum("bn,bpn->bp", correct, masks) / masks.sum(-1)


def roc_auc(logits: Tensor, y: Tensor, masks: Tensor) -> Tensor:
    """Probability that a node of class 1 is ranked above one of class 0, a tie counting half.

    Arguments as for :func:`accuracy`, with two classes.
    """
    margin = (logits[..., 1] - logits[..., 0]).nan_to_num()[:, None].expand_as(masks).contiguous()
    positive, negative = masks * (y == 1), masks * (y == 0)
    ranked = torch.where(negative > 0, margin, torch.inf).sort(-1).values
    below = torch.searchsorted(ranked, margin) + torch.searchsorted(ranked, margin, right=True)
    wins = (below.to(logits.dtype) / 2 * positive).sum(-1)
    return wins / (positive.sum(-1) * negative.sum(-1))


def balanced_accuracy(logits: Tensor, y: Tensor, masks: Tensor) -> Tensor:
    """Mean over the classes of a part of the share of their nodes that are right.

    Arguments as for :func:`accuracy`.
    """
    correct = (logits.argmax(-1) == y).to(logits.dtype)
    of_class = F.one_hot(y, logits.shape[-1]).to(logits.dtype)
    counts = masks @ of_class
    right = (masks * correct[:, None]) @ of_class
    present = (counts > 0).sum(-1)
    return (right / counts.clamp(min=1)).sum(-1) / present


def average_precision(logits: Tensor, y: Tensor, masks: Tensor) -> Tensor:
    """Mean precision at the nodes of class 1, going down the ranking; ties stand together.

    Arguments as for :func:`accuracy`, with two classes.
    """
    margin = (logits[..., 1] - logits[..., 0]).nan_to_num()[:, None].expand_as(masks).contiguous()
    positive = masks * (y == 1)

    def at_least(part: Tensor) -> Tensor:
        """How many nodes of the part are ranked no lower, for every node."""
        ranked = torch.where(part > 0, margin, -torch.inf).sort(-1).values
        return margin.shape[-1] - torch.searchsorted(ranked, margin)

    precision = at_least(positive) / at_least(masks).clamp(min=1)
    return (precision * positive).sum(-1) / positive.sum(-1)


SCORES = {
    "accuracy": accuracy,
    "balanced_accuracy": balanced_accuracy,
    "roc_auc": roc_auc,
    "average_precision": average_precision,
}
