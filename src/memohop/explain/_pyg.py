"""A fitted classifier as a plain PyG module, for PyG's own explainers."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import cycle
from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn

from memohop.data.arcs import normalised
from memohop.errors import UsageError
from memohop.explain.node import has_memory, memory_networks
from memohop.networks.memory import MemoryNetwork
from memohop.nn import Graph
from memohop.pyg import Data, LGConv
from memohop.training.task import make_inputs

if TYPE_CHECKING:
    from memohop.fit import GraphClassifier


class PyGClassifier(nn.Module):
    """Networks with memory, on a graph whose product is PyG's message passing.

    PyG's explainers put a mask on every arc of modules of PyG's class ``MessagePassing``, which
    ours are not. ``forward(x, edge_index)`` returns the logarithm of the mean probability of each
    class. The networks have the same options, and ``data`` is the graph as they take it.

    Attributes:
        x: Its features.
        arcs: The arcs of the messages, from sender to receiver, self-loops included.
    """

    def __init__(self, networks: list[MemoryNetwork], data: Data) -> None:
        super().__init__()
        policies = networks[0].policies_in_force
        graph = Graph(data.edge_index, data.num_nodes, weights=None, **{**policies, "norm": "none"})
        times = graph.weight.long()  # an arc that counts twice comes twice
        ends = torch.stack([graph.pattern.col, graph.pattern.row]).long()
        self.arcs, self.norm = ends.repeat_interleave(times, dim=1), policies["norm"]
        self.x = make_inputs(data, networks[0], torch.device("cpu"), "dense")[0]
        self.networks = nn.ModuleList(networks)
        # Explainers count the rounds by these.
        self.collect = nn.ModuleList(LGConv(normalize=False) for _ in networks[0].rounds)

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        """Logarithms of probabilities, ``[nodes, classes]``."""
        graph = _PyGGraph(cycle(self.collect), edge_index, self.norm)
        shares = [network(x, graph).logits.softmax(-1) for network in self.networks]
        return torch.stack(shares).mean(0).log()


@dataclass(frozen=True)
class _PyGGraph:
    """What a network asks of its graph, with PyG's message passing."""

    collect: Iterator[nn.Module]  # of PyG; each product takes the next
    arcs: Tensor  # from sender to receiver
    norm: str

    @property
    def counts(self) -> _PyGGraph:
        """The graph before it is normalised."""
        return replace(self, norm="none")

    def propagate(self, hidden: Tensor, bias: Tensor | None = None) -> Tensor:
        """The sum that each node receives, and the bias."""
        sender, receiver = self.arcs
        ones = torch.ones(len(sender), device=sender.device)

        def sums(end: Tensor) -> Tensor:
            return ones.new_zeros(len(hidden)).index_add(0, end, ones)[end]

        weights = normalised(ones, self.norm, lambda: sums(receiver), lambda: sums(sender))
        message: Tensor = next(self.collect)(hidden, self.arcs, weights)
        return message if bias is None else message + bias


def as_pyg(classifier: GraphClassifier) -> PyGClassifier:
    """The networks with memory of a fitted classifier, for ``torch_geometric.explain.Explainer``.

    If it kept several settings, these are the networks of the one with the largest weight, among
    those that do not learn from attributes of arcs.

    Example:
        >>> module = as_pyg(classifier)  # doctest: +SKIP
        >>> explainer = Explainer(  # doctest: +SKIP
        ...     module, GNNExplainer(epochs=100), explanation_type="model",
        ...     edge_mask_type="object", model_config=dict(
        ...         mode="multiclass_classification", task_level="node", return_type="log_probs"))
        >>> explainer(module.x, module.arcs, index=7).edge_mask  # doctest: +SKIP
    """
    graph = classifier.own_graph()
    memory = list(filter(has_memory, classifier.model_.components))
    plain = [part for part in memory if part.setting.options.get("edges", "none") == "none"]
    heaviest = max(plain, key=lambda component: component.weight, default=None)
    if heaviest is None:
        lacking = "that takes all arcs alike, as PyG's explainers do" if memory else "with memory"
        raise UsageError(f"the classifier kept no network {lacking}; use MMPClassifier")
    # The whole module in evaluation mode: an explainer restores the mode that it found.
    return PyGClassifier(*memory_networks(heaviest, graph)).eval()
