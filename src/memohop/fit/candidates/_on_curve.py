"""Models of any kind that learn skewed numbers on a curve, and say them in their own unit."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import cast

import numpy as np

from memohop.errors import UsageError
from memohop.fit._candidate import Family, Fit, Fits, FittedModel, Look, Setting
from memohop.fit._curve import Curve, CurveKind
from memohop.fit._graph import Inputs
from memohop.fit._neighbourhood import EVERY, Rows
from memohop.fit._problem import Outputs, Problem
from memohop.fit._saved import Saved, Sizes

_ARRAYS = ("values", "heights", "errors")
_STEP = 1e-3  # of heights, relative to their range, over which the slope of the curve is taken


@dataclass(frozen=True, eq=False)
class OnCurve(FittedModel):
    """A fitted model of the heights of numbers on a curve.

    Attributes:
        model: It says heights, and its labels of neighbours are heights.
        curve: From them to the numbers.
    """

    model: FittedModel
    curve: Curve

    @property
    def has_rows(self) -> bool:
        """Whether the model has weights or features for each node of the graph of ``fit``."""
        return self.model.has_rows

    @property
    def needs_whole_graph(self) -> bool:
        """Whether the model sees more than a block of the graph."""
        return self.model.needs_whole_graph

    @property
    def takes_labels(self) -> bool:
        """Whether the model uses known labels."""
        return self.model.takes_labels

    @property
    def takes_attributes(self) -> bool:
        """Whether it uses attributes of arcs."""
        return self.model.takes_attributes

    def outputs(self, inputs: Inputs, rows: Rows = EVERY) -> Outputs:
        """The numbers."""
        heights = self.model.outputs(with_heights(inputs, self.curve), rows)
        return self.curve.numbers(heights).astype(np.float32)

    def slopes(self, inputs: Inputs, rows: Rows = EVERY) -> Outputs:
        """By how much the number of each node changes with the height, ``[rows, 1]``."""
        heights = self.model.outputs(with_heights(inputs, self.curve), rows).astype(np.float64)
        step = _STEP * (self.curve.heights[-1] - self.curve.heights[0])
        change = self.curve.numbers(heights + step) - self.curve.numbers(heights - step)
        return (change / (2 * step)).astype(np.float32)

    def saved(self) -> Saved:
        """The model and the curve, whose names begin with ``curve``."""
        saved, curve = self.model.saved(), self.curve
        about = {"kind": curve.kind, "shift": curve.shift, "mean": curve.mean}
        arrays = {f"curve.{name}": getattr(curve, name) for name in _ARRAYS}
        return Saved({**saved.about, "curve": about}, {**saved.arrays, **arrays})

    @classmethod
    def from_saved(
        cls, saved: Saved, target: str, sizes: Sizes, read: Callable[[Saved], FittedModel]
    ) -> OnCurve:
        """The model that was saved, which ``read`` reads, and its curve for such a ``target``."""
        if sizes.classes:
            raise UsageError(f"a component of a classifier has target={target!r}")
        own = Saved(saved.value("curve", dict), saved.arrays)
        kind, shift, mean = (
            own.value(*each) for each in (("kind", str), ("shift", float), ("mean", float))
        )
        values = own.array("curve.values", (None,), np.float64)
        heights = own.array("curve.heights", values.shape, np.float64)
        errors = own.array("curve.errors", (None,), np.float64)
        curve = Curve(kind, shift, values, heights, mean, errors)
        curve.check()
        if kind != target:
            raise UsageError(f"a component has {target=} and a curve of kind {kind!r}")
        inner = {name: array for name, array in saved.arrays.items() if name[:6] != "curve."}
        return cls(read(Saved(saved.about, inner)), curve)


def with_heights(inputs: Inputs, curve: Curve) -> Inputs:
    """The same graph with the heights of its numbers on a curve as targets."""
    changed, near = copy.copy(inputs), inputs.neighbourhood
    overall = None if inputs.overall is None else np.array([curve.mean])
    vars(changed).update(y=curve.heights_of(inputs.y), overall=overall, neighbourhood=near)
    if (told := inputs.value_labels) is not None:
        heights = told._replace(labels=curve.heights_of(told.labels))
        vars(changed).update(value_labels=heights)
    return changed


def _learned_on(problem: Problem, kind: CurveKind) -> tuple[Problem, Curve]:
    """The same problem with heights as targets, made once, and the curve."""
    if kind not in problem.on_curves:
        curve = Curve.fit(kind, problem.learned)
        for name in ("labelled", "_views"):  # which both have in common
            getattr(problem, name)
        of_heights = cast(Problem, with_heights(problem, curve))
        for name in ("_shares", "on_curves", "curves"):
            vars(of_heights).pop(name, None)
        problem.on_curves[kind] = of_heights, curve
    return problem.on_curves[kind]


def plain_model(model: FittedModel) -> FittedModel:
    """The model of heights, if it is one on a curve; others as they are."""
    return model.model if isinstance(model, OnCurve) else model


def off_curve(model: FittedModel, inputs: Inputs) -> tuple[FittedModel, Inputs]:
    """The same, and a graph as it takes it."""
    if isinstance(model, OnCurve):
        inputs = with_heights(inputs, model.curve)
    return plain_model(model), inputs


def fit_on_curve(
    family: Family,
    problem: Problem,
    settings: Sequence[Setting],
    splits: Sequence[int],
    *,
    look: Look = lambda: None,
) -> Fits:
    """Fit settings with the same options, whose ``target`` says on which curve, if on any."""
    plain, target = [setting.without_target for setting in settings], settings[0].target
    if target is None:
        return family.fit(problem, plain, splits, look=look)
    of_heights, curve = _learned_on(problem, target)
    return [
        {split: _in_unit(problem, of_heights, curve, split, fit) for split, fit in of_split.items()}
        for of_split in family.fit(of_heights, plain, splits, look=look)
    ]


def _in_unit(problem: Problem, of_heights: Problem, curve: Curve, split: int, fit: Fit) -> Fit:
    """A fit whose outputs are numbers: medians or means, whichever validates better."""
    mask = problem.masks.val[:, split]
    smeared = curve.smeared(of_heights.y[mask] - fit.val[:, 0])
    best = max((curve, smeared), key=lambda each: problem.score(each.numbers(fit.val), mask))
    val, test = (best.numbers(heights).astype(np.float32) for heights in (fit.val, fit.test))
    assert fit.part is not None
    return replace(fit, val=val, test=test, part=OnCurve(fit.part, best))
