"""The metrics by which predictions are judged, each of them one object.

A new metric is a function of the outputs of a population and an entry of :data:`METRICS`. PyTorch
and scikit-learn are imported only when a score is computed: the command line needs the names of
the metrics and has to start fast.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from torch import Tensor

_FACTOR, _DIGITS = 100, 4  # for percent; single precision has no more digits


@dataclass(frozen=True)
class Metric:
    """A score between 0 and 1; higher is better.

    Attributes:
        id: its name in arguments, files and JSON.
        words: its name in a sentence.
        score: from logits ``[B, N, C]``, labels ``[N]`` and masks ``[B, parts, N]``, which are 1
            for the nodes of a part and 0 elsewhere, to scores ``[B, parts]``; NaN if undefined.
        weighted: the same score of one prediction, from true labels, predictions and weights of
            the nodes: names of classes, or for a ranking, whether each node is of the second class
            and the predicted probability of that.
        is_ranking: whether it scores how well the second of two classes ranks above the first,
            and so needs nodes of both.
        is_mean: whether it is an unweighted mean over nodes.
        unit: the unit in which scores are shown.
    """

    id: str
    words: str
    score: Callable[[Tensor, Tensor, Tensor], Tensor]
    weighted: Callable[[Any, Any, Any], float]
    is_ranking: bool = False
    is_mean: bool = False
    unit: str = "percent"

    def in_unit(self, score: float) -> float | None:
        """The number for JSON; None for an undefined score."""
        return None if math.isnan(score) else round(_FACTOR * score, _DIGITS)

    def text(self, score: float) -> str:
        """The number for a table."""
        return "-" if math.isnan(score) else f"{_FACTOR * score:.2f}"


def in_sklearn(name: str, **options: Any) -> Callable[[Any, Any, Any], float]:
    """The function of that name in ``sklearn.metrics``, as :attr:`Metric.weighted`."""

    def weighted(truth: Any, predicted: Any, weight: Any) -> float:
        from sklearn import metrics

        return float(getattr(metrics, name)(truth, predicted, sample_weight=weight, **options))

    return weighted


def accuracy(logits: Tensor, y: Tensor, masks: Tensor) -> Tensor:
    """Share of nodes for which the logit of their class is the largest."""
    import torch

    correct = (logits.argmax(-1) == y).to(logits.dtype)
    return torch.einsum("bn,bpn->bp", correct, masks) / masks.sum(-1)


def balanced_accuracy(logits: Tensor, y: Tensor, masks: Tensor) -> Tensor:
    """Share of correct nodes in each class, mean over the classes that the part has."""
    import torch.nn.functional as F

    correct = (logits.argmax(-1) == y).to(logits.dtype)
    of_class = F.one_hot(y, logits.shape[-1]).to(logits.dtype)
    counts = masks @ of_class
    right = (masks * correct[:, None]) @ of_class
    present = (counts > 0).sum(-1)
    return (right / counts.clamp(min=1)).sum(-1) / present


def roc_auc(logits: Tensor, y: Tensor, masks: Tensor) -> Tensor:
    """Probability that a node of class 1 is ranked above one of class 0, a tie counting half.

    NaN for a part that lacks one of the classes.
    """
    import torch

    margin, positive, negative = _ranking(logits, y, masks)
    ranked = torch.where(negative > 0, margin, torch.inf).sort(-1).values
    below = torch.searchsorted(ranked, margin) + torch.searchsorted(ranked, margin, right=True)
    wins = (below.to(logits.dtype) / 2 * positive).sum(-1)
    return wins / (positive.sum(-1) * negative.sum(-1))


def average_precision(logits: Tensor, y: Tensor, masks: Tensor) -> Tensor:
    """Mean precision at the nodes of class 1, from the top of the ranking; ties share a rank.

    NaN for a part that lacks one of the classes.
    """
    import torch

    margin, positive, negative = _ranking(logits, y, masks)

    def at_least(part: Tensor) -> Tensor:
        """For every node, the number of nodes of the part that are ranked no lower."""
        ranked = torch.where(part > 0, margin, -torch.inf).sort(-1).values
        return margin.shape[-1] - torch.searchsorted(ranked, margin)

    precision = at_least(positive) / at_least(masks).clamp(min=1)
    score = (precision * positive).sum(-1) / positive.sum(-1)
    return torch.where(negative.sum(-1) > 0, score, torch.nan)


def _ranking(logits: Tensor, y: Tensor, masks: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """The margins that rank nodes, and masks of class 1 and class 0, all ``[B, parts, N]``."""
    margin = (logits[..., 1] - logits[..., 0]).nan_to_num()[:, None].expand_as(masks).contiguous()
    return margin, masks * (y == 1), masks * (y == 0)


METRICS = {
    metric.id: metric
    for metric in (
        Metric("accuracy", "accuracy", accuracy, in_sklearn("accuracy_score"), is_mean=True),
        Metric(
            "balanced_accuracy",
            "balanced accuracy",
            balanced_accuracy,
            in_sklearn("balanced_accuracy_score"),
        ),
        Metric(
            "roc_auc",
            "area under the ROC curve",
            roc_auc,
            in_sklearn("roc_auc_score"),
            is_ranking=True,
        ),
        Metric(
            "average_precision",
            "average precision",
            average_precision,
            in_sklearn("average_precision_score"),
            is_ranking=True,
        ),
    )
}


def of_any_classes() -> str:
    """The metrics for any number of classes, for error messages."""
    return " or ".join(name for name, metric in METRICS.items() if not metric.is_ranking)
