"""The scale of numbers to predict.

Does not import PyTorch until it is used: commands are parsed without it.
"""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, NamedTuple

from memohop.errors import UsageError

if TYPE_CHECKING:
    from torch import Tensor

    from memohop.pyg import Data


class Scale(NamedTuple):
    """Mean and standard deviation of numbers to predict.

    MAE and RMSE of standardised targets are in units of ``spread``; R2 is the same on any scale.

    Example:
        >>> import torch
        >>> from memohop.training import Scale
        >>> scale = Scale(mean=10.0, spread=2.0)
        >>> scale.restore(scale.standardise(torch.tensor([13.0])))
        tensor([13.])
    """

    mean: float
    spread: float

    def standardise(self, y: Tensor) -> Tensor:
        """The numbers that networks learn."""
        return (y - self.mean) / self.spread

    def restore(self, outputs: Tensor) -> Tensor:
        """The outputs of networks in the unit of the targets."""
        return self.mean + self.spread * outputs


def standardised(data: Data) -> tuple[Data, Scale]:
    """A copy of the data with targets of mean 0 and standard deviation 1, and how to go back.

    Mean and deviation are those of the nodes that are training nodes in some split.

    Example:
        >>> import memohop
        >>> from memohop.training import standardised
        >>> data = memohop.load("csbm", nodes=60)
        >>> data.y = 5.0 + 3.0 * data.x[:, 0]  # numbers instead of classes
        >>> again, scale = standardised(data)
        >>> bool((scale.restore(again.y) - data.y).abs().max() < 1e-4)
        True
    """
    import torch

    from memohop.data.check import check

    check(data)
    if not data.y.is_floating_point():
        raise UsageError(f"data.y has type {data.y.dtype}, so it holds classes and has no scale")
    train = data.train_mask if data.train_mask.dim() == 1 else data.train_mask.any(dim=1)
    known = data.y[train].double()
    scale = Scale(float(known.mean()), float(known.std(correction=0)) or 1.0)
    data = copy.copy(data)
    data.y = scale.standardise(data.y.double()).to(torch.get_default_dtype())
    return data, scale
