"""The objective of training: loss, score, targets and number of outputs."""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import torch
import torch.nn.functional as F
from torch import Tensor

from memohop.errors import MemohopWarning, UsageError
from memohop.training.metrics import METRICS, Metric, metrics_for, of_any_targets

if TYPE_CHECKING:
    from memohop.pyg import Data

_PARTS = ("training", "validation", "test")
_FAR, _WIDE = 3, 10  # a mean and a spread of targets beyond which networks learn slowly


class UndefinedScoreWarning(MemohopWarning):
    """The test nodes of some split are all of one class or of one value, and have no score."""


class TargetScaleWarning(MemohopWarning):
    """The numbers to predict are far from 0, or differ by far more or less than 1."""


@dataclass(frozen=True)
class _Scored(ABC):
    """The part that objectives share.

    Attributes:
        metric: the score.
    """

    metric: Metric

    @abstractmethod
    def _flaws(self, part: str, split: int, targets: Tensor) -> Iterator[tuple[str, str]]:
        """What is wrong with the targets of a part of a split, and what to say in a refusal."""

    def check(self, y: Tensor, masks: Tensor, splits: Iterable[int]) -> None:
        """Refuse splits that cannot be learnt from or scored.

        If this is so of the test nodes alone, their score will be NaN, and an
        :class:`UndefinedScoreWarning` is given.

        Args:
            y: ``[N]``.
            masks: ``[splits, 3, N]``: train, validation, test.
            splits: the splits in use.
        """
        used, undefined = sorted(set(splits)), []
        for index, part in enumerate(_PARTS):
            for split in used if masks[used, index].any() else ():  # there may be no test nodes
                for flaw, refusal in self._flaws(part, split, y[masks[split, index] > 0]):
                    if part != "test":
                        raise UsageError(refusal)
                    undefined.append(flaw)
        if undefined:
            name = self.metric.id if self.metric.is_ranking else self.metric.words
            warnings.warn(
                f"{undefined[0]}, so {name} cannot be computed: the test score is NaN in "
                f"{len(undefined)} of the {len(used)} split(s)",
                UndefinedScoreWarning,
                stacklevel=4,
            )

    def scores(self, outputs: Tensor, y: Tensor, masks: Tensor) -> Tensor:
        """The scores ``[B, parts]``, NaN for members whose outputs are not all finite."""
        scores = self.metric.score(outputs, y, masks)
        are_finite = outputs.abs().amax((1, 2)).isfinite()  # amax is NaN if any of them is
        return torch.where(are_finite[:, None], scores, torch.nan)


class Classification(_Scored):
    """Classification: one logit for each class, trained by the cross-entropy.

    The trainer uses only the attribute ``metric`` and the methods below: another objective is
    another class with the same interface, such as :class:`Regression`.
    """

    is_regression: ClassVar[bool] = False

    def outputs(self, y: Tensor) -> int:
        """The number of outputs of a network for each node: the number of classes."""
        return int(y.max()) + 1

    def targets(self, y: Tensor) -> Tensor:
        """Class numbers that the loss can look up; -1, no label, is in no mask and becomes 0."""
        return y.clamp(min=0)

    def weights(self, labelled: Tensor, y: Tensor, class_weight: str) -> Tensor:
        """Weights of labelled nodes in the loss, ``[B, N]``; see :attr:`Rules.class_weight`."""
        return balanced(labelled, y) if class_weight == "balanced" else labelled

    def known(self, y: Tensor, labelled: Tensor) -> Tensor:
        """Labels as networks are given them, ``[B, N, C]``: 1 for the class of a labelled node."""
        return F.one_hot(y, self.outputs(y)).to(labelled.dtype) * labelled[..., None]

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

    def check(self, y: Tensor, masks: Tensor, splits: Iterable[int]) -> None:
        """Refuse splits on which the metric cannot be computed: a ranking needs both classes."""
        metric, classes = self.metric, self.outputs(y)
        if metric.is_ranking and classes != 2:
            raise UsageError(
                f"data.metric is {metric.id}, which is a score of two classes, but data.y has "
                f"{classes}; set data.metric to {of_any_targets(metric)}"
            )
        super().check(y, masks, splits)

    def _flaws(self, part: str, split: int, targets: Tensor) -> Iterator[tuple[str, str]]:
        for label in range(2) if self.metric.is_ranking else ():
            if not (targets == label).any():
                flaw = f"split {split} has no {part} node of class {label}"
                remedy = "give it nodes of both classes, or set data.metric to accuracy"
                yield (
                    flaw,
                    f"data.metric is {self.metric.id}, but {flaw}; leave that split out, {remedy}",
                )


