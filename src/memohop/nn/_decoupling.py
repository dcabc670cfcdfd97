"""The regulariser that keeps hidden state and memory apart."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from memohop.errors import check_choice
from memohop.nn._part import mean_for_loss, sum_for_loss

FORMS = ("mean", "paper", "official")
_LEAST = 1e-6  # a shorter vector has no direction


def decoupling_loss(hidden: Tensor, memory: Tensor, *, form: str = "mean") -> Tensor:
    r"""The decoupling loss of one layer's pair, Eq. (11).

    With :math:`c_i = \cos(\mathbf{C}_i, \mathbf{H}_i)`, which is 0 and has no gradient if either
    vector is shorter than :math:`10^{-6}` (the gradient of a cosine grows as one over the length,
    and one node without messages would outweigh all others):

    - ``"paper"``: :math:`\sum_i |c_i|`, to be added over the layers 0 to L and weighed against
      a *summed* cross-entropy, as printed;
    - ``"mean"``: :math:`\frac{1}{N}\sum_i |c_i|`, to be averaged over the layers 1 to L;
    - ``"official"``: :math:`|\frac{1}{N}\sum_i c_i|`, as in the released code (signs
      cancel), to be added over the layers 1 to L and divided by :math:`\max(L - 1, 1)`.

    Args:
        hidden: :math:`(N, C)`.
        memory: :math:`(N, C)`.
        form: one of the three.

    Example:
        >>> import torch, memohop
        >>> hidden, memory = torch.tensor([[1.0, 0.0]]), torch.tensor([[0.0, 2.0]])
        >>> memohop.decoupling_loss(hidden, memory)  # at right angles
        tensor(0.)
        >>> memohop.decoupling_loss(hidden, -hidden)
        tensor(1.)
    """
    check_choice("form", form, FORMS)
    if hidden is memory:  # as in layer 0: the cosine of any vector with itself is 1
        hidden = memory = hidden.detach()
    cosine = _cosine(hidden, memory)
    if form == "paper":
        return sum_for_loss(cosine.abs())
    if form == "mean":
        return mean_for_loss(cosine.abs())
    return mean_for_loss(cosine).abs()


def network_decoupling_loss(pairs: list[tuple[Tensor, Tensor]], *, form: str) -> Tensor:
    """The loss over the layers 0 to L of a network, given their pairs in order."""
    counted = pairs if form == "paper" else pairs[1:]
    total: Any = sum(decoupling_loss(hidden, memory, form=form) for hidden, memory in counted)
    divisors = {"paper": 1, "mean": len(counted), "official": max(len(counted) - 1, 1)}
    return total / divisors[form]


def _cosine(hidden: Tensor, memory: Tensor) -> Tensor:
    """The cosine of each row of the one with the same row of the other."""
    return (hidden * memory).sum(-1) * _inverse_length(hidden) * _inverse_length(memory)


def _inverse_length(rows: Tensor) -> Tensor:
    """One over the length of each row, and 0 for a row without direction."""
    length = torch.linalg.vector_norm(rows, dim=-1)
    long_enough = length >= _LEAST
    return long_enough / torch.where(long_enough, length, 1)
