"""How long a model-epoch takes, here and in stock PyG, in one run.

A model-epoch is one epoch of one model: a training step and an evaluation. Stock PyG trains one
model at a time; the population trains many in one step, and its time is divided by their number.
The two take turns, so that both meet the same load of the machine, and medians are compared.

Stock PyG stands for the same networks written with its layers: dense features,
``torch.nn.Dropout``'s masks, ``GCNConv(cached=True)``, ``GATConv`` or, for H2GCN's rounds without
weights, ``LGConv`` on weights that are computed once, and ``torch.optim.Adam``, one model at a
time. All of this is for comparison alone.
"""

from __future__ import annotations

import statistics
import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from memohop.errors import unknown_name
from memohop.networks.h2gcn import H2GCN
from memohop.nn import Graph, fixed_product
from memohop.pyg import Data, GATConv, GCNConv, LGConv, Sequential, gcn_norm
from memohop.training import Job, Member
from memohop.training.device import captured, is_gpu, peak_bytes
from memohop.training.population import Population

_WIDTH = 64
_WARM_UP = 5  # epochs, the capture of a CUDA graph among them

OPTIONS: dict[str, dict[str, Any]] = {
    "gcn": {},
    "gat": {},
    "gcn+mmp": {"self_loops": "add", "norm": "symmetric"},
    "gat+mmp": {"self_loops": "add"},
    "h2gcn": {},
}
"""For each model that has a stock twin, the options under which the two are the same network."""


@dataclass(frozen=True)
class Speed:
    """One line of the speed table, with milliseconds per model-epoch and their ratio.

    Attributes:
        peak_mb: The most megabytes that the population held at once.
        floor_share: The share of the population's step that its graph products alone take (two
            forward, two backward, two for evaluation); None for attention, which has none.
    """

    dataset: str
    model: str
    device: str
    members: int
    stock_ms: float
    ms: float
    ratio: float
    peak_mb: float
    floor_share: float | None


def measure(
    data: Data, model: str, *, members: int, device: torch.device, epochs: int = 10
) -> Speed:
    """Time one model on one dataset, both ways."""
    options = {**twin_options(model), "hidden_channels": _WIDTH}
    splits = data.train_mask.shape[1]
    runs = [Member(split=i % splits, seed=i) for i in range(members)]
    job = Job(data=data, model=model, members=runs, options=options, epochs=1000, device=device)
    population = Population.of(job)
    if is_gpu(device):
        torch.cuda.reset_peak_memory_stats(device)
        population.step()
        peak: float = torch.cuda.max_memory_allocated(device)
    else:
        peak = peak_bytes(population.step)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        contenders = [stock_epoch(model, data, device), captured(population.step, device)]
        stock, ours = _take_turns(contenders, device, epochs)
    graph, floor = population.task.inputs[1], None
    if isinstance(graph, Graph) and "attention_dropout" not in str(population.model):
        hidden = torch.randn(members, graph.num_nodes, _WIDTH, device=device)
        (product,) = _take_turns([lambda: fixed_product(hidden, graph.matrix)], device, 10)
        floor = 6 * product / ours
    return Speed(
        dataset=data.name,
        model=model,
        device=device.type,
        members=members,
        stock_ms=stock,
        ms=ours / members,
        ratio=stock / (ours / members),
        peak_mb=peak / 1e6,
        floor_share=floor,
    )


def _take_turns(
    contenders: Sequence[Callable[[], object]], device: torch.device, epochs: int
) -> list[float]:
    """The median milliseconds of one call of each."""
    taken: list[list[float]] = [[] for _ in contenders]
    for turn in range(_WARM_UP + epochs):
        for contender, times in zip(contenders, taken, strict=True):
            _wait(device)
            begin = time.perf_counter()
            contender()
            _wait(device)
            if turn >= _WARM_UP:
                times.append((time.perf_counter() - begin) * 1e3)
    return [statistics.median(times) for times in taken]


def _wait(device: torch.device) -> None:
    if is_gpu(device):
        torch.cuda.synchronize(device)


