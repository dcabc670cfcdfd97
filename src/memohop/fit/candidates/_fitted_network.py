"""What a fitted network of the registry says of every node."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from memohop.data.arcs import ArcAttribute
from memohop.errors import UsageError
from memohop.fit._graph import Inputs
from memohop.fit._neighbourhood import EVERY, Rows
from memohop.fit._problem import Outputs
from memohop.fit._saved import Saved, Sizes, check_state, checked_options
from memohop.fit._structure import structure_width
from memohop.fit.candidates._network_data import as_data, relations_of, sees_arcs, structure_of
from memohop.networks import MemoryNetwork, NodeModel, build
from memohop.pyg import Data
from memohop.training.scale import Scale

UNSCALED = Scale(0.0, 1.0)
"""Of targets that are not standardised."""

_SCALES, _STRUCTURE = "scales_of_arcs", "structure"  # arrays beside the weights
_LARGEST = 10_000  # channels or layers of a network


@dataclass(frozen=True, eq=False)
class Network:
    """A fitted network.

    Attributes:
        model: Its id in the registry.
        options: Its options.
        sizes: The numbers of features, outputs and nodes that it was built for.
        scale: The number by which all features are divided.
        state: Parameters and buffers.
        standard: Mean and standard deviation of the numbers that it learned to predict.
        described: The attributes that the arcs of the graph of ``fit`` have.
        scales_of_arcs: The number by which each of them is divided; None if there are none.
        structure: Means and spreads of what structure says of nodes; None if it does not see that.
    """

    model: str
    options: Mapping[str, Any]
    sizes: tuple[int, int, int]
    scale: float
    state: Mapping[str, Tensor]
    standard: Scale = UNSCALED
    described: tuple[ArcAttribute, ...] = ()
    scales_of_arcs: NDArray[np.float32] | None = None
    structure: NDArray[np.float32] | None = None

    @torch.no_grad()
    def outputs(self, inputs: Inputs, rows: Rows = EVERY) -> Outputs:
        """Probabilities of the classes, or the number."""
        network, data = self.ready(inputs)
        return in_unit(inputs.passed(network, data), self.standard)[rows]

    @torch.no_grad()
    def of_network(
        self, network: NodeModel, inputs: Sequence[Any], targets: NDArray[Any]
    ) -> Outputs:
        """The same by a network of these options, given its inputs and the targets it may use."""
        network.load_state_dict(dict(self.state))
        _know(network, targets, self.standard)
        return in_unit(network(*inputs), self.standard)

    def ready(self, inputs: Inputs) -> tuple[NodeModel, Data]:
        """The network with its parameters, and the graph in its input form."""
        network = built(self.model, self.sizes, inputs.nodes, self.described, self.options)
        state = dict(self.state)
        for name in network.per_node:
            state[name] = _of_nodes(state[name], inputs)
        network.load_state_dict(state)
        _know(network, inputs.y, self.standard)
        data = as_data(inputs, self.model, self.scale, self.scales_of_arcs, self.structure)
        return network.eval(), data

    @property
    def has_rows(self) -> bool:
        """Whether it has weights for each node of the graph of ``fit``."""
        return self.model == "linkx" or self.options.get("address") == "rows"

    @property
    def takes_labels(self) -> bool:
        """Whether it is given known labels."""
        return self.options.get("labels") == "memory"

    @property
    def takes_attributes(self) -> bool:
        """Whether it learned from attributes of arcs."""
        return self.options.get("edges", "none") != "none"

    @property
    def needs_whole_graph(self) -> bool:
        """Whether it is given what structure says."""
        return self.structure is not None

    def structure_names(self, inputs: Inputs) -> list[str]:
        """What it is given of that."""
        return [] if self.structure is None else [*structure_of(inputs, self.structure.shape[1])]

    def saved(self) -> Saved:
        """Everything but the sizes, which all parts of a model share."""
        about = {"model": self.model, "options": dict(self.options), "scale": self.scale}
        arrays = {name: value.numpy(force=True) for name, value in self.state.items()}
        beside = {_SCALES: self.scales_of_arcs, _STRUCTURE: self.structure}
        arrays |= {name: scales for name, scales in beside.items() if scales is not None}
        return Saved(about | self.standard._asdict(), arrays)

    @classmethod
    def from_saved(cls, saved: Saved, view: None, sizes: Sizes) -> Network:
        """The network that was saved."""
        model, options = saved.value("model", str), saved.value("options", dict)
        values = checked_options(model, options).values()
        if any(type(value) is int and value > _LARGEST for value in values):
            raise UsageError(f"the options of {model} describe a network that is too large")
        # The columns, and for those that see the graph the degrees in each direction.
        features = sizes.features - sizes.of_edges
        if sees_arcs(model):
            features = sizes.features + (3 if sizes.directed else 1)
        structure = _checked_structure(saved, sizes) if _STRUCTURE in saved.arrays else None
        if structure is not None:
            features += structure.shape[1]
        channels = (features, sizes.outputs, sizes.nodes)
        try:
            with torch.device("meta"):  # shapes alone: nothing is allocated
                network = built(model, channels, sizes.nodes, sizes.described, options)
        except (TypeError, ValueError, ArithmeticError, RuntimeError) as error:
            raise UsageError(f"the options of {model} do not make a network ({error})") from error
        scales = None
        if sizes.described:
            scales = saved.array(_SCALES, (len(sizes.described),))
            if (scales <= 0).any():
                raise UsageError(f"a network has {_SCALES} that are not above 0")
        beside = (_SCALES, _STRUCTURE)
        arrays = {name: array for name, array in saved.arrays.items() if name not in beside}
        state = {name: torch.from_numpy(array) for name, array in arrays.items()}
        check_state(network, state)
        scale, spread, mean = (saved.value(name, float) for name in ("scale", "spread", "mean"))
        if not (min(scale, spread) > 0 and np.isfinite([scale, spread, mean]).all()):
            raise UsageError(f"a network has {scale=}, {spread=}, {mean=}")
        standard = Scale(mean, spread)
        of_graph = sizes.described, scales, structure
        return cls(model, options, channels, scale, state, standard, *of_graph)


def built(
    model: str,
    sizes: tuple[int, int, int],
    nodes: int,
    described: Sequence[ArcAttribute],
    options: Mapping[str, Any],
) -> NodeModel:
    """A network for a graph of this many nodes, whose arcs have these attributes."""
    return build(
        model,
        *sizes[:2],
        num_nodes=nodes,
        arc_attributes=len(described),
        relations=len(relations_of(described)),
        **options,
    )


def _checked_structure(saved: Saved, sizes: Sizes) -> NDArray[np.float32]:
    """Means and spreads of what structure says, with triangles or without."""
    widths = [structure_width(1 + sizes.directed, triangles=some) for some in (False, True)]
    scales = saved.array(_STRUCTURE, (2, None))
    if scales.shape[1] not in widths or not (scales[1] > 0).all():
        raise UsageError(f"a network has {_STRUCTURE} that no graph has: {scales.tolist()}")
    return scales


def _of_nodes(rows: Tensor, inputs: Inputs) -> Tensor:
    """Weights with a row for each node, zeros for nodes added after ``fit``."""
    if inputs.hidden is not None:
        return rows.masked_fill(torch.from_numpy(inputs.hidden)[:, None], 0)
    if inputs.of_fit == inputs.nodes:
        return rows
    padded = torch.zeros(inputs.nodes, *rows.shape[1:], dtype=rows.dtype)
    padded[: inputs.of_fit] = rows[: inputs.of_fit]
    return padded


def _know(network: NodeModel, targets: NDArray[Any], standard: Scale) -> None:
    """Put known targets into the memory of a network that takes them."""
    if isinstance(network, MemoryNetwork) and network.label_rate is not None:
        shown = torch.from_numpy(targets).to(network.classifier.weight.device)
        network.know(standard.standardise(shown) if shown.is_floating_point() else shown)


def in_unit(output: Any, standard: Scale) -> Outputs:
    """Probabilities of the classes, or the number, from what a network returns."""
    logits = output[0] if isinstance(output, tuple) else output
    said = logits.softmax(-1) if logits.shape[-1] > 1 else standard.restore(logits)
    return said.cpu().numpy()
