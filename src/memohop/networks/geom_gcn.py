"""Neighbours by their relative position: ``geom-gcn``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from memohop.data.datasets.latent import EMBEDDINGS, LatentNeighbours, PublishedNeighbours, computed
from memohop.errors import UsageError, check_choice
from memohop.networks.base import Features, LayeredModel
from memohop.nn import (
    Dropout,
    FeatureLinear,
    FixedMatrix,
    Graph,
    Pattern,
    fixed_product,
    linear_map,
)

if TYPE_CHECKING:
    from memohop.pyg import Data

DIVISIONS = 9  # four quadrants in each of two spaces, and the node itself
_LATENT, _SELF = 4, 8


class Divisions:
    """The arcs of each division, between pairs (node, division) that receive and that send.

    Arcs are those of both spaces and the nodes themselves, normalised by the degrees in all. Most
    nodes have neighbours in only a few divisions, so most pairs do not receive. Those that do are
    numbered by division, then by node.

    Args:
        graph: the graph without self-loops.
        latent: the division of each of its arcs, and the arcs of the latent space.
    """

    def __init__(self, graph: Graph, latent: LatentNeighbours) -> None:
        count, target, source, division = graph.num_nodes, *_divided(graph, latent)
        degree = torch.bincount(target, minlength=count).to(torch.get_default_dtype())
        values = (degree[target] * degree[source]).rsqrt()
        receivers, row = torch.unique(division * count + target, return_inverse=True)
        self.sizes = torch.bincount(receivers // count, minlength=DIVISIONS).tolist()
        order = torch.argsort(row * count + source)
        sender = (source * DIVISIONS + division)[order]
        pattern = Pattern(row[order], sender, (len(receivers), DIVISIONS * count))
        self._from_senders = FixedMatrix(pattern, values[order])
        node, order = torch.sort(receivers % count, stable=True)
        pattern = Pattern(node, order, (count, len(receivers)))
        self._sum = FixedMatrix(pattern, values.new_ones(len(receivers)))

    def collect(self, maps: Tensor) -> Tensor:
        """The sum that each receiving pair collects: ``[receivers, D]``.

        From the maps of all nodes side by side, ``[N, 9 * D]``; most are not used.
        """
        sent = maps.unflatten(-1, (DIVISIONS, -1)).flatten(0, 1)
        return fixed_product(sent[None], self._from_senders).squeeze(0)

    def sum(self, received: Tensor) -> Tensor:
        """For each node the sum over its receiving pairs: ``[N, D]``."""
        return fixed_product(received[None], self._sum).squeeze(0)


class DivisionConv(nn.Module):
    r"""A separate linear map for each division of the neighbours, without activation.

    .. math::
        \mathbf{e}_{vr} = \frac{1}{\sqrt{d_v}} \sum_{u \in N_r(v)} \frac{1}{\sqrt{d_u}}
            \mathbf{W}_r\mathbf{h}_u

    for the divisions :math:`r` in which :math:`v` has neighbours; :math:`d_v` is the number of
    all its neighbours. The nine maps are side by side, of the node features, or of the output of
    another such layer: its divisions side by side, with zeros for those without neighbours.
    """

    def __init__(self, linear: nn.Linear | FeatureLinear) -> None:
        super().__init__()
        self.linear = linear

    def forward(self, hidden: Features, divisions: Divisions) -> Tensor:
        """From ``[N, in_channels]`` or ``[receivers, in_channels]`` to ``[receivers, .]``."""
        if not isinstance(self.linear, FeatureLinear):
            assert isinstance(hidden, Tensor)
            return divisions.collect(divisions.sum(self._map(hidden, divisions.sizes)))
        return divisions.collect(self.linear(hidden))

    def _map(self, hidden: Tensor, sizes: list[int]) -> Tensor:
        """The maps from each pair's division to all nine: ``[receivers, 9 * out_channels]``."""
        weights = self.linear.weight.split(hidden.shape[-1], dim=1)
        parts = zip(hidden.split(sizes), weights, strict=True)
        return torch.cat([F.linear(part, weight) for part, weight in parts if len(part)])


