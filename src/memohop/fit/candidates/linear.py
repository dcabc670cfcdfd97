"""Logistic regression and ridge regression, on columns, neighbours and rows of the graph."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.special import softmax
from sklearn.linear_model import Ridge
from sklearn.preprocessing import MaxAbsScaler
from sklearn.utils.class_weight import compute_sample_weight

from memohop.fit.candidates.family import Setting
from memohop.fit.candidates.logistic import logistic_regression
from memohop.fit.candidates.view_family import Learned, ViewFamily
from memohop.fit.neighbourhood import Matrix
from memohop.fit.problem import Inputs, Outputs, Problem, check_width
from memohop.fit.saved import Saved, Sizes, as_tensors
from memohop.fit.views import View

_FIRST = (1.0, 0.1, 10.0, 0.01, 100.0)
_RANGE = (1e-4, 1e4)
_ABSENT = 30.0  # logits by which a class without training nodes is below all others


@dataclass(frozen=True, eq=False)
class Linear:
    r"""A fitted linear model: :math:`\operatorname{softmax}(\mathbf{X}\mathbf{W} + \mathbf{b})`.

    Attributes:
        view: How its features are made.
        weight: ``[features, outputs]``.
        bias: ``[outputs]``.
    """

    view: View
    weight: NDArray[np.float32]
    bias: NDArray[np.float32]

    def outputs(self, inputs: Inputs) -> Outputs:
        """Probabilities of the classes, or the number."""
        return self.of_features(self.view.features(inputs, inputs.y))

    def of_features(self, features: Matrix) -> Outputs:
        """The same from features that are already made."""
        found = np.asarray(features @ self.weight) + self.bias
        return softmax(found, axis=1) if self.view.classes else found

    def saved(self) -> Saved:
        """Weight and bias."""
        return Saved({}, as_tensors(weight=self.weight, bias=self.bias))

    @classmethod
    def from_saved(cls, saved: Saved, view: View, sizes: Sizes) -> Linear:
        """The model that was saved."""
        features = saved.tensors.get("weight", torch.empty(0)).shape[0]
        weight = saved.array("weight", (features, sizes.outputs))
        check_width(view, features, sizes)
        return cls(view, weight, saved.array("bias", (sizes.outputs,)))


class LinearFamily(ViewFamily):
    """``linear``, ``linear+neighbours`` and ``linear+rows``."""

    def starts(self) -> list[Mapping[str, float]]:
        """Penalties of very different sizes."""
        return [{"freedom": freedom} for freedom in _FIRST]

    def near(
        self, problem: Problem, best: Setting, count: int, generator: np.random.Generator
    ) -> list[Setting]:
        """Another penalty, a few times larger or smaller."""
        options = self.near_options(problem, best, generator)
        factors = np.exp(generator.normal(scale=0.8, size=count))
        freedoms = np.clip(best.numbers["freedom"] * factors, *_RANGE).tolist()
        return [Setting(self.id, options, {"freedom": freedom}) for freedom in freedoms]

    def learn(
        self,
        problem: Problem,
        features: Matrix,
        setting: Setting,
        split: int,
        look: Callable[[], None],
    ) -> Learned:
        """The weights, for features that are first divided by their largest value."""
        train = problem.masks.train[problem.labelled, split]
        scaler, freedom = MaxAbsScaler(), setting.numbers["freedom"]
        x, y = scaler.fit_transform(features[train]), problem.y[problem.labelled[train]]
        if problem.classes:
            weight, bias = self._classify(x, y, problem.classes, freedom, look)
        else:
            model = Ridge(alpha=1 / freedom).fit(x, y)
            weight, bias = model.coef_[None], np.atleast_1d(model.intercept_)
        scaled = np.ascontiguousarray((weight / scaler.scale_).T, np.float32)
        part = Linear(self.view(problem, setting), scaled, bias.astype(np.float32))
        return part, part.of_features

    def _classify(
        self,
        x: Matrix,
        y: NDArray[np.int64],
        classes: int,
        freedom: float,
        look: Callable[[], None],
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Weights ``[classes, features]`` and biases; ``y`` may lack some of the classes."""
        weight, bias = np.zeros((classes, x.shape[1])), np.full(classes, -_ABSENT)
        present, numbers = np.unique(y, return_inverse=True)
        if len(present) == 1:
            bias[present] = 0
            return weight, bias
        counts = compute_sample_weight("balanced" if self.balanced else None, y)
        weight[present], bias[present] = logistic_regression(x, numbers, counts, freedom, look)
        bias[np.setdiff1d(np.arange(classes), present)] += bias[present].min()
        return weight, bias
