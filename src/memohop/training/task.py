"""The data and the network builder, as a population takes them."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from memohop.data.check import as_columns
from memohop.errors import UsageError
from memohop.networks import NodeModel
from memohop.networks import build as build_model
from memohop.nn import SparseFeatures
from memohop.pyg import Data
from memohop.training.objective import Classification, objective_of

_SPARSE_BELOW = 0.2  # density of features under which stored values are faster


@dataclass(frozen=True)
class Task:
    """The data of a population, on its device.

    Attributes:
        inputs: the arguments of the module: features and graph.
        y: labels ``[N]``.
        masks: ``[splits, 3, N]``, 1 for the nodes of train, validation and test.
        objective: loss and score.
    """

    inputs: tuple[Any, Any]
    y: Tensor
    masks: Tensor
    objective: Classification


def make_builder(
    model: str | Callable[[], nn.Module], data: Data, options: dict[str, Any]
) -> Callable[[], nn.Module]:
    """A function that makes one network for this data."""
    if not isinstance(model, str):
        if options:
            raise UsageError("options are for model ids; let the function set its own")
        return model
    outputs = objective_of(data).outputs(data.y)
    channels, nodes = data.x.shape[1], data.num_nodes
    return lambda: build_model(model, channels, outputs, num_nodes=nodes, **options)


def in_default_type(data: Data, features: str = "auto") -> tuple[Data, str]:
    """The data with dense features of PyTorch's default type, and the option ``features``.

    Features that come as a sparse tensor turn ``"auto"`` into ``"sparse"``.
    """
    x = data.x
    if not isinstance(x, Tensor) or not (x.is_floating_point() or x.layout != torch.strided):
        return data, features  # the check will refuse it
    if x.dtype == torch.get_default_dtype() and x.layout == torch.strided:
        return data, features
    if x.layout != torch.strided and features == "auto":
        features = "sparse"
    data = copy.copy(data)
    data.x = x.to_dense().to(torch.get_default_dtype())
    return data, features


def make_task(data: Data, network: nn.Module, device: torch.device, features: str) -> Task:
    """The data in the form that the network takes, on the device."""
    if features not in ("auto", "sparse", "dense"):
        raise UsageError(f"features must be auto, sparse or dense, not {features!r}")
    objective = objective_of(data)
    x: Tensor | SparseFeatures = data.x.to(device)
    if not isinstance(network, NodeModel):
        graph = data.edge_index.to(device)
    else:
        graph = network.prepare_data(data, device)
        density = float((data.x != 0).float().mean())
        if features == "sparse" or (features == "auto" and density < _SPARSE_BELOW):
            x = SparseFeatures(data.x.to(device))
    masks = torch.stack(as_columns(data)).permute(2, 0, 1).to(device, torch.get_default_dtype())
    return Task((x, graph), objective.targets(data.y).to(device), masks, objective)
