"""Batch normalisation with running statistics that work under ``vmap``."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from memohop.nn._part import node_moments


class BatchNorm(nn.Module):
    r"""Normalises each channel over the nodes.

    .. math::
        \mathbf{h}'_i = \boldsymbol\gamma \odot
            \frac{\mathbf{h}_i - \boldsymbol\mu}{\sqrt{\boldsymbol\sigma^2 + \epsilon}}
            + \boldsymbol\beta

    with the mean and variance of the nodes while training, and their running averages in
    evaluation, like :class:`torch.nn.BatchNorm1d`. Under ``vmap`` the latter's running
    variance is wrong; this one's is right.

    Args:
        channels: width of the input.
        scale: whether there is a learned factor :math:`\boldsymbol\gamma`.
        running: whether evaluation uses running averages, or the nodes' own statistics as in
            training.
        momentum: weight of the newest statistics in the running averages.
        epsilon: added to the variance.

    Example:
        >>> import torch
        >>> from memohop.nn import BatchNorm
        >>> BatchNorm(1)(torch.tensor([[1.0], [3.0]])).round().flatten().tolist()
        [-1.0, 1.0]
    """

    running_mean: Tensor
    running_variance: Tensor

    def __init__(
        self,
        channels: int,
        *,
        scale: bool = True,
        running: bool = True,
        momentum: float = 0.1,
        epsilon: float = 1e-5,
    ) -> None:
        super().__init__()
        self.running, self.momentum, self.epsilon = running, momentum, epsilon
        self.weight = nn.Parameter(torch.ones(channels)) if scale else None
        self.bias = nn.Parameter(torch.zeros(channels))
        if running:
            self.register_buffer("running_mean", torch.zeros(channels))
            self.register_buffer("running_variance", torch.ones(channels))

    def forward(self, hidden: Tensor) -> Tensor:
        """From ``[N, channels]`` to ``[N, channels]``."""
        if self.running and not self.training:
            mean, variance = self.running_mean, self.running_variance
        else:
            mean, variance, count = node_moments(hidden)
            if self.running:
                self._remember(mean.detach(), variance.detach(), count)
        factor = (variance + self.epsilon).rsqrt()
        if self.weight is not None:
            factor = factor * self.weight
        return ((hidden - mean) * factor + self.bias).to(hidden.dtype)

    def _remember(self, mean: Tensor, variance: Tensor, count: int) -> None:
        unbiased = variance * (count / max(count - 1, 1))
        self.running_mean.mul_(1 - self.momentum).add_(mean * self.momentum)
        self.running_variance.mul_(1 - self.momentum).add_(unbiased * self.momentum)

    def extra_repr(self) -> str:
        """The width."""
        return f"{len(self.bias)}, scale={self.weight is not None}, running={self.running}"
