"""Node features with few stored values, and the first layer of every model."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor, nn

from memohop.data.sparse_features import as_csr
from memohop.nn._dropout import Dropout
from memohop.nn._operation import Operation, kernels_for
from memohop.nn._ops.pattern import FixedMatrix, Pattern, fixed_product
from memohop.nn._ops.products import weighted_product
from memohop.nn._randomness import Place, place_words


class SparseFeatures(FixedMatrix):
    """A feature matrix that stores only the values that are not 0.

    Bags of words are 90 to 99.5 per cent zeros. Dropping stored values has the same distribution
    as dropping all, because zeros stay zeros, at a fraction of the cost.

    Args:
        features: ``[nodes, channels]``, a dense or a sparse tensor; a sparse one stays sparse.

    Example:
        >>> import torch
        >>> from memohop.nn import SparseFeatures
        >>> SparseFeatures(torch.eye(4))
        SparseFeatures((4, 4), density=0.250)
    """

    def __init__(self, features: Tensor) -> None:
        if features.layout == torch.strided:
            csr = features.to_sparse_csr()
        else:
            csr = as_csr(features, features.dtype).to(features.device)
        counts, col, values = csr.crow_indices().diff(), csr.col_indices().long(), csr.values()
        row = torch.arange(len(counts), device=counts.device).repeat_interleave(counts)
        nodes, channels = features.shape
        super().__init__(Pattern(row, col, (nodes, channels)), values)

    @property
    def shape(self) -> tuple[int, int]:
        """Nodes and channels."""
        return self.pattern.shape

    @property
    def density(self) -> float:
        """The share of values that are stored."""
        return len(self.values) / max(1, self.shape[0] * self.shape[1])

    def __repr__(self) -> str:
        return f"SparseFeatures({self.shape}, density={self.density:.3f})"


class FeatureLinear(nn.Module):
    r"""Dropout on node features and a linear map: :math:`\mathrm{drop}(\mathbf{X})\mathbf{W}`.

    Takes a dense tensor or :class:`SparseFeatures`.

    Args:
        in_channels: number of features.
        out_channels: width of the result.
        bias: whether to add a learned vector.
        dropout: rate of dropout on the features.
        parts: the number of maps side by side; each has Glorot weights.

    Example:
        >>> import torch
        >>> from memohop.nn import FeatureLinear, SparseFeatures
        >>> layer = FeatureLinear(4, 2)
        >>> layer(SparseFeatures(torch.eye(4))).shape
        torch.Size([4, 2])
    """

    bias: Tensor | None

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        *,
        bias: bool = True,
        dropout: float = 0.0,
        parts: int = 1,
    ) -> None:
        super().__init__()
        self.in_channels, self.out_channels, self.parts = in_channels, out_channels, parts
        self.dropout = Dropout(dropout, role="input")
        # [in, out]: a stored value selects a row
        self.weight = nn.Parameter(torch.empty(in_channels, out_channels))
        self.register_parameter("bias", nn.Parameter(torch.empty(out_channels)) if bias else None)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Glorot weights, zero bias."""
        bound = math.sqrt(6 / (self.in_channels + self.out_channels / self.parts))
        nn.init.uniform_(self.weight, -bound, bound)
        if self.bias is not None:
            nn.init.zeros_(self.bias)

    def forward(self, features: Tensor | SparseFeatures) -> Tensor:
        """From ``[N, in_channels]`` to ``[N, out_channels]``."""
        if isinstance(features, SparseFeatures):
            return self._sparse_forward(features)
        product = self.dropout(features) @ self.weight
        return product if self.bias is None else product + self.bias

    def _sparse_forward(self, features: SparseFeatures) -> Tensor:
        draw, bias = self.dropout.draw(), None if self.bias is None else self.bias[None]
        if draw is None and not (self.training and self.dropout.active):
            return fixed_product(self.weight[None], features, bias).squeeze(0)
        values, pattern = features.values, features.pattern
        if draw is not None and draw.place.part is None and kernels_for(values) is not None:
            tensors = self.weight[None], bias, draw.key[None], self.dropout.rate.reshape(1)
            return _DroppedProduct.apply(*tensors, draw.place, values, pattern, False).squeeze(0)
        values = self.dropout.drop(values, draw)
        product = weighted_product(values[None], self.weight[None], pattern).squeeze(0)
        return product if self.bias is None else product + self.bias

    def extra_repr(self) -> str:
        """The two widths."""
        return f"{self.in_channels}, {self.out_channels}, bias={self.bias is not None}"


def linear_map(
    in_channels: int,
    out_channels: int,
    *,
    features: bool = False,
    dropout: float = 0.0,
    parts: int = 1,
) -> nn.Linear | FeatureLinear:
    """Linear maps without bias, side by side as one, each with Glorot weights.

    Each of the ``parts`` maps is ``out_channels`` wide. The input is the node features, on which
    there may be dropout, or a hidden state.
    """
    width = parts * out_channels
    if features:
        return FeatureLinear(in_channels, width, bias=False, dropout=dropout, parts=parts)
    linear = nn.Linear(in_channels, width, bias=False)
    for part in linear.weight.detach().chunk(parts):
        nn.init.xavier_uniform_(part)
    return linear


class _DroppedProduct(Operation):
    """``drop(X) @ dense + bias`` for sparse ``X`` in one pass, or ``drop(X).T @ dense``."""

    tensors = 4

    @staticmethod
    def forward(
        dense: Tensor,
        bias: Tensor | None,
        keys: Tensor,
        rates: Tensor,
        place: Place,
        values: Tensor,
        pattern: Pattern,
        transposed: bool,
    ) -> Tensor:
        kernels = kernels_for(dense)
        assert kernels is not None
        drop = (keys.contiguous(), rates.contiguous(), *place_words(place.number))
        return kernels.product(values, dense, pattern, bias=bias, drop=drop, transposed=transposed)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
        _, bias, keys, rates, ctx.place, values, ctx.pattern, ctx.transposed = inputs
        ctx.has_bias = bias is not None
        ctx.save_for_backward(keys, rates, values)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        keys, rates, values = ctx.saved_tensors
        turned = (ctx.place, values, ctx.pattern, not ctx.transposed)
        of_dense = _DroppedProduct.apply(grads[0], None, keys, rates, *turned)
        return of_dense, grads[0].sum(1) if ctx.has_bias else None, *[None] * 6
