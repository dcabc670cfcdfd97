r"""Logistic regression and ridge regression, on columns, neighbours and rows of the graph.

With features :math:`\mathbf{x}_i`, classes :math:`y_i` and weights of the nodes :math:`c_i`,
logistic regression minimises

.. math::
    \frac{1}{\sum_i c_i} \Big( \sum_i -c_i \log
        \operatorname{softmax}(\mathbf{W}\mathbf{x}_i + \mathbf{b})_{y_i}
        + \frac{1}{2 C} \lVert\mathbf{W}\rVert^2 \Big)

as scikit-learn's ``LogisticRegression`` does, which has no way to stop it. For two classes
scikit-learn has one row :math:`\mathbf{w}` of weights; here there are two, :math:`\pm\mathbf{w}/2`,
with half its norm, so half its :math:`C` gives the same solution.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.special import log_softmax, softmax
from sklearn.linear_model import Ridge
from sklearn.preprocessing import MaxAbsScaler
from sklearn.utils.class_weight import compute_sample_weight

from memohop.fit._candidate import Look
from memohop.fit._certainty import stopping
from memohop.fit._neighbourhood import Matrix
from memohop.fit._problem import Outputs, Problem
from memohop.fit._saved import Saved, Sizes
from memohop.fit._views import View
from memohop.fit.candidates._view_family import Learned, ViewFamily, ViewModel, check_width

_ABSENT = 30.0  # logits by which a class without training nodes is below all others
_STEPS = 300  # at most: nearly converged is good enough
_FLAT = 1e-4  # the largest slope at which it has converged, as in scikit-learn
_PRECISE = 64 * float(np.finfo(np.float64).eps)


@dataclass(frozen=True, eq=False)
class Linear(ViewModel):
    r"""A fitted linear model: :math:`\operatorname{softmax}(\mathbf{X}\mathbf{W} + \mathbf{b})`.

    Attributes:
        weight: ``[features, outputs]``.
        bias: ``[outputs]``.
    """

    weight: NDArray[np.float32]
    bias: NDArray[np.float32]

    def of_features(self, features: Matrix) -> Outputs:
        """Probabilities of the classes, or the number, whatever the order of the rows.

        In single precision, a product of dense matrices may round a row by its place among others.
        """
        said = np.asarray(features @ self.weight.astype(np.float64)) + self.bias
        said = said.astype(np.float32)
        return softmax(said, axis=1) if self.view.classes else said

    def saved(self) -> Saved:
        """Weight and bias."""
        return Saved({}, {"weight": self.weight, "bias": self.bias})

    @classmethod
    def from_saved(cls, saved: Saved, view: View, sizes: Sizes) -> Linear:
        """The model that was saved."""
        weight = saved.array("weight", (None, sizes.outputs))
        check_width(view, len(weight), sizes)
        return cls(view, weight, saved.array("bias", (sizes.outputs,)))


class LinearFamily(ViewFamily):
    """``linear``, ``linear+neighbours`` and ``linear+rows``: penalties of very different sizes."""

    learner = "linear"

    def learn(
        self,
        problem: Problem,
        view: View,
        features: Matrix,
        numbers: Mapping[str, float],
        split: int,
        look: Look,
    ) -> Learned:
        """The weights, for features that are first divided by their largest value."""
        train = problem.masks.train[problem.labelled, split]
        scaler, freedom = MaxAbsScaler(), numbers["freedom"]
        x, y = scaler.fit_transform(features[train]), problem.y[problem.labelled[train]]
        if problem.classes:
            weight, bias = self._classify(x, y, problem.classes, freedom, look)
        else:
            model = Ridge(alpha=1 / freedom).fit(x, y)
            weight, bias = model.coef_[None], np.atleast_1d(model.intercept_)
        scaled = np.ascontiguousarray((weight / scaler.scale_).T, np.float32)
        part = Linear(view, scaled, bias.astype(np.float32))
        return part, part.of_features

    def bytes_of_feature(self, outputs: int) -> int:
        """Those of the solver, which holds thirty copies of each weight."""
        return 30 * 8 * outputs

    def _classify(
        self, x: Matrix, y: NDArray[np.int64], classes: int, freedom: float, look: Look
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


def logistic_regression(
    x: Matrix,
    y: NDArray[np.int64],
    counts: NDArray[np.float64],
    freedom: float,
    look: Look,
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Weights ``[classes, features]`` and biases ``[classes]``.

    ``y`` has each class number from 0 on at least once, ``counts`` the weight of each row, and
    ``freedom`` is :math:`C`. If ``look`` raises ``Enough`` at a step, the weights so far count.
    """
    classes, features = int(y.max()) + 1, x.shape[1]
    penalty = (2 if classes == 2 else 1) / (freedom * counts.sum())
    share, rows, across = (counts / counts.sum())[:, None], np.arange(len(y)), x.T

    def apart(flat: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        return flat[:-classes].reshape(classes, features), flat[-classes:]

    def loss(flat: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
        weight, bias = apart(flat)
        logarithms = log_softmax(np.asarray(x @ weight.T.astype(x.dtype)) + bias, axis=1)
        slope = np.exp(logarithms)
        slope[rows, y] -= 1
        slope *= share
        of_weight = np.asarray(across @ slope.astype(x.dtype)).T + penalty * weight
        value = -(share[:, 0] @ logarithms[rows, y]) + penalty / 2 * np.vdot(weight, weight)
        return float(value), np.concatenate([of_weight.ravel(), slope.sum(axis=0)])

    solution = minimize(
        loss,
        np.zeros(classes * (features + 1)),
        jac=True,
        method="L-BFGS-B",
        callback=stopping(look),
        options={"maxiter": _STEPS, "gtol": _FLAT, "ftol": _PRECISE, "maxls": 50},
    )
    return apart(solution.x)
