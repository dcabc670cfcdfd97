"""What every model of this library is."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from memohop.errors import UsageError, check_choice
from memohop.nn.features import SparseFeatures
from memohop.nn.graph import POLICIES, Graph
from memohop.pyg import Data

Features = Tensor | SparseFeatures


class NodeModel(nn.Module, ABC):
    """A plain single network from features and a graph to one row of logits per node.

    It knows nothing of populations, splits or seeds; labels that it may use are given to it.
    ``forward(x, graph)`` returns the logits, or the pair (logits, penalty) where the method has a
    regulariser; ``graph`` is whatever :meth:`prepare` made of the arcs. Dropout goes through
    :class:`memohop.nn.Dropout`, the first layer through :class:`memohop.nn.FeatureLinear`: that is
    all that a population needs.
    """

    penalty_is_summed = False
    """Whether the penalty belongs to a summed cross-entropy rather than to a mean one."""

    penalised = True
    """The trainer sets this to False where lambda is 0 throughout: no penalty is computed."""

    undecayed: tuple[str, ...] = ()
    """Names of parameters that weight decay never touches, or prefixes of them."""

    per_node: tuple[str, ...] = ()
    """Names of parameters with a row for each node.

    A model that has some takes ``num_nodes``, and knows no other graph than the one it was
    built for.
    """

    label_rate: float | None = None
    """The share of the training labels that a network is given in a training step.

    None for a network that takes no labels. One that does keeps those it is given in a buffer
    ``known``, ``[N, out_channels]``, which is not part of its state: the trainer fills it from the
    training nodes of each member, and takes the loss on those that are left out.
    """

    added_options: ClassVar[Mapping[str, Any]] = {}
    """Options that came after published results, each with the value that means "as before".

    With these values they are no part of a run's digest.
    """

    looks_at_graph = True
    """Whether arcs play any part. A model for which they do not is trained once for all noise."""

    policies: ClassVar[Mapping[str, str]] = {}
    """What the model makes of the arcs unless told otherwise: options of :class:`Graph`."""

    @abstractmethod
    def prepare(self, edge_index: Tensor, num_nodes: int) -> Any:
        """What ``forward`` takes as its graph; made once and reused in every step."""

    def prepare_data(self, data: Data, device: torch.device | str) -> Any:
        """The same from a whole ``Data``, for models that need more of it than its arcs."""
        return self.prepare(data.edge_index.to(device), data.num_nodes)


class GraphModel(NodeModel):
    """A model on one :class:`~memohop.Graph`, whose policies are options of the model.

    Args:
        **policies: ``direction``, ``self_loops`` and ``norm``, see :class:`memohop.Graph`, where
            they differ from the class's own :attr:`policies`.
    """

    policies: ClassVar[Mapping[str, str]] = {
        "direction": "undirected",
        "self_loops": "add",
        "norm": "symmetric",
    }

    def __init__(self, **policies: str) -> None:
        super().__init__()
        for name in policies:
            if name not in self.policies:
                raise UsageError(
                    f"{type(self).__name__} has no option {name!r}; "
                    f"of the graph it takes {', '.join(self.policies)}"
                )
        self.policies_in_force = {**self.policies, **policies}
        for name, value in self.policies_in_force.items():
            check_choice(name, value, POLICIES[name])

    def prepare(self, edge_index: Tensor, num_nodes: int) -> Graph:
        """The graph under this model's policies."""
        return Graph(edge_index, num_nodes, **self.policies_in_force)
