"""A fitted classifier as a plain PyG module, for PyG's own explainers."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn

from memohop.networks.memory import MemoryNetwork, Normalised
from memohop.nn import MMP, Graph, GraphConv
from memohop.nn.graph import normalised
from memohop.pyg import GCNConv, LGConv

if TYPE_CHECKING:
    from memohop.own.estimator import MMPClassifier


class PyGClassifier(nn.Module):
    """The networks of a classifier, with PyG's convolutions instead of this library's.

    PyG's explainers put a mask on every arc of modules of PyG's class ``MessagePassing``, which
    ours are not. ``forward(x, edge_index)`` returns the logarithm of the mean probability of each
    class, from which ``MMPClassifier`` decides. The arcs must be those of :meth:`arcs`.
    """

    def __init__(self, networks: list[MemoryNetwork]) -> None:
        super().__init__()
        self.policies = networks[0].policies_in_force
        self.networks = nn.ModuleList(networks)
        for network in networks:
            for mmp in network.rounds:
                assert isinstance(mmp, MMP)
                if isinstance(mmp.conv, Normalised):
                    mmp.conv.conv = _PyGConv(mmp.conv.conv, self.policies["norm"])
                else:
                    mmp.conv = _PyGConv(mmp.conv, self.policies["norm"])
            if network.address is not None:
                network.address = _PyGAddress(network.address.weight)  # type: ignore[assignment]

    def arcs(self, edge_index: Tensor, num_nodes: int) -> Tensor:
        """The arcs of the messages, from sender to receiver, self-loops included."""
        graph = Graph(edge_index, num_nodes, weights=None, **{**self.policies, "norm": "none"})
        times = graph.weight.long()  # an arc that counts twice comes twice
        ends = torch.stack([graph.pattern.col, graph.pattern.row])
        return ends.repeat_interleave(times, dim=1)

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        """Logarithms of probabilities, ``[nodes, classes]``."""
        found = [network(x, edge_index).logits.softmax(-1) for network in self.networks]
        return torch.stack(found).mean(0).log()


class _PyGConv(nn.Module):
    """The same convolution, with PyG's message passing."""

    def __init__(self, conv: object, norm: str) -> None:
        super().__init__()
        assert isinstance(conv, GraphConv)
        assert isinstance(conv.linear, nn.Linear)
        width = conv.linear.out_features
        self.norm = norm
        self.conv = GCNConv(width, width, normalize=False, bias=conv.bias is not None)
        self.conv.lin.weight = conv.linear.weight
        if conv.bias is not None:
            self.conv.bias = conv.bias

    def forward(self, memory: Tensor, edge_index: Tensor) -> Tensor:
        sender, receiver = edge_index
        ones = torch.ones(len(sender), device=sender.device)

        def sums(end: Tensor) -> Tensor:
            return ones.new_zeros(len(memory)).index_add(0, end, ones)[end]

        weights = normalised(ones, self.norm, lambda: sums(receiver), lambda: sums(sender))
        return self.conv(memory, edge_index, weights)


class _PyGAddress(nn.Module):
    """The same rows of the adjacency matrix, with PyG's message passing."""

    def __init__(self, rows: nn.Parameter) -> None:
        super().__init__()
        self.weight, self.conv = rows, LGConv(normalize=False)

    def forward(self, edge_index: Tensor) -> Tensor:
        return self.conv(self.weight, edge_index)


def as_pyg(classifier: MMPClassifier) -> PyGClassifier:
    """The classifier as a module for ``torch_geometric.explain.Explainer``.

    Example:
        >>> module = as_pyg(classifier)  # doctest: +SKIP
        >>> graph = classifier.own_graph()  # doctest: +SKIP
        >>> arcs = module.arcs(graph.edge_index, graph.num_nodes)  # doctest: +SKIP
        >>> explainer = Explainer(  # doctest: +SKIP
        ...     module, GNNExplainer(epochs=100), explanation_type="model",
        ...     edge_mask_type="object", model_config=dict(
        ...         mode="multiclass_classification", task_level="node", return_type="log_probs"))
        >>> explainer(graph.x, arcs, index=7).edge_mask  # doctest: +SKIP
    """
    # The whole module in evaluation mode: an explainer restores the mode that it found.
    return PyGClassifier(classifier.model_.networks()).eval()
