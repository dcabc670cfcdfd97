"""The settings to try of each kind of model, proven ones first, as ``spaces.toml`` lists them.

The first ones are the same for every graph. Some did well, by validation, on published graphs of
different kinds. Others come from ``python -m study bench first-settings``, which derives them from
the results of the fair table.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec

from memohop.fit._candidate import Setting
from memohop.jobs.space import Choice, Space

_FOLDER = Path(__file__).parent
_TABLES = tomllib.loads((_FOLDER / "spaces.toml").read_text("utf-8"))

TAUGHT: list[Setting] = msgspec.json.decode(
    (_FOLDER / "first_settings.json").read_bytes(), type=list[Setting]
)
"""What the fair table has taught: first settings of each model, the most useful ones first."""

NUMBERS: dict[str, Space] = msgspec.convert(_TABLES["numbers"], dict[str, Space])
"""What numbers are drawn from, those of ``networks``, of ``linear`` models or ``lightgbm``."""

FIRST_NUMBERS: dict[str, list[dict[str, float]]] = _TABLES["first"]
"""Those of the first ``linear`` models or of ``lightgbm``, the most promising first."""


@dataclass(frozen=True)
class NetworkSpace:
    """The settings of one model.

    Attributes:
        choices: The options to choose from.
        own: The first settings, apart from those that the fair table has taught.
        openers: How many of these differ so much that a search starts with all of them.
        directed_only: Whether it is for directed graphs only.
    """

    choices: Mapping[str, Choice]
    own: Sequence[Setting]
    openers: int = 1
    directed_only: bool = False


NETWORKS = {
    model: NetworkSpace(**table | {"own": [Setting(model, **own) for own in table["own"]]})
    for model, table in _TABLES["networks"].items()
}
"""The settings to try of each model of the registry."""
