"""A fitted network: the graph in its input form, what it says of every node, and saving it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from scipy import sparse
from torch import Tensor

from memohop.errors import UsageError, check_choice
from memohop.fit.candidates.spaces import SPACES
from memohop.fit.problem import Inputs, Outputs, Problem
from memohop.fit.saved import Saved, Sizes, check_state, checked_options
from memohop.fit.views import side_by_side
from memohop.inference import block_logits
from memohop.networks import MemoryNetwork, NodeModel, build
from memohop.pyg import Data
from memohop.training import Scale
from memohop.training.device import find_device
from memohop.training.task import make_inputs

DEGREE = 3.0
"""The logarithm of degrees is divided by this to match the columns."""
AS_IT_IS = Scale(0.0, 1.0)
"""Of targets that are not standardised."""

_MOST = 10_000  # channels or layers of a network


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
        arc_scale: The number by which the weights of arcs are divided.
    """

    model: str
    options: Mapping[str, Any]
    sizes: tuple[int, int, int]
    scale: float
    state: Mapping[str, Tensor]
    standard: Scale = AS_IT_IS
    arc_scale: float = 1.0

    @torch.no_grad()
    def outputs(self, inputs: Inputs) -> Outputs:
        """Probabilities of the classes, or the number."""
        network, data = self.ready(inputs)
        if isinstance(network, MemoryNetwork):
            return said_by(_by_rows(network, data), self.standard)
        return said_by(network(*make_inputs(data, network, torch.device("cpu"))), self.standard)

    def ready(self, inputs: Inputs) -> tuple[NodeModel, Data]:
        """The network with its parameters, and the graph in its input form."""
        network = build(self.model, *self.sizes[:2], num_nodes=inputs.nodes, **self.options)
        state = dict(self.state)
        for name in network.per_node:
            state[name] = self._of_nodes(state[name], inputs)
        network.load_state_dict(state)
        _know(network, inputs.y, self.standard)
        return network.eval(), as_data(inputs, self.model, self.scale, self.arc_scale)

    def _of_nodes(self, rows: Tensor, inputs: Inputs) -> Tensor:
        """Weights with a row for each node, zeros for nodes added after ``fit``."""
        if inputs.hidden is not None:
            return rows.masked_fill(torch.from_numpy(inputs.hidden)[:, None], 0)
        if inputs.of_fit == inputs.nodes:
            return rows
        padded = torch.zeros(inputs.nodes, *rows.shape[1:], dtype=rows.dtype)
        padded[: inputs.of_fit] = rows[: inputs.of_fit]
        return padded

    @property
    def has_rows(self) -> bool:
        """Whether it has weights for each node of the graph of ``fit``."""
        return self.model == "linkx" or self.options.get("address") == "rows"

    @property
    def takes_labels(self) -> bool:
        """Whether it is given known labels."""
        return self.options.get("labels") == "memory"

    def saved(self) -> Saved:
        """Everything but the sizes, which all parts of a model share."""
        about = {
            "model": self.model,
            "options": dict(self.options),
            "scale": self.scale,
            "arc_scale": self.arc_scale,
        }
        # Copies: layers that share a gate have one each.
        state = {name: value.clone().contiguous() for name, value in self.state.items()}
        return Saved(about | self.standard._asdict(), state)

    @classmethod
    def from_saved(cls, saved: Saved, view: None, sizes: Sizes) -> Network:
        """The network that was saved."""
        check_choice("model", model := saved.value("model", str), SPACES)
        options = saved.value("options", dict)
        if any(
            type(one) is int and one > _MOST for one in checked_options(model, options).values()
        ):
            raise UsageError(f"the options of {model} describe a network that is too large")
        channels = (_width(model, sizes), sizes.outputs, sizes.nodes)
        try:
            with torch.device("meta"):  # shapes alone: nothing is allocated
                network = build(model, *channels[:2], num_nodes=sizes.nodes, **options)
        except (TypeError, ValueError, ArithmeticError, RuntimeError) as error:
            raise UsageError(f"the options of {model} do not make a network ({error})") from error
        check_state(network, saved.tensors)
        names = ("scale", "arc_scale", "spread", "mean")
        scale, arc_scale, spread, mean = numbers = [saved.value(name, float) for name in names]
        if not (min(numbers[:3]) > 0 and np.isfinite(numbers).all()):
            listed = ", ".join(map("{}={}".format, names, numbers))
            raise UsageError(f"a network has {listed}")
        return cls(model, options, channels, scale, saved.tensors, Scale(mean, spread), arc_scale)


