"""The numbers of a member, declared once for settings, flags, tables and run ids.

Does not import PyTorch: commands are parsed without it.
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import Any

from memohop.errors import UsageError, real_number

_LARGEST = 1e38  # of single precision, roughly


@dataclass(frozen=True)
class Numbers:
    r"""The numbers that a search may vary, apart from options of the model.

    Attributes:
        lr: learning rate of the optimiser.
        weight_decay: L2 penalty of the optimiser.
        lam: weight of the model's penalty, the paper's :math:`\lambda`.
        dropout: rate on hidden layers; None for the model's own.
        input_dropout: rate on the features; None for the model's own.
    """

    lr: float = 0.01
    weight_decay: float = field(default=5e-4, metadata={"words": "weight decay"})
    lam: float = field(default=0.0, metadata={"words": "lambda"})
    dropout: float | None = field(default=None, metadata={"role": "hidden"})
    input_dropout: float | None = field(
        default=None, metadata={"words": "input dropout", "role": "input"}
    )

    @property
    def numbers(self) -> dict[str, Any]:
        """The numbers by their names."""
        return {name: getattr(self, name) for name in NUMBERS}

    def check_numbers(self) -> None:
        """Refuse numbers that cannot be trained with."""
        for name, value in self.numbers.items():
            if name not in RATES:
                real_number(name, value, least=0, most=_LARGEST)
            elif value is not None and real_number(name, value, least=0, most=1) == 1:
                raise UsageError(f"{name}={value} would drop everything; give a number below 1")
        if self.lr == 0:
            raise UsageError("lr=0 would learn nothing; give a number above 0")


NUMBERS = {one.name: one.metadata.get("words", one.name) for one in fields(Numbers)}
"""The numbers, and the name of each in a table."""

RATES = {one.name: one.metadata["role"] for one in fields(Numbers) if "role" in one.metadata}
"""The dropout rates, and the role of the layers to which each applies."""
