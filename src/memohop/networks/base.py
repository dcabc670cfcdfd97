"""What all models are made of: their base classes, and the convolutions that they stack."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from memohop.data.arcs import POLICIES
from memohop.errors import UsageError, check_choice
from memohop.nn import (
    ArcWeightConv,
    DirectedConv,
    DynamicGraphAttention,
    Graph,
    GraphAttention,
    GraphConv,
    InitialResidualConv,
    IsomorphismConv,
    RelationConv,
    SageConv,
    SparseFeatures,
)

if TYPE_CHECKING:
    from memohop.pyg import Data

Features = Tensor | SparseFeatures


class NodeModel(nn.Module, ABC):
    """A plain single network from features and a graph to one row of logits per node.

    It does not depend on populations, splits or seeds; labels that it may use are given to it.
    ``forward(x, graph)`` returns the logits, or the pair (logits, penalty) if the method has a
    regulariser; ``graph`` is the result of :meth:`prepare`. Dropout goes through
    :class:`memohop.nn.Dropout`, the first layer through :class:`memohop.nn.FeatureLinear`: a
    population needs no more.

    Most networks take these arguments; a class documents only its other ones:

    - ``in_channels``, ``out_channels``: number of features and of classes;
    - ``backbone``: the kind of convolution, a :class:`~memohop.networks.base.Backbone`;
    - ``hidden_channels``: width of the hidden layers;
    - ``num_layers``: number of layers or rounds, at least 1;
    - ``dropout``, ``input_dropout``: rates of dropout on hidden layers and on the features;
    - ``edge_dropout``: probability that an arc is dropped in a training step;
    - ``edges``: what networks with a backbone learn from attributes of arcs: ``"none"``,
      ``"weights"`` of the arcs (:class:`memohop.nn.ArcWeightConv`, and in ``gatv2`` a term of the
      score), or messages of ``"relations"`` (:class:`memohop.nn.RelationConv`);
    - ``**policies``: options of the graph, see :class:`GraphModel`.

    What a constructor takes as ``**common`` it hands on to its base class, whose options and
    defaults are then its own.

    Example:
        >>> import memohop
        >>> isinstance(memohop.build("mlp", 8, 3), memohop.networks.NodeModel)
        True
    """

    penalty_is_summed = False
    """Whether the penalty belongs to a summed cross-entropy rather than to a mean one."""

    penalised = True
    """Whether to compute the penalty; the trainer sets it to False if every lambda is 0."""

    recomputes: bool | None = None
    """Whether rounds are computed again in the backward pass; the trainer sets it to True if asked.

    None for a network that cannot do so.
    """

    undecayed: tuple[str, ...] = ()
    """Names, or prefixes of names, of parameters that are never decayed."""

    per_node: tuple[str, ...] = ()
    """Names of parameters with a row for each node.

    A model that has some takes ``num_nodes`` and works only on the graph it was built for.
    """

    label_rate: float | None = None
    """The share of the training labels that a network is given in a training step.

    None for a network that takes no labels. One that does keeps those it is given in a buffer
    ``known``, ``[N, out_channels]``, which is not part of its state: the trainer fills it from the
    training nodes of each member, and takes the loss on those that are left out.
    """

    edges: EdgeUse | None = None
    """What it learns from attributes of arcs, if it does; :func:`build` sets it."""

    added_options: ClassVar[Mapping[str, Any]] = {"edges": "none"}
    """Options that came after published results, each with the value that means "as before".

    With these values they are no part of a run's digest.
    """

    looks_at_graph = True
    """Whether the model uses the arcs. If not, it is trained once for all levels of noise."""

    policies: ClassVar[dict[str, str]] = {}
    """Default options of the :class:`Graph` that the model makes of the arcs."""

    @abstractmethod
    def prepare(self, edge_index: Tensor, num_nodes: int, weights: Tensor | None = None) -> Any:
        """The graph that ``forward`` takes; made once and reused in every step.

        Args:
            edge_index: int64 ``[2, arcs]``.
            num_nodes: number of nodes.
            weights: of the arcs, ``[arcs]``; see :class:`memohop.Graph`.
        """

    def prepare_data(self, data: Data, device: torch.device | str) -> Any:
        """The same from a whole ``Data``, with its ``edge_weight`` if it has one.

        A network that learns from attributes of arcs gets those of :func:`attributes_of`.
        """
        weights = data.edge_weight if "edge_weight" in data else None
        arcs = data.edge_index.to(device)
        graph = self.prepare(arcs, data.num_nodes, weights)
        if self.edges is None:
            return graph
        attributes, relations = attributes_of(data)
        return graph.with_attributes(arcs, attributes, relations=relations, weights=weights)


class GraphModel(NodeModel):
    """A model on one :class:`~memohop.Graph`.

    Args:
        **policies: ``direction``, ``self_loops`` and ``norm``, see :class:`memohop.Graph`; the
            defaults are the class's :attr:`policies`.
    """

    policies: ClassVar[dict[str, str]] = {
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

    def prepare(self, edge_index: Tensor, num_nodes: int, weights: Tensor | None = None) -> Graph:
        """The graph under this model's policies."""
        return Graph(edge_index, num_nodes, weights=weights, **self.policies_in_force)


