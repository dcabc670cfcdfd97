"""The model that a fit keeps: a weighted mean of models, with calibrated probabilities."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray
from scipy.special import softmax

from memohop.fit._neighbourhood import EVERY, Rows
from memohop.fit._problem import Inputs, Outputs

if TYPE_CHECKING:
    from memohop.fit._candidate import FittedModel, Setting

_TINY = 1e-12  # the least probability to take a logarithm of


@dataclass(frozen=True)
class Calibration:
    """How probabilities are corrected.

    Attributes:
        temperature: Above 1 if models were too sure.
        shifts: Of the logit of each class; none if classes stay as they are.
    """

    temperature: float = 1.0
    shifts: tuple[float, ...] = ()

    def of(self, outputs: Outputs) -> Outputs:
        """Calibrated probabilities; numbers ``[rows, 1]`` stay as they are."""
        if outputs.shape[1] == 1 or self == UNCHANGED:
            return outputs.astype(np.float32)
        logits = log_probabilities(outputs) / self.temperature + np.array(self.shifts or 0.0)
        calibrated: Outputs = softmax(logits, axis=1).astype(np.float32)
        return calibrated


UNCHANGED = Calibration()
"""Probabilities as they are."""


@dataclass(frozen=True, eq=False)
class Component:
    """One part of an ensemble: a setting, its weight, and the models that it averages."""

    setting: Setting
    weight: float
    models: tuple[FittedModel, ...]


@dataclass(frozen=True, eq=False)
class Ensemble:
    """The model that a fit keeps.

    Attributes:
        components: Parts with weights that sum to 1; often there is only one.
        calibration: Of the probabilities.
    """

    components: tuple[Component, ...]
    calibration: Calibration = UNCHANGED

    def outputs(self, inputs: Inputs, rows: Rows = EVERY) -> Outputs:
        """Probabilities of the classes, or the number, for some nodes of a graph, or for all."""
        said = sum(
            component.weight
            * np.mean([model.outputs(inputs, rows) for model in component.models], axis=0)
            for component in self.components
        )
        return self.calibration.of(np.asarray(said))


def log_probabilities(probabilities: Outputs) -> NDArray[np.float64]:
    """Their natural logarithms, which are finite."""
    return np.log(probabilities.astype(np.float64).clip(_TINY))
