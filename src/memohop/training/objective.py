"""The objective of training: loss, score, targets and number of outputs."""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from memohop.errors import UsageError
from memohop.pyg import Data
from memohop.training.metrics import METRICS, Metric, of_any_classes

_PARTS = ("training", "validation", "test")


class UndefinedScoreWarning(UserWarning):
    """The test nodes of some split are all of one class, so their ranking has no score."""


@dataclass(frozen=True)
class Classification:
    """Classification: one logit for each class, trained by the cross-entropy.

    The trainer uses only the attribute and the methods below: another objective is another class
    with the same interface.

    Attributes:
        metric: the score.
    """

    metric: Metric

    def outputs(self, y: Tensor) -> int:
        """The number of outputs of a network for each node: the number of classes."""
        return int(y.max()) + 1

    def targets(self, y: Tensor) -> Tensor:
        """Class numbers that the loss can look up; -1, no label, is in no mask and becomes 0."""
        return y.clamp(min=0)

    def weights(self, labelled: Tensor, y: Tensor, class_weight: str) -> Tensor:
        """Weights of labelled nodes in the loss, ``[B, N]``; see :attr:`Rules.class_weight`."""
        return balanced(labelled, y) if class_weight == "balanced" else labelled

    def loss(self, logits: Tensor, y: Tensor, weights: Tensor) -> Tensor:
        r"""The weighted mean over nodes of the cross-entropy.

        .. math::
            -\frac{\sum_i w_i \log \operatorname{softmax}(\mathbf{z}_i)_{y_i}}{\sum_i w_i}

        Args:
            logits: ``[N, C]`` of one network, or ``[B, N, C]``.
            y: ``[N]``.
            weights: ``[N]``, or ``[B, N]``.

        Returns:
            A scalar, or ``[B]``.
        """
        # Classes first: a softmax over short rows is slow, over long columns fast.
        classes_first = logits.transpose(-1, -2).contiguous()
        index = y.expand(*logits.shape[:-2], 1, -1)
        per_node = F.log_softmax(classes_first, dim=-2).gather(-2, index).squeeze(-2)
        return -(per_node * weights).sum(-1) / weights.sum(-1)

    def scores(self, logits: Tensor, y: Tensor, masks: Tensor) -> Tensor:
        """The scores ``[B, parts]``, NaN for members whose logits are not all finite."""
        found = self.metric.score(logits, y, masks)
        return torch.where(finite_members(logits)[:, None], found, torch.nan)

    def check(self, y: Tensor, masks: Tensor, splits: Iterable[int]) -> None:
        """Refuse splits on which the metric cannot be computed.

        A ranking needs training and validation nodes of both classes. If only the test nodes lack
        a class, the test score will be NaN, and an :class:`UndefinedScoreWarning` is given.

        Args:
            y: ``[N]``.
            masks: ``[splits, 3, N]``: train, validation, test.
            splits: the splits in use.
        """
        if not self.metric.is_ranking:
            return
        metric, classes = self.metric.id, self.outputs(y)
        if classes != 2:
            raise UsageError(
                f"data.metric is {metric}, which is a score of two classes, but data.y has "
                f"{classes}; set data.metric to {of_any_classes()}"
            )
        used = sorted(set(splits))
        there = torch.stack([(masks[used] * (y == label)).any(-1) for label in range(2)], dim=-1)
        for index, part in enumerate(_PARTS):
            lacking = (~there[:, index]).nonzero().tolist()
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
                f"{fact}, so {metric} cannot be computed: the test score is NaN in "
                f"{len(lacking)} of the {len(used)} split(s)",
                UndefinedScoreWarning,
                stacklevel=3,
            )


def objective_of(data: Data) -> Classification:
    """The objective on this data, scored by ``data.metric``; accuracy by default."""
    metric = data.metric if "metric" in data else "accuracy"
    if metric not in METRICS:
        raise UsageError(f"data.metric must be one of {', '.join(METRICS)}, not {metric!r}")
    return Classification(METRICS[metric])


def balanced(labelled: Tensor, y: Tensor) -> Tensor:
    """Weights of labelled nodes ``[B, N]`` that give every class the same total."""
    members = F.one_hot(y).to(labelled.dtype)
    counts = labelled @ members
    present = (counts > 0).sum(1, keepdim=True)
    per_class = labelled.sum(1, keepdim=True) / (counts * present).clamp(min=1)
    return labelled * (per_class @ members.t())


def finite_members(logits: Tensor) -> Tensor:
    """Whether all logits ``[B, N, C]`` of a member are finite, ``[B]``."""
    return logits.abs().amax((1, 2)).isfinite()  # amax is NaN if any of them is
