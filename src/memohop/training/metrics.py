"""The metrics by which predictions are judged, each of them one object.

A new metric is a function of the outputs of a population and an entry of :data:`METRICS`. PyTorch
and scikit-learn are imported only when a score is computed: the command line needs the names of
the metrics and has to start fast.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from torch import Tensor

_FACTOR, _DIGITS = 100, 4  # for percent; single precision has no more digits


@dataclass(frozen=True)
class Interval:
    """A score or a difference of two, and an interval for the truth.

    ``level`` is the share of such intervals that hold it. If nothing is known of a difference, the
    ends are -1 and 1 for scores between 0 and 1, and infinite for others.
    """

    mean: float
    low: float
    high: float
    level: float

    @property
    def above_zero(self) -> bool:
        """Whether the whole interval is above 0."""
        return self.low > 0

    @property
    def below_zero(self) -> bool:
        """Whether the whole interval is below 0."""
        return self.high < 0

    @property
    def says_nothing(self) -> bool:
        """Whether the interval holds every possible difference."""
        return (self.low, self.high) in ((-1, 1), (-math.inf, math.inf))


@dataclass(frozen=True)
class Metric:
    """A score; higher is better, everywhere.

    Scores are shares up to 1, shown in percent. An error is scored by its negative, and shown
    without the minus, in the unit of the targets.

    Attributes:
        id: its name in arguments, files and JSON.
        words: its name in a sentence.
        score: from outputs ``[B, N, C]``, targets ``[N]`` and masks ``[B, parts, N]``, which are 1
            for the nodes of a part and 0 elsewhere, to scores ``[B, parts]``; NaN if undefined.
        in_sklearn: the name of the same score, or error, in ``sklearn.metrics``.
        is_ranking: whether it scores how well the positive one of two classes ranks above the
            other, and so needs nodes of both.
        is_mean: whether it is an unweighted mean over nodes.
        is_regression: whether it is for numbers to predict, and not for classes.
        is_error: whether it is an error in the unit of the targets.
        positive: the number of the positive class, 0 or 1.
        options: those of the function of ``sklearn.metrics``.
    """

    id: str
    words: str
    score: Callable[[Tensor, Tensor, Tensor], Tensor]
    in_sklearn: str
    is_ranking: bool = False
    is_mean: bool = False
    is_regression: bool = False
    is_error: bool = False
    positive: int = 1
    options: Mapping[str, Any] = field(default_factory=dict, hash=False)

    def weighted(self, truth: Any, predicted: Any, weight: Any) -> float:
        """The score of one prediction, by scikit-learn.

        Args:
            truth: names of classes, or for a ranking, whether each node is of the positive class;
                numbers for a regression.
            predicted: the same, or for a ranking, the probability of the positive class.
            weight: that of each node.
        """
        from sklearn import metrics

        function = getattr(metrics, self.in_sklearn)
        score = float(function(truth, predicted, sample_weight=weight, **self.options))
        return -score if self.is_error else score

    def of_class(self, positive: int) -> Metric:
        """The same metric with this class as the positive one; only rankings depend on it."""
        swapped = self.is_ranking and positive != self.positive
        score = partial(_with_classes_swapped, self.score) if swapped else self.score
        return replace(self, score=score, positive=positive)

    @property
    def needs_different(self) -> bool:
        """Whether it is undefined for nodes that all have the same target."""
        return self.is_ranking or (self.is_regression and not self.is_error)

    @property
    def unit(self) -> str:
        """The unit in which scores are shown."""
        return "the target's unit" if self.is_error else "percent"

    def in_unit(self, score: float) -> float | None:
        """The number for JSON; None for an undefined score."""
        return self.gap_in_unit(-score if self.is_error else score)

    def text(self, score: float) -> str:
        """The number for a table."""
        return self.gap_text(-score if self.is_error else score)

    def gap_in_unit(self, gap: float) -> float | None:
        """A difference or a standard deviation of scores for JSON; better stays positive."""
        if not math.isfinite(gap):
            return None
        return float(f"{gap:.6g}") if self.is_error else round(_FACTOR * gap, _DIGITS)

    def gap_text(self, gap: float) -> str:
        """A difference or a standard deviation of scores for a table."""
        if not math.isfinite(gap):
            return "-"
        if not self.is_error:
            return f"{_FACTOR * gap:.2f}"
        return f"{gap:.4g}" if abs(gap) < 1000 else f"{gap:.0f}"

    def signed_text(self, gap: float) -> str:
        """A difference of scores, with its sign."""
        text = self.gap_text(gap)
        return text if text.startswith("-") else f"+{text}"

    def ends_text(self, interval: Interval, *, signed: bool = True) -> str:
        """The ends of an interval of a difference, or of a score, which is without a sign."""
        if interval.says_nothing:
            return "too few to tell"
        low, high = (interval.low, interval.high)
        if signed:
            return f"{self.signed_text(low)} to {self.signed_text(high)}"
        ends = (high, low) if self.is_error else (low, high)
        return " to ".join(map(self.text, ends))


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


def _with_classes_swapped(
    score: Callable[[Tensor, Tensor, Tensor], Tensor], logits: Tensor, y: Tensor, masks: Tensor
) -> Tensor:
    return score(logits.flip(-1), 1 - y, masks)


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


def r2(outputs: Tensor, y: Tensor, masks: Tensor) -> Tensor:
    r"""The share of the variance of a part that is explained, at most 1.

    .. math::
        1 - \frac{\sum_i (z_i - y_i)^2}{\sum_i (y_i - \bar y)^2},

    with the mean :math:`\bar y` of the part. NaN for a part with one target value alone.
    """
    import torch

    inside = masks > 0
    mean = torch.where(inside, y, 0).sum(-1, keepdim=True) / masks.sum(-1, keepdim=True)
    total = torch.where(inside, y - mean, 0).square().sum(-1)
    lowest = torch.where(inside, y, torch.inf).amin(-1)
    varies = torch.where(inside, y, -torch.inf).amax(-1) > lowest
    score = 1 - _errors(outputs, y, masks).square().sum(-1) / total
    return torch.where(varies, score, torch.nan)


def absolute_error(outputs: Tensor, y: Tensor, masks: Tensor) -> Tensor:
    """Minus the mean distance of the outputs from the targets."""
    return -_errors(outputs, y, masks).abs().sum(-1) / masks.sum(-1)


def root_squared_error(outputs: Tensor, y: Tensor, masks: Tensor) -> Tensor:
    """Minus the root of the mean squared distance of the outputs from the targets."""
    return -(_errors(outputs, y, masks).square().sum(-1) / masks.sum(-1)).sqrt()


def _errors(outputs: Tensor, y: Tensor, masks: Tensor) -> Tensor:
    """Outputs minus targets, ``[B, parts, N]``; 0 for nodes outside a part, of any target."""
    import torch

    return torch.where(masks > 0, (outputs[..., 0] - y)[:, None], 0)


METRICS = {
    metric.id: metric
    for metric in (
        Metric("accuracy", "accuracy", accuracy, "accuracy_score", is_mean=True),
        Metric(
            "balanced_accuracy", "balanced accuracy", balanced_accuracy, "balanced_accuracy_score"
        ),
        Metric("roc_auc", "area under the ROC curve", roc_auc, "roc_auc_score", is_ranking=True),
        Metric(
            "average_precision",
            "average precision",
            average_precision,
            "average_precision_score",
            is_ranking=True,
        ),
        Metric("r2", "R2", r2, "r2_score", is_regression=True),
        Metric(
            "mae",
            "mean absolute error",
            absolute_error,
            "mean_absolute_error",
            is_mean=True,
            is_regression=True,
            is_error=True,
        ),
        Metric(
            "rmse",
            "root mean squared error",
            root_squared_error,
            "root_mean_squared_error",
            is_regression=True,
            is_error=True,
        ),
    )
}


def metrics_for(*, regression: bool) -> list[str]:
    """The ids of the metrics for numbers to predict, or of those for classes."""
    return [name for name, metric in METRICS.items() if metric.is_regression == regression]


def of_any_targets(metric: Metric) -> str:
    """The metrics for any targets of the same kind, for error messages."""
    names = metrics_for(regression=metric.is_regression)
    return " or ".join(name for name in names if not METRICS[name].needs_different)