class Regression(_Scored):
    """Regression: one output, the predicted number, trained by the squared error.

    Networks start with outputs near 0 and move them in small steps, so targets are best
    standardised, see :func:`memohop.training.standardised`.
    """

    is_regression: ClassVar[bool] = True

    def outputs(self, y: Tensor) -> int:
        """The number of outputs of a network for each node."""
        return 1

    def targets(self, y: Tensor) -> Tensor:
        """The numbers in PyTorch's default type; NaN, no label, is in no mask and becomes 0."""
        y = y.to(torch.get_default_dtype())
        return torch.where(y.isfinite(), y, 0)

    def weights(self, labelled: Tensor, y: Tensor, class_weight: str) -> Tensor:
        """Weights of labelled nodes in the loss, ``[B, N]``: every node counts alike."""
        if class_weight != "none":
            raise UsageError(
                f"class_weight={class_weight!r} is for classes, but data.y holds numbers; "
                "give class_weight='none'"
            )
        return labelled

    def known(self, y: Tensor, labelled: Tensor) -> Tensor:
        """Targets as networks are given them, ``[B, N, 1]``; unknown ones count as the mean, 0."""
        return (y * labelled)[..., None]

    def loss(self, outputs: Tensor, y: Tensor, weights: Tensor) -> Tensor:
        r"""The weighted mean over nodes of the squared error.

        .. math::
            \frac{\sum_i w_i (z_i - y_i)^2}{\sum_i w_i}

        Args:
            outputs: ``[N, 1]`` of one network, or ``[B, N, 1]``.
            y: ``[N]``.
            weights: ``[N]``, or ``[B, N]``.

        Returns:
            A scalar, or ``[B]``.
        """
        if outputs.shape[-1] != 1:
            raise UsageError(
                f"the module puts out a tensor of shape {list(outputs.shape)}; to predict numbers "
                "it must be [nodes, 1]"
            )
        return ((outputs[..., 0] - y).square() * weights).sum(-1) / weights.sum(-1)

    def check(self, y: Tensor, masks: Tensor, splits: Iterable[int]) -> None:
        """Refuse splits in which nothing can be learnt, or on which R2 is undefined.

        If training targets are of another scale than networks learn well, there is a
        :class:`TargetScaleWarning`.
        """
        super().check(y, masks, splits)
        for split in sorted(set(splits)):
            known = y[masks[split, 0] > 0].double()
            mean, spread = float(known.mean()), float(known.std(correction=0))
            if abs(mean) > _FAR or not 1 / _WIDE <= spread <= _WIDE:
                warnings.warn(
                    f"the training targets of split {split} have mean {mean:.3g} and standard "
                    f"deviation {spread:.3g}, and networks learn best with 0 and 1; standardise "
                    "them by memohop.training.standardised(data)",
                    TargetScaleWarning,
                    stacklevel=3,
                )
                break

    def _flaws(self, part: str, split: int, targets: Tensor) -> Iterator[tuple[str, str]]:
        is_undefined = part == "training" or self.metric.needs_different
        if is_undefined and not targets.amax() > targets.amin():
            flaw = f"the {part} nodes of split {split} all have one target value"
            remedy = "" if part == "training" else ", or set data.metric to mae or rmse"
            yield flaw, f"{flaw}; leave that split out or give it other nodes{remedy}"


Objective = Classification | Regression


def objective_of(data: Data) -> Objective:
    """The objective on this data: classes if ``data.y`` holds whole numbers, else regression.

    It is scored by ``data.metric``, with ``data.positive`` as the positive class of a ranking; by
    default accuracy, or R2, and class 1.
    """
    regression = data.y.is_floating_point()
    fitting = metrics_for(regression=regression)
    metric = data.metric if "metric" in data else fitting[0]
    if metric not in METRICS:
        raise UsageError(f"data.metric must be one of {', '.join(METRICS)}, not {metric!r}")
    if metric not in fitting:
        kinds = ("classes", "numbers")
        raise UsageError(
            f"data.metric is {metric}, a score for {kinds[not regression]}, but data.y has type "
            f"{data.y.dtype} and so holds {kinds[regression]}; set data.metric to one of "
            f"{', '.join(fitting)}, or give y of the other type"
        )
    positive = data.positive if "positive" in data else 1
    return (Regression if regression else Classification)(METRICS[metric].of_class(positive))


def balanced(labelled: Tensor, y: Tensor) -> Tensor:
    """Weights of labelled nodes ``[B, N]`` that give every class the same total."""
    members = F.one_hot(y).to(labelled.dtype)
    counts = labelled @ members
    present = (counts > 0).sum(1, keepdim=True)
    per_class = labelled.sum(1, keepdim=True) / (counts * present).clamp(min=1)
    return labelled * (per_class @ members.t())
