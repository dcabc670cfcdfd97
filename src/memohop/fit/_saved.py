"""How a part of a model is saved, and checked when it is read: correct digests prove little.

A :class:`~memohop.errors.UsageError` describes the error; :func:`memohop.folders.Layout.refused`
adds the file and the remedy.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import DTypeLike, NDArray
from torch import Tensor, nn

from memohop.data.arcs import ArcAttribute
from memohop.errors import UsageError, check_choice
from memohop.networks.registry import entry


class Sizes(NamedTuple):
    """Sizes that all parts of a model share: features, classes (0 for numbers), nodes of ``fit``.

    ``directed`` states whether directions count, ``of_edges`` how many of the features are
    statistics of a node's edges, ``described`` what attributes arcs have, and ``timed`` whether
    nodes have times.
    """

    features: int
    classes: int
    nodes: int
    directed: bool
    of_edges: int = 0
    described: tuple[ArcAttribute, ...] = ()
    timed: bool = False

    @property
    def outputs(self) -> int:
        """The number of outputs of a model for a node."""
        return max(self.classes, 1)


@dataclass(frozen=True, eq=False)
class Saved:
    """A part of a model: names and numbers for JSON, and arrays for safetensors."""

    about: Mapping[str, Any] = field(default_factory=dict)
    arrays: Mapping[str, NDArray[Any]] = field(default_factory=dict)

    @classmethod
    def of_part(
        cls, name: str, about: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]
    ) -> Saved:
        """A part, with those of many arrays that begin with its name and a dot."""
        start = f"{name}."
        own = {key.removeprefix(start): arrays[key] for key in arrays if key.startswith(start)}
        return cls(about, own)

    def value(self, name: str, kind: type) -> Any:
        """An item of ``about``; a ``UsageError`` if it is absent or of another type."""
        value = self.about.get(name)
        if type(value) is not kind or value != value:
            raise UsageError(f"a part has {name}={value!r}, which is not of type {kind.__name__}")
        return value

    def array(
        self, name: str, shape: Sequence[int | None], dtype: DTypeLike = np.float32
    ) -> NDArray[Any]:
        """One of the arrays; a ``UsageError`` if it is absent, not like this, or not finite.

        A size of None may be any.
        """
        array = self.arrays.get(name)
        if array is None or array.dtype != dtype:
            type_of = "absent" if array is None else f"of type {array.dtype}"
            raise UsageError(f"a part has {name} that is {type_of}, not of type {np.dtype(dtype)}")
        pairs = zip(shape, array.shape, strict=False)
        if len(shape) != array.ndim or any(asked not in (None, size) for asked, size in pairs):
            raise UsageError(f"a part has {name} of shape {list(array.shape)} instead of {shape}")
        if not np.isfinite(array).all():
            raise UsageError(f"a part has {name} that is not finite")
        return array

    def text(self, name: str) -> str:
        """The text of which one of the arrays holds the bytes."""
        return self.array(name, (None,), np.uint8).tobytes().decode()


def as_array(text: str) -> NDArray[np.uint8]:
    """The bytes of a text."""
    return np.frombuffer(text.encode(), dtype=np.uint8)


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
