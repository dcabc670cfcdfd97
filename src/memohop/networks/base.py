"""What every model of this library is."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

from torch import Tensor, nn

from memohop.nn.features import SparseFeatures
from memohop.nn.graph import Graph

Features = Tensor | SparseFeatures


class NodeModel(nn.Module, ABC):
    """A plain single network from features and a graph to one row of logits per node.

    It knows nothing of populations, splits or seeds. ``forward(x, graph)`` returns the logits,
    or the pair (logits, penalty) where the method has a regulariser; ``graph`` is whatever
    :meth:`prepare` made of the arcs. Dropout goes through :class:`memohop.nn.Dropout`, the
    first layer through :class:`memohop.nn.FeatureLinear`: that is all that a population needs.
    """

    penalty_is_summed = False
    """Whether the penalty belongs to a summed cross-entropy rather than to a mean one."""

    penalised = True
    """The trainer sets this to False where lambda is 0 throughout: no penalty is computed."""

    undecayed: tuple[str, ...] = ()
    """Names of parameters that weight decay never touches, or prefixes of them."""

    @abstractmethod
    def prepare(self, edge_index: Tensor, num_nodes: int) -> Any:
        """What ``forward`` takes as its graph; made once and reused in every step."""


class GraphModel(NodeModel):
    """A model on one :class:`~memohop.Graph`, whose policies are options of the model.

    Args:
        direction: ``"out"``, ``"in"``, ``"both"`` or ``"undirected"``.
        self_loops: ``"keep"``, ``"add"`` or ``"remove"``.
        norm: ``"row"``, ``"symmetric"`` or ``"none"``.
    """

    def __init__(self, *, direction: str, self_loops: str, norm: str) -> None:
        super().__init__()
        self.direction, self.self_loops, self.norm = direction, self_loops, norm

    def prepare(self, edge_index: Tensor, num_nodes: int) -> Graph:
        """The graph under this model's policies."""
        return Graph(
            edge_index,
            num_nodes,
            direction=self.direction,
            self_loops=self.self_loops,
            norm=self.norm,
        )
