"""Logits propagated over the graph with learned weights: ``gprgnn``."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from memohop.errors import check_choice, real_number, whole_number
from memohop.networks.base import Features, GraphModel
from memohop.nn import Dropout, FeatureLinear, Graph

INITS = ("ppr", "nppr", "sgc", "random")


class GPRGNN(GraphModel):
    r"""A perceptron, and a learned combination of its logits after each step of propagation.

    From `"Adaptive Universal Generalized PageRank Graph Neural Network"
    <https://arxiv.org/abs/2006.07988>`_ (ICLR 2021):

    .. math::
        \mathbf{Z}^0 &= \mathrm{drop}(\mathrm{ReLU}(
            \mathrm{drop}(\mathbf{X})\mathbf{W}_1 + \mathbf{b}_1))\mathbf{W}_2 + \mathbf{b}_2 \\
        \mathbf{Z} &= \sum_{k=0}^K \gamma_k \mathbf{S}^k\,\mathrm{drop}(\mathbf{Z}^0)

    where :math:`\mathbf{S}` is the symmetrically normalised graph with self-loops. The
    coefficients :math:`\gamma` are learned without weight decay, and start as

    - ``"ppr"``: :math:`\gamma_k = \alpha(1 - \alpha)^k`, :math:`\gamma_K = (1 - \alpha)^K`;
    - ``"nppr"``: :math:`\gamma_k \propto \alpha^k`, their absolute values adding up to 1;
    - ``"sgc"``: 1 for the last step and 0 for the others;
    - ``"random"``: uniform, their absolute values adding up to 1.

    This is the authors' network. In their code ``"sgc"`` puts the 1 at step :math:`\alpha`; here,
    weights start as Glorot's and biases at 0. PyTorch Geometric has no such operator: its
    ``APPNP`` is the case of fixed coefficients ``"ppr"``.

    Args:
        hops: the number of steps, :math:`K`.
        init: how the coefficients start.
        alpha: between 0 and 1, for ``"nppr"`` between -1 and 1; not used by the other two.
        propagation_dropout: rate of dropout on the logits that are propagated.
    """

    undecayed = ("coefficients",)

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        *,
        hidden_channels: int = 64,
        hops: int = 10,
        init: str = "ppr",
        alpha: float = 0.1,
        dropout: float = 0.5,
        input_dropout: float = 0.5,
        propagation_dropout: float = 0.5,
        **policies: str,
    ) -> None:
        super().__init__(**policies)
        self.input = FeatureLinear(in_channels, hidden_channels, dropout=input_dropout)
        self.dropout = Dropout(dropout)
        self.output = nn.Linear(hidden_channels, out_channels)
        nn.init.xavier_uniform_(self.output.weight)
        nn.init.zeros_(self.output.bias)
        self.propagation_dropout = Dropout(propagation_dropout, role="propagation")
        self.coefficients = nn.Parameter(_first_coefficients(hops, init, alpha))

    def forward(self, x: Features, graph: Graph) -> Tensor:
        """Logits ``[N, out_channels]``."""
        logits = self.output(self.dropout(F.relu(self.input(x))))
        spread = self.propagation_dropout(logits)
        first, *later = self.coefficients.unbind()
        total = first * spread
        for coefficient in later:
            spread = graph @ spread
            total = total + coefficient * spread
        return total


def _first_coefficients(hops: int, init: str, alpha: float) -> Tensor:
    hops = whole_number("hops", hops, least=1)
    check_choice("init", init, INITS)
    numbers = torch.arange(hops + 1)
    if init == "sgc":
        return (numbers == hops).to(torch.get_default_dtype())
    if init == "ppr":
        alpha = real_number("alpha", alpha, least=0, most=1)
        coefficients = alpha * (1 - alpha) ** numbers
        coefficients[-1] = (1 - alpha) ** hops
        return coefficients
    if init == "nppr":
        coefficients = real_number("alpha", alpha, least=-1, most=1) ** numbers
    else:
        coefficients = torch.rand(hops + 1) * 2 - 1
    return coefficients / coefficients.abs().sum()
