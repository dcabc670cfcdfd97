"""Scores of a whole population at once."""

from __future__ import annotations

import torch
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


SCORES = {"accuracy": accuracy, "roc_auc": roc_auc}
