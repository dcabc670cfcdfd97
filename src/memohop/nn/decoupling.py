"""The regulariser that keeps hidden state and memory apart."""

from __future__ import annotations

import torch.nn.functional as F
from torch import Tensor

from memohop.errors import UsageError

FORMS = ("mean", "paper", "official")


def decoupling_loss(hidden: Tensor, memory: Tensor, *, form: str = "mean") -> Tensor:
    r"""The decoupling loss of one layer's pair, Eq. (11).

    With :math:`c_i = \cos(\mathbf{C}_i, \mathbf{H}_i)`, 0 where either vector is zero:

    - ``"paper"``: :math:`\sum_i |c_i|`, to be added over the layers 0 to L and weighed against
      a *summed* cross-entropy, as printed;
    - ``"mean"``: :math:`\frac{1}{N}\sum_i |c_i|`, to be averaged over the layers 1 to L;
    - ``"official"``: :math:`|\frac{1}{N}\sum_i c_i|`, as the released code has it (signs
      cancel), to be added over the layers 1 to L and divided by :math:`\max(L - 1, 1)`.

    Args:
        hidden: :math:`(N, C)`.
        memory: :math:`(N, C)`.
        form: one of the three.
    """
    if form not in FORMS:
        raise UsageError(f"form must be one of {', '.join(FORMS)}, not {form!r}")
    cosine = F.cosine_similarity(hidden, memory, dim=-1, eps=1e-8)
    if form == "paper":
        return cosine.abs().sum()
    if form == "mean":
        return cosine.abs().mean()
    return cosine.mean().abs()


def network_decoupling_loss(pairs: list[tuple[Tensor, Tensor]], *, form: str) -> Tensor:
    """The loss over the layers 0 to L of a network, given their pairs in order."""
    if form == "paper":
        total: Tensor = sum(  # type: ignore[assignment]
            decoupling_loss(hidden, memory, form=form) for hidden, memory in pairs
        )
        return total
    later = [decoupling_loss(hidden, memory, form=form) for hidden, memory in pairs[1:]]
    divisor = len(later) if form == "mean" else max(len(later) - 1, 1)
    total = sum(later)  # type: ignore[assignment]
    return total / divisor