class StockMemory(nn.Module):
    """Two rounds of memory-based message passing with one shared gate."""

    def __init__(self, in_channels: int, out_channels: int, convs: list[nn.Module]) -> None:
        super().__init__()
        self.input = nn.Linear(in_channels, 64)
        self.convs = nn.ModuleList(convs)
        self.gate = nn.Linear(128, 3)
        self.classifier = nn.Linear(64, out_channels)

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        """Logits."""
        hidden = memory = F.relu(self.input(F.dropout(x, 0.5, self.training)))
        for conv in self.convs:
            message = conv(memory, edge_index)
            both = F.dropout(torch.cat([hidden, message], dim=-1), 0.5, self.training)
            keep, absorb, send = self.gate(both).sigmoid().chunk(3, dim=-1)
            hidden, memory = keep * hidden + absorb * message, send * message
        return self.classifier(hidden)


class StockH2GCN(nn.Module):
    """One round over neighbours and one over neighbours of neighbours, dropout .5 at the end."""

    def __init__(self, in_channels: int, out_channels: int) -> None:
        super().__init__()
        self.input = nn.Linear(in_channels, 64, bias=False)
        self.conv = LGConv(normalize=False)
        self.classifier = nn.Linear(3 * 64, out_channels, bias=False)
        self.hops: list[tuple[Tensor, Tensor]] = []

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        """Logits."""
        if not self.hops:
            far = H2GCN(1, 1).prepare(edge_index, len(x)).far.pattern  # two steps away, not one
            arcs = edge_index, torch.stack([far.row, far.col]).long()
            self.hops = [gcn_norm(hop, None, len(x), add_self_loops=False) for hop in arcs]
        hidden = F.relu(self.input(x))
        rounds = [hidden, *(self.conv(hidden, *hop) for hop in self.hops)]
        return self.classifier(F.dropout(torch.cat(rounds, dim=-1), 0.5, self.training))


def build_stock(name: str, in_channels: int, out_channels: int) -> nn.Module:
    """The stock twin of a model."""
    twin_options(name)
    if name == "h2gcn":
        return StockH2GCN(in_channels, out_channels)
    if name.endswith("+mmp"):
        convs = [
            GCNConv(64, 64, cached=True) if name == "gcn+mmp" else GATConv(64, 8, heads=8)
            for _ in range(2)
        ]
        return StockMemory(in_channels, out_channels, convs)
    if name == "gcn":
        convs = [GCNConv(*ends, cached=True) for ends in ((in_channels, 64), (64, out_channels))]
    else:
        convs = [GATConv(in_channels, 8, heads=8), GATConv(64, out_channels)]
    stack = [
        (nn.Dropout(0.5), "x -> x"),
        (convs[0], "x, arcs -> x"),
        nn.ReLU() if name == "gcn" else nn.ELU(),
        nn.Dropout(0.5),
        (convs[1], "x, arcs -> x"),
    ]
    return Sequential("x, arcs", stack)


def twin_options(name: str) -> dict[str, Any]:
    """The options under which a model equals its stock twin."""
    if name not in OPTIONS:
        raise unknown_name("stock twin of a model", name, OPTIONS)
    return OPTIONS[name]


def undirected_arcs(data: Data) -> Tensor:
    """Each pair of neighbours once in each direction, as the twins read it."""
    both = torch.cat([data.edge_index, data.edge_index.flip(0)], dim=1)
    return both[:, both[0] != both[1]].unique(dim=1)


def stock_epoch(name: str, data: Data, device: torch.device) -> Callable[[], None]:
    """A function that runs one epoch: a training step and an evaluation of the three parts."""
    model = build_stock(name, data.x.shape[1], int(data.y.max()) + 1).to(device)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01, weight_decay=5e-4)
    x, y, arcs = data.x.to(device), data.y.to(device), undirected_arcs(data).to(device)
    parts = [data[f"{part}_mask"][:, 0].to(device) for part in ("train", "val", "test")]

    def epoch() -> None:
        model.train()
        optimizer.zero_grad()
        F.cross_entropy(model(x, arcs)[parts[0]], y[parts[0]]).backward()
        optimizer.step()
        model.eval()
        with torch.no_grad():
            correct = model(x, arcs).argmax(-1) == y
        for part in parts:
            correct[part].float().mean().item()

    return epoch
