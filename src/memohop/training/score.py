"""Scores of a whole population at once; one that cannot be computed is NaN, never a number."""

from __future__ import annotations

import warnings
from collections.abc import Iterable

import torch
import torch.nn.functional as F
from torch import Tensor

from memohop.errors import UsageError

_PARTS = ("training", "validation", "test")


class UndefinedScoreWarning(UserWarning):
    """The test nodes of some split have one class, so that their ranking has no score."""


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

    Arguments as for :func:`accuracy`, with two classes. NaN for a part that lacks one of them.
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

    Arguments as for :func:`accuracy`, with two classes. NaN for a part that lacks one of them.
    """
    margin = (logits[..., 1] - logits[..., 0]).nan_to_num()[:, None].expand_as(masks).contiguous()
    positive, negative = masks * (y == 1), masks * (y == 0)

    def at_least(part: Tensor) -> Tensor:
        """How many nodes of the part are ranked no lower, for every node."""
        ranked = torch.where(part > 0, margin, -torch.inf).sort(-1).values
        return margin.shape[-1] - torch.searchsorted(ranked, margin)

    precision = at_least(positive) / at_least(masks).clamp(min=1)
    score = (precision * positive).sum(-1) / positive.sum(-1)
    return torch.where(negative.sum(-1) > 0, score, torch.nan)


SCORES = {
    "accuracy": accuracy,
    "balanced_accuracy": balanced_accuracy,
    "roc_auc": roc_auc,
    "average_precision": average_precision,
}
_RANKINGS = ("roc_auc", "average_precision")  # scores of two classes, both of which must be there


def finite_members(logits: Tensor) -> Tensor:
    """Whose logits ``[B, N, C]`` are all numbers, ``[B]``."""
    return logits.abs().amax((1, 2)).isfinite()  # the largest of numbers with a NaN is NaN


def scores_of(metric: str, logits: Tensor, y: Tensor, masks: Tensor) -> Tensor:
    """The scores ``[B, parts]``, NaN for members whose logits are not all finite."""
    found = SCORES[metric](logits, y, masks)
    return torch.where(finite_members(logits)[:, None], found, torch.nan)


def check_computable(
    metric: str, classes: int, y: Tensor, masks: Tensor, splits: Iterable[int]
) -> None:
    """Refuse a metric that cannot be computed on these splits.

    Without both classes a network can neither be trained nor its epoch be chosen by a ranking.
    Where the test nodes alone lack one, the test score will be NaN, of which a
    :class:`UndefinedScoreWarning` tells.

    Args:
        metric: one of :data:`SCORES`.
        classes: how many there are.
        y: ``[N]``.
        masks: ``[splits, 3, N]``: train, validation, test.
        splits: those that are used.
    """
    if metric not in _RANKINGS:
        return
    if classes != 2:
        raise UsageError(
            f"data.metric is {metric}, which is a score of two classes, but data.y has {classes}; "
            "set data.metric to accuracy or balanced_accuracy"
        )
    used = sorted(set(splits))
    there = torch.stack([(masks[used] * (y == label)).any(-1) for label in range(2)], dim=-1)
    for place, part in enumerate(_PARTS):
        lacking = (~there[:, place]).nonzero().tolist()
        if not lacking:
            continue
        first, label = used[lacking[0][0]], lacking[0][1]
        fact = f"split {first} has no {part} node of class {label}"
        if part != "test":
            raise UsageError(
                f"data.metric is {metric}, but {fact}; leave that split out, give it nodes of "
                "both classes, or set data.metric to accuracy"
            )
        warnings.warn(
            f"{fact}, so that {metric} cannot be computed: the test score is NaN in "
            f"{len(lacking)} of the {len(used)} split(s)",
            UndefinedScoreWarning,
            stacklevel=3,
        )
