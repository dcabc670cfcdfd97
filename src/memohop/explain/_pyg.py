"""A fitted classifier as a plain PyG module, for PyG's own explainers."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn

from memohop.data.adjacency import normalised
from memohop.errors import UsageError
from memohop.explain.node import has_memory, memory_networks
from memohop.networks.memory import MemoryNetwork, Normalised
from memohop.nn import MMP, Graph, GraphConv
from memohop.pyg import Data, LGConv
from memohop.training.task import make_inputs

if TYPE_CHECKING:
    from memohop.fit import GraphClassifier


class PyGClassifier(nn.Module):
    """Networks with memory, with PyG's convolutions instead of this library's.

    PyG's explainers put a mask on every arc of modules of PyG's class ``MessagePassing``, which
    ours are not. ``forward(x, edge_index)`` returns the logarithm of the mean probability of each
    class.

    Args:
        networks: Networks with the same options.
        data: The graph as they take it.

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
        self.arcs = ends.repeat_interleave(times, dim=1)
        self.x = make_inputs(data, networks[0], torch.device("cpu"), "dense")[0]
        self.networks = nn.ModuleList(networks)
        for network in networks:
            for mmp in network.rounds:
                assert isinstance(mmp, MMP)
                if isinstance(mmp.conv, Normalised):
                    mmp.conv.conv = _PyGConv(mmp.conv.conv, policies["norm"])
                else:
                    mmp.conv = _PyGConv(mmp.conv, policies["norm"])
            if network.address is not None:
                network.address = _PyGAddress(network.address.weight)  # type: ignore[assignment]

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        """Logarithms of probabilities, ``[nodes, classes]``."""
        shares = [network(x, edge_index).logits.softmax(-1) for network in self.networks]
        return torch.stack(shares).mean(0).log()


class _PyGConv(nn.Module):
    """The same convolution, with PyG's message passing."""

    def __init__(self, conv: object, norm: str) -> None:
        super().__init__()
        assert isinstance(conv, GraphConv)
        self.linear, self.bias, self.norm = conv.linear, conv.bias, norm
        self.collect = LGConv(normalize=False)

    def forward(self, memory: Tensor, edge_index: Tensor) -> Tensor:
        sender, receiver = edge_index
        ones = torch.ones(len(sender), device=sender.device)

        def sums(end: Tensor) -> Tensor:
            return ones.new_zeros(len(memory)).index_add(0, end, ones)[end]

        weights = normalised(ones, self.norm, lambda: sums(receiver), lambda: sums(sender))
        message = self.collect(self.linear(memory), edge_index, weights)
        return message if self.bias is None else message + self.bias


class _PyGAddress(nn.Module):
    """The same rows of the adjacency matrix, with PyG's message passing."""

    def __init__(self, rows: nn.Parameter) -> None:
        super().__init__()
        self.weight, self.conv = rows, LGConv(normalize=False)

    def forward(self, edge_index: Tensor) -> Tensor:
        return self.conv(self.weight, edge_index)


def as_pyg(classifier: GraphClassifier) -> PyGClassifier:
    """The networks with memory of a fitted classifier, for ``torch_geometric.explain.Explainer``.

    If it kept several settings, these are the networks of the one with the largest weight.

    Example:
        >>> module = as_pyg(classifier)  # doctest: +SKIP
        >>> explainer = Explainer(  # doctest: +SKIP
        ...     module, GNNExplainer(epochs=100), explanation_type="model",
        ...     edge_mask_type="object", model_config=dict(
        ...         mode="multiclass_classification", task_level="node", return_type="log_probs"))
        >>> explainer(module.x, module.arcs, index=7).edge_mask  # doctest: +SKIP
    """
    graph = classifier.own_graph()
    memory = filter(has_memory, classifier.model_.components)
    heaviest = max(memory, key=lambda component: component.weight, default=None)
    if heaviest is None:
        raise UsageError("the classifier kept no network with memory; use MMPClassifier")
    # The whole module in evaluation mode: an explainer restores the mode that it found.
    return PyGClassifier(*memory_networks(heaviest, graph)).eval()