class LayeredModel(GraphModel):
    """A model of layers or rounds of one width, with dropout on them and on the features."""

    def __init__(
        self,
        *,
        hidden_channels: int = 64,
        num_layers: int = 2,
        dropout: float = 0.5,
        input_dropout: float = 0.5,
        **policies: str,
    ) -> None:
        super().__init__(**policies)
        self.width, self.depth = hidden_channels, num_layers
        self.rate, self.input_rate = dropout, input_dropout


class EdgeUse(NamedTuple):
    """What a network learns from attributes of arcs, and how many of them there are."""

    edges: str  # "weights" or "relations"
    attributes: int
    relations: int


def attributes_of(data: Data) -> tuple[Tensor, list[int]]:
    """The attributes of a graph's arcs, ``[arcs, attributes]``, and which of them are relations.

    They are its ``edge_attr``, of which ``relations`` has the numbers of those that are relations,
    and then one for each value of its ``edge_type``.
    """
    arcs = data.edge_index.shape[1]
    parts, relations = [torch.empty(arcs, 0)], list[int](data.get("relations", ()))
    if "edge_attr" in data:
        numbers = data.edge_attr if data.edge_attr.dim() == 2 else data.edge_attr[:, None]
        parts.append(numbers.to(parts[0]))
    if "edge_type" in data:
        first, kinds = parts[-1].shape[1], int(data.edge_type.max()) + 1 if arcs else 0
        parts.append((data.edge_type[:, None] == torch.arange(kinds)).to(parts[0]))
        relations += range(first, first + kinds)
    return torch.cat(parts, dim=1), relations


@dataclass(frozen=True)
class Backbone:
    """A kind of convolution: how to make its layers, and the activation after them.

    Attributes:
        layer: from ``(in_channels, out_channels, *, features, input_dropout)`` to a module.
        activation: the function between two layers.
        options: keyword arguments of a layer that a user may set.
        last: arguments in which the layer of the logits differs from the others.
        policies: the graph that the layer needs, if it differs from the network's default.
        edges: what its layers may learn from attributes of arcs: ``"weights"`` if they take a
            product with the graph, or score arcs; ``"relations"``, any.
        scores_arcs: whether the layer takes ``arc_attributes`` to learn weights by itself.
        use: what they learn from them.
        initial: whether a layer takes its number, counted from 1, when it is made, and the
            network's first hidden state when it is called. Such layers have one width, and do
            not take features.
    """

    layer: Callable[..., nn.Module]
    activation: Callable[[Tensor], Tensor] = F.relu
    options: tuple[str, ...] = ("bias",)
    last: Mapping[str, Any] = field(default_factory=dict)
    policies: Mapping[str, str] = field(default_factory=dict)
    initial: bool = False
    edges: tuple[str, ...] = ("weights", "relations")
    scores_arcs: bool = False
    use: EdgeUse | None = None

    def having(self, **options: Any) -> Backbone:
        """The same kind with some options of its layers set."""
        return replace(self, layer=partial(self.layer, **options))

    def from_features(
        self, widths: Sequence[int], *, input_dropout: float, logits: bool = True
    ) -> list[nn.Module]:
        """Layers from the features, of width ``widths[0]``, to logits or a hidden state."""
        layers = []
        for number, (width, after) in enumerate(pairwise(widths), start=1):
            first, last = number == 1, number == len(widths) - 1
            arguments = {"features": True, "input_dropout": input_dropout} if first else {}
            special = self.last if last and logits else {}
            layers.append(self._with_edges(width, after, arguments, special))
        return layers

    def between(self, channels: int, num_layers: int) -> list[nn.Module]:
        """Layers of one width, for a network that has other layers at both ends."""
        numbers = ({"place": n} if self.initial else {} for n in range(1, num_layers + 1))
        return [self._with_edges(channels, channels, {}, number) for number in numbers]

    def _with_edges(
        self, width: int, after: int, of_input: Mapping[str, Any], others: Mapping[str, Any]
    ) -> nn.Module:
        """A layer that learns from attributes of arcs, if it is to."""
        use = self.use
        if use is not None and use.edges == "weights" and self.scores_arcs:
            others = {**others, "arc_attributes": use.attributes}
        layer = self.layer(width, after, **of_input, **others)
        if use is None or "arc_attributes" in others:
            return layer
        if use.edges == "weights":
            return ArcWeightConv(layer, use.attributes)
        return RelationConv(layer, width, after, relations=use.relations, **of_input)

    def beside(self, initial: Tensor) -> tuple[Tensor, ...]:
        """The arguments of the layers beside hidden state and graph."""
        return (initial,) if self.initial else ()


_ATTENTION = ("bias", "heads", "value_dropout", "attention_dropout", "negative_slope")
_ONE_HEAD = {"heads": 1, "concat": False}

GCN = Backbone(GraphConv)
GAT = Backbone(GraphAttention, F.elu, _ATTENTION, _ONE_HEAD, edges=("relations",))
GATV2 = Backbone(DynamicGraphAttention, F.elu, _ATTENTION, _ONE_HEAD, scores_arcs=True)
SAGE = Backbone(SageConv, policies={"self_loops": "remove", "norm": "row"})
GIN = Backbone(IsomorphismConv, policies={"self_loops": "remove", "norm": "none"})
DIR_GCN = Backbone(
    DirectedConv,
    options=("bias", "alpha"),
    policies={"direction": "out", "self_loops": "remove", "norm": "symmetric"},
    edges=("relations",),
)
GCNII = Backbone(InitialResidualConv, options=("alpha", "theta", "shared_weights"), initial=True)