def as_data(inputs: Inputs, model: str, scale: float, arc_scale: float) -> Data:
    """The graph in the form that the trainer takes.

    A model that uses the graph gets the logarithm of each node's degree as well as its columns.

    Args:
        inputs: The graph.
        model: The id of the model.
        scale: The number by which features are divided.
        arc_scale: The number by which weights of arcs are divided.
    """
    x = inputs.x / np.float32(scale)
    if sees_graph(model):
        x = side_by_side([x, inputs.neighbourhood.degrees()[0] / DEGREE])
    data = Data(
        x=x if sparse.issparse(x) else torch.from_numpy(np.ascontiguousarray(x)),
        y=torch.from_numpy(inputs.y),
        edge_index=torch.from_numpy(inputs.arcs),
        num_nodes=inputs.nodes,
    )
    if inputs.weights is not None:
        data.edge_weight = torch.from_numpy(inputs.weights / np.float32(arc_scale))
    if isinstance(inputs, Problem):
        masks = inputs.masks
        data.train_mask, data.val_mask = map(torch.from_numpy, (masks.train, masks.val))
        metric = inputs.objective.metric
        data.metric, data.positive = metric.id, metric.positive
    return data


def sees_graph(model: str) -> bool:
    """Whether a model uses arcs."""
    return model != "mlp"


def _width(model: str, sizes: Sizes) -> int:
    """How many features a network gets: the columns, and the degrees in each direction."""
    return sizes.features + sees_graph(model) * (3 if sizes.directed else 1)


@torch.no_grad()
def say(
    network: NodeModel,
    states: Sequence[Mapping[str, Tensor]],
    data: Data,
    standard: Scale,
    device: str,
    known: Sequence[NDArray[Any]],
    *,
    by_rows: bool,
) -> Iterator[Outputs]:
    """The outputs of a network for every node, with each of several sets of parameters.

    Args:
        network: The network.
        states: The sets of parameters.
        data: The graph.
        standard: Mean and standard deviation of the numbers that it learned to predict.
        device: The device to compute on.
        known: For each set of parameters, the targets that it may use.
        by_rows: Whether to compute some rows at a time, which networks with memory can.
    """
    home = find_device("cpu" if by_rows else device)
    inputs = None if by_rows else make_inputs(data, network, home)
    network.to(home).eval()
    for state, targets in zip(states, known, strict=True):
        network.load_state_dict(dict(state))
        _know(network, targets, standard)
        if inputs is None:
            assert isinstance(network, MemoryNetwork)
            yield said_by(_by_rows(network, data), standard)
        else:
            yield said_by(network(*inputs), standard)


def _by_rows(network: MemoryNetwork, data: Data) -> Tensor:
    """The logits, computed some rows at a time."""
    return block_logits(network, data.x, data.edge_index, data.get("edge_weight"))


def _know(network: NodeModel, targets: NDArray[Any], standard: Scale) -> None:
    """Put known targets into the memory of a network that takes them."""
    if isinstance(network, MemoryNetwork) and network.label_rate is not None:
        shown = torch.from_numpy(targets).to(network.classifier.weight.device)
        network.know(standard.standardise(shown) if shown.is_floating_point() else shown)


def said_by(output: Any, standard: Scale) -> Outputs:
    """Probabilities of the classes, or the number, from what a network returns."""
    logits = output[0] if isinstance(output, tuple) else output
    said = logits.softmax(-1) if logits.shape[-1] > 1 else standard.restore(logits)
    return said.cpu().numpy()
