"""What networks are trained for: the loss, the score, the kind of target, and the outputs."""

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
    """The test nodes of some split have one class, so that their ranking has no score."""


@dataclass(frozen=True)
class Classification:
    """To tell classes apart: one logit for each class, trained by the cross-entropy.

    The trainer knows nothing else of it than the attribute and the methods below: another objective
    is another class that has them.

    Attributes:
        metric: the score.
    """

    metric: Metric

    def outputs(self, y: Tensor) -> int:
        """How many numbers a network puts out for a node: as many as there are classes."""
        return int(y.max()) + 1

    def targets(self, y: Tensor) -> Tensor:
        """Class numbers that the loss can look up; -1 stands for no label, in no mask."""
        return y.clamp(min=0)

    def weights(self, labelled: Tensor, y: Tensor, class_weight: str) -> Tensor:
        """Of the labelled nodes in the loss, ``[B, N]``; see :attr:`Rules.class_weight`."""
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
        # Classes first: the softmax of a few numbers in a row is slow, of long columns fast.
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

        Without both classes a network can neither be trained nor its epoch be chosen by a ranking.
        Where the test nodes alone lack one, the test score will be NaN, of which a
        :class:`UndefinedScoreWarning` tells.

        Args:
            y: ``[N]``.
            masks: ``[splits, 3, N]``: train, validation, test.
            splits: those that are used.
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


Objective = Classification


def objective_of(data: Data) -> Classification:
    """What networks on this data are for: ``data.metric`` says it, accuracy by default."""
    metric = data.metric if "metric" in data else "accuracy"
    if metric not in METRICS:
        raise UsageError(f"data.metric must be one of {', '.join(METRICS)}, not {metric!r}")
    return Classification(METRICS[metric])


def balanced(labelled: Tensor, y: Tensor) -> Tensor:
    """Weights of labelled nodes ``[B, N]`` under which every class counts alike."""
    members = F.one_hot(y).to(labelled.dtype)
    counts = labelled @ members
    present = (counts > 0).sum(1, keepdim=True)
    per_class = labelled.sum(1, keepdim=True) / (counts * present).clamp(min=1)
    return labelled * (per_class @ members.t())


def finite_members(logits: Tensor) -> Tensor:
    """Whose logits ``[B, N, C]`` are all numbers, ``[B]``."""
    return logits.abs().amax((1, 2)).isfinite()  # the largest of numbers with a NaN is NaN
