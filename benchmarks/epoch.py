"""One epoch of a single gcn+mmp on the CPU: Memohop beside the same network in stock PyG.

Both are two rounds of memory-based message passing, 64 wide, dropout .5 on features and gate,
one shared gate, Adam, a training step and an evaluation per epoch. Stock PyG means
``GCNConv(cached=True)``, a dense feature matrix, ``torch.nn.Linear`` and ``torch.optim.Adam``,
one model at a time. Epochs of the two alternate, so that both see the same machine.

    python benchmarks/epoch.py [--data FOLDER] [--datasets cora,squirrel] [--epochs 20]
"""

from __future__ import annotations

import argparse
import statistics
import time
import warnings
from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch_geometric.data import Data
from torch_geometric.nn import GCNConv

import memohop
from memohop.training.population import Population
from memohop.training.trainer import make_builder, make_task


class StockMMP(nn.Module):
    """gcn+mmp as one writes it with PyG's layers."""

    def __init__(self, in_channels: int, out_channels: int) -> None:
        super().__init__()
        self.input = nn.Linear(in_channels, 64)
        self.convs = nn.ModuleList(GCNConv(64, 64, cached=True) for _ in range(2))
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


def stock_epoch(data: Data, edge_index: Tensor) -> Callable[[], None]:
    """A function that runs one epoch of the stock network."""
    model = StockMMP(data.x.shape[1], int(data.y.max()) + 1)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01, weight_decay=5e-4)
    masks = [data[f"{part}_mask"][:, 0] for part in ("train", "val", "test")]

    def epoch() -> None:
        model.train()
        optimizer.zero_grad()
        F.cross_entropy(model(data.x, edge_index)[masks[0]], data.y[masks[0]]).backward()
        optimizer.step()
        model.eval()
        with torch.no_grad():
            correct = model(data.x, edge_index).argmax(-1) == data.y
        for mask in masks:
            correct[mask].float().mean().item()

    return epoch


def memohop_epoch(data: Data) -> Callable[[], None]:
    """A function that runs one epoch of the same network here."""
    options = {"self_loops": "add", "norm": "symmetric", "direction": "undirected"}
    build = make_builder("gcn+mmp", data, options)
    task = make_task(data, build(), torch.device("cpu"), features="auto")
    population = Population(
        task, build, [memohop.Member()], epochs=10_000, patience=None, keep_models=False
    )
    return population.step


def main() -> None:
    """Print both times and their ratio for each dataset."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", help="folder with the dataset files")
    parser.add_argument("--datasets", default="cora,squirrel")
    parser.add_argument("--epochs", type=int, default=20)
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    print(f"torch {torch.__version__}, {torch.get_num_threads()} threads, medians in ms per epoch")
    print(f"{'dataset':12} {'stock PyG':>10} {'Memohop':>10} {'ratio':>7}")
    for name in arguments.datasets.split(","):
        data = memohop.load(name, root=arguments.data, features="row")
        arcs = torch.cat([data.edge_index, data.edge_index.flip(0)], dim=1).unique(dim=1)
        times: dict[str, list[float]] = {"stock": [], "ours": []}
        contenders = {"stock": stock_epoch(data, arcs), "ours": memohop_epoch(data)}
        for _ in range(3):
            for epoch in contenders.values():
                epoch()
        for _ in range(arguments.epochs):
            for contender, epoch in contenders.items():
                start = time.perf_counter()
                epoch()
                times[contender].append((time.perf_counter() - start) * 1e3)
        stock, ours = (statistics.median(times[c]) for c in ("stock", "ours"))
        print(f"{name:12} {stock:10.1f} {ours:10.1f} {stock / ours:6.1f}x")


if __name__ == "__main__":
    main()
