"""The data, as a population takes them."""

from __future__ import annotations

import copy
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

from memohop.data.check import as_columns
from memohop.data.sparse_features import as_csr, is_sparse, stored_values
from memohop.networks import NodeModel
from memohop.nn import SparseFeatures
from memohop.training.device import find_device
from memohop.training.objective import Objective, objective_of

if TYPE_CHECKING:
    from memohop.pyg import Data
    from memohop.training.job import Job

_SPARSE_BELOW = 0.2  # the density of features under which stored values are faster


class Peers:
    """Other processes that hold parts of the graph; here there are none, and all nodes are here.

    Outputs of the labelled nodes are collected in each process: loss, scores and choices are then
    computed in each of them alike.
    """

    def collect(self, outputs: Tensor) -> Tensor:
        """From rows of the nodes that are here to those of all labelled nodes, ``[..., N, C]``."""
        return outputs

    def spread(self, values: Tensor) -> Tensor:
        """The way back, without derivatives; nodes that are not labelled have zeros."""
        return values

    def total(self, gradient: Tensor) -> Tensor:
        """The sum of a gradient over all processes."""
        return gradient


@dataclass(frozen=True)
class Task:
    """The data of a population, on its device; of a graph in parts, targets of labelled nodes."""

    inputs: tuple[Any, Any]  # the arguments of the module: features and graph
    y: Tensor  # class numbers, or numbers to predict, [N]
    masks: Tensor  # [splits, 3, N], 1 for the nodes of train, validation and test
    objective: Objective
    peers: Peers = field(default_factory=Peers)  # who holds the other parts of the graph


def in_default_type(data: Data) -> Data:
    """The data with features of PyTorch's default type; sparse ones become a CSR tensor."""
    x, dtype = data.x, torch.get_default_dtype()
    if is_sparse(x) and len(x.shape) == 2 and not stored_values(x).is_complex():
        x = as_csr(x, dtype)
    elif isinstance(x, Tensor) and x.is_floating_point():
        x = x.to(dtype)
    if x is data.x:  # also if the check will refuse it
        return data
    data = copy.copy(data)
    data.x = x
    return data


def make_inputs(
    data: Data, network: nn.Module, device: torch.device, features: str = "auto"
) -> tuple[Any, Any]:
    """Features and graph in the form that the network takes, on the device."""
    data = in_default_type(data)
    sparse = are_stored_sparse(data.x, features)
    if isinstance(network, NodeModel):
        graph = network.prepare_data(data, device)
    else:
        graph, sparse = data.edge_index.to(device), False
    x = data.x.to(device)
    return SparseFeatures(x) if sparse else x.to_dense(), graph


def make_task(job: Job, network: nn.Module) -> Task:
    """The data in the form that a population takes, on the job's device."""
    data, device = job.data, find_device(job.device)
    objective = objective_of(data)
    features, graph = make_inputs(data, network, device, job.features)
    if job.states is not None and isinstance(features, Tensor):
        features = features.to(torch.bfloat16)
    y, masks = objective.targets(data.y).to(device), make_masks(data).to(device)
    return Task((features, graph), y, masks, objective)


def make_masks(data: Data) -> Tensor:
    """The masks ``[splits, 3, N]``."""
    return torch.stack(as_columns(data)).permute(2, 0, 1).to(torch.get_default_dtype())


def are_stored_sparse(x: Any, features: str, density: float | None = None) -> bool:
    """Whether only the values that are not 0 are stored, as asked for or by density."""
    if features != "auto" or is_sparse(x):
        return features != "dense"
    return (float((x != 0).float().mean()) if density is None else density) < _SPARSE_BELOW