class GeomGCN(LayeredModel):
    r"""Neighbours in the graph and in a latent space, divided by their relative position.

    From `"Geom-GCN: Geometric Graph Convolutional Networks" <https://arxiv.org/abs/2002.05287>`_
    (ICLR 2020):

    .. math::
        \mathbf{h}^l_v = \mathrm{ReLU}\Big(\big\Vert_r \frac{1}{\sqrt{d_v}}
            \sum_{u \in N_r(v)} \frac{1}{\sqrt{d_u}}
            \mathbf{W}^l_r\,\mathrm{drop}(\mathbf{h}^{l-1}_u)\Big)

    and in the last layer the mean over :math:`r` instead of the nine side by side, without the
    rectifier. The divisions :math:`r` are the four quadrants in which a neighbour in the graph
    may lie, the same for a neighbour in the latent space, and the node itself. A neighbour in
    both spaces counts as one in the latent space. There are no biases.

    This is the authors' network. Latent neighbours that are not published are computed, see
    :func:`memohop.data.datasets.latent.computed`: computed ones are mutual, while most arcs of
    the published lists go one way. PyTorch Geometric has no such operator.

    The network is equivariant to permutations of the nodes together with their latent
    neighbours. Computed coordinates are not: they are found up to mirroring, and those of
    Poincaré start at random.

    Args:
        hidden_channels: width of each division; a hidden layer is nine times as wide.
        embedding: ``"isomap"`` or ``"poincare"`` to compute the latent neighbours, or ``"auto"``
            for ``data.latent``, which :func:`memohop.load` fills with the published ones, and
            Isomap if there is none.
        **common: of the policies ``direction`` of the neighbours in the graph; each counts once.
    """

    policies: ClassVar[dict[str, str]] = {"direction": "undirected"}

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        *,
        hidden_channels: int = 32,
        embedding: str = "auto",
        **common: Any,
    ) -> None:
        super().__init__(hidden_channels=hidden_channels, **common)
        check_choice("embedding", embedding, ("auto", *EMBEDDINGS))
        self.embedding = embedding
        self.dropout = Dropout(self.rate)
        self.convs = nn.ModuleList()
        before = [in_channels, *[DIVISIONS * hidden_channels] * (self.depth - 1)]
        after = [*[hidden_channels] * (self.depth - 1), out_channels]
        for index, widths in enumerate(zip(before, after, strict=True)):
            linear = linear_map(
                *widths, features=index == 0, dropout=self.input_rate, parts=DIVISIONS
            )
            self.convs.append(DivisionConv(linear))

    def prepare_data(self, data: Data, device: torch.device | str) -> Divisions:
        """The divisions, with the latent neighbours of the data if ``embedding`` is ``"auto"``."""
        latent = data.latent if self.embedding == "auto" and "latent" in data else None
        if isinstance(latent, PublishedNeighbours):
            latent = latent.read()
        return self.prepare(data.edge_index.to(device), data.num_nodes, latent)

    def prepare(  # type: ignore[override]
        self, edge_index: Tensor, num_nodes: int, latent: LatentNeighbours | None = None
    ) -> Divisions:
        """The divisions of every node's neighbours, which all count alike.

        ``latent`` is computed unless given.
        """
        if latent is None:
            embedding = "isomap" if self.embedding == "auto" else self.embedding
            latent = computed(edge_index, num_nodes, embedding=embedding)
        policies = {**self.policies_in_force, "self_loops": "remove"}
        graph = Graph(edge_index, num_nodes, weights=None, **policies)
        return Divisions(graph, latent)

    def forward(self, x: Features, graph: Divisions) -> Tensor:
        """Logits ``[N, out_channels]``."""
        hidden = self.convs[0](x, graph)
        for conv in self.convs[1:]:
            hidden = conv(self.dropout(F.relu(hidden)), graph)
        return graph.sum(hidden) / DIVISIONS


def _divided(graph: Graph, latent: LatentNeighbours) -> tuple[Tensor, Tensor, Tensor]:
    """The receiving node, the sending node and the division of each arc, and of each node."""
    count, device = graph.num_nodes, graph.pattern.row.device
    source, target = latent.arcs.to(device)
    division = latent.division.to(device)
    arcs = target * count + source
    in_graph = graph.pattern.row.long() * count + graph.pattern.col
    unknown = ~torch.isin(in_graph, arcs)
    if unknown.any():
        to, start = divmod(int(in_graph[unknown][0]), count)
        raise UsageError(
            f"the latent neighbours have no arc {start} -> {to}, so they belong to another "
            "graph: leave them out, or give embedding='isomap' or 'poincare' to compute them"
        )
    wanted = (division >= _LATENT) | torch.isin(arcs, in_graph)
    node = torch.arange(count, device=device)
    division = torch.cat([division[wanted], torch.full_like(node, _SELF)])
    return torch.cat([target[wanted], node]), torch.cat([source[wanted], node]), division
