"""How a part of a model is saved, and checked when it is read: correct digests prove little.

A :class:`~memohop.errors.UsageError` describes the error; :func:`memohop.fit._keep.refused` adds
the file and the remedy.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from memohop.errors import UsageError, check_choice
from memohop.networks.registry import entry


class Sizes(NamedTuple):
    """Sizes that all parts of a model share: features, classes (0 for numbers), nodes of ``fit``.

    ``directed`` states whether directions count.
    """

    features: int
    classes: int
    nodes: int
    directed: bool

    @property
    def outputs(self) -> int:
        """The number of outputs of a model for a node."""
        return max(self.classes, 1)


@dataclass(frozen=True, eq=False)
class Saved:
    """A part of a model.

    Attributes:
        about: Names and numbers, for JSON.
        tensors: For safetensors.
    """

    about: Mapping[str, Any]
    tensors: Mapping[str, Tensor] = field(default_factory=dict)

    def value(self, name: str, kind: type) -> Any:
        """An item of ``about``; a ``UsageError`` if it is absent or of another type."""
        value = self.about.get(name)
        if type(value) is not kind or value != value:
            raise UsageError(f"a part has {name}={value!r}, which is not of type {kind.__name__}")
        return value

    def array(self, name: str, shape: Sequence[int]) -> NDArray[np.float32]:
        """One of the tensors; a ``UsageError`` if it is absent, of another shape or not finite."""
        tensor = self._tensor(name, torch.float32)
        if list(tensor.shape) != list(shape):
            raise UsageError(f"a part has {name} of shape {list(tensor.shape)} instead of {shape}")
        if not tensor.isfinite().all():
            raise UsageError(f"a part has {name} that is not finite")
        return tensor.numpy()

    def text(self, name: str) -> str:
        """The text of which one of the tensors holds the bytes."""
        return self._tensor(name, torch.uint8).numpy().tobytes().decode()

    def _tensor(self, name: str, kind: torch.dtype) -> Tensor:
        tensor = self.tensors.get(name)
        if tensor is None or tensor.dtype != kind:
            type_of = "absent" if tensor is None else f"of type {tensor.dtype}"
            raise UsageError(f"a part has {name} that is {type_of}, and not of type {kind}")
        return tensor


def as_tensors(**content: NDArray[Any] | str) -> dict[str, Tensor]:
    """Arrays and texts in the form that safetensors takes: copies, since it refuses shared ones."""
    return {
        name: torch.from_numpy(
            np.frombuffer(value.encode(), np.uint8).copy()
            if isinstance(value, str)
            else np.array(value, order="C")
        )
        for name, value in content.items()
    }


def checked_options(model: str, options: Mapping[str, Any]) -> dict[str, Any]:
    """All options of a network, defaults included, each with the type of its default."""
    known = entry(model).options()
    for name, value in options.items():
        check_choice("options", name, known)
        allowed = (float, int) if isinstance(known[name], float) else (type(known[name]),)
        if type(value) not in allowed:
            raise UsageError(f"option {name}={value!r}; the default is {known[name]!r}")
    return known | dict(options)


def check_state(network: nn.Module, state: Mapping[str, Tensor]) -> None:
    """Refuse parameters that are not finite, or not those of a network (on any device)."""
    expected = {name: (value.shape, value.dtype) for name, value in network.state_dict().items()}
    if {name: (value.shape, value.dtype) for name, value in state.items()} != expected:
        raise UsageError("the weights are not those of a network with these options")
    if not all(value.isfinite().all() for value in state.values()):
        raise UsageError("there are weights that are not finite")
