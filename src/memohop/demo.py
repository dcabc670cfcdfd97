"""Measures what memory does for message passing, on random graphs.

Each homophily gives one random graph (``csbm``, no files needed), and each model is trained on the
splits of each graph. Processes of one thread each share the work: networks this small gain little
from a second thread.
"""

from __future__ import annotations

import platform
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from importlib.metadata import version
from typing import TYPE_CHECKING, Any, NamedTuple

from memohop.data.datasets.registry import describe
from memohop.errors import DataError

if TYPE_CHECKING:
    from memohop.explain.gates import NodeGroup
    from memohop.jobs.executor import Executor
    from memohop.pyg import Data
    from memohop.training import Result

_PACKAGES = ("memohop", "torch", "torch_geometric", "numpy")
_MOST_PROCESSES = 8  # each one holds its own copy of PyTorch

Progress = Callable[[int, int], None]


@dataclass(frozen=True)
class DemoSettings:
    """What the demo trains. With the defaults, two cores take under two minutes.

    There is one graph for each homophily. Validation chooses the weight of the decoupling loss
    among ``lambdas``. The models that take longest come last.
    """

    homophilies: tuple[float, ...] = (0.05, 0.1, 0.2, 0.3, 0.5, 0.7, 0.95)
    models: tuple[str, ...] = ("mlp", "gcn", "gcn+mmp", "gat+mmp")
    lambdas: tuple[float, ...] = (0.0, 0.1)
    splits: int = 10
    epochs: int = 50
    lr: float = 0.02
    weight_decay: float = 5e-4
    hidden_channels: int = 32
    heads: int = 1

    def options(self, model: str) -> dict[str, Any]:
        """The options of a model that differ from its defaults."""
        heads = {"heads": self.heads} if model.startswith("gat") else {}
        return {"hidden_channels": self.hidden_channels} | heads

    def lambdas_of(self, model: str) -> tuple[float, ...]:
        """The weights of the decoupling loss to choose from; only models with memory have one."""
        return self.lambdas if model.endswith("+mmp") else (0.0,)

    def command(self, homophily: float, model: str) -> str:
        """The command that trains one model on one graph in the same way."""
        parts = [
            f"memohop train csbm --data-option homophily={homophily:g}",
            f"--data-option splits={self.splits} --model {model}",
            f"--lr {self.lr:g} --weight-decay {self.weight_decay:g} --epochs {self.epochs}",
            *(f"--option {name}={value}" for name, value in self.options(model).items()),
        ]
        if model.endswith("+mmp"):
            parts.append(f"--lam {','.join(f'{lam:g}' for lam in self.lambdas)}")
        return " ".join(parts)


class DemoCell(NamedTuple):
    """One model on one graph: its accuracies over the splits in percent, and for gcn+mmp its gates.

    ``val`` is the mean on validation, ``mean`` that on test, ``std`` the sample standard deviation
    on test (ddof=1), and ``lam`` the weight of the decoupling loss that validation chose. The gates
    are means over nodes, rounds and splits, of the networks trained without decoupling loss: the
    loss itself moves the gates, and its weight, chosen for each graph, would blur the picture.
    """

    homophily: float
    model: str
    lam: float
    val: float
    mean: float
    std: float
    gates: NodeGroup | None


@dataclass(frozen=True)
class DemoResult:
    """A cell for each graph and model, in the order of the settings, and how they were measured."""

    settings: DemoSettings
    cells: tuple[DemoCell, ...]
    seconds: float
    processes: int
    versions: Mapping[str, str]

    @property
    def classes(self) -> int:
        """How many classes a graph has; at a homophily of 1 / classes, neighbours say nothing."""
        return describe("csbm").classes

    def cell(self, homophily: float, model: str) -> DemoCell:
        """The cell of this graph and model."""
        return next(c for c in self.cells if (c.homophily, c.model) == (homophily, model))

    def rows(self) -> list[dict[str, Any]]:
        """Flat objects for JSON."""
        protocol = {"metric": "accuracy", "unit": "percent", "splits": self.settings.splits}
        protocol |= {"ddof": 1, "epochs": self.settings.epochs}
        protocol |= {"lr": self.settings.lr, "weight_decay": self.settings.weight_decay}
        return [
            {"dataset": "csbm", "homophily": cell.homophily, "model": cell.model, "lam": cell.lam}
            | {name: round(getattr(cell, name), 4) for name in ("val", "mean", "std")}
            | protocol
            | self.settings.options(cell.model)
            | {"version": self.versions["memohop"]}
            for cell in self.cells
        ]


def run_demo(
    settings: DemoSettings | None = None,
    *,
    processes: int | None = None,
    progress: Progress | None = None,
) -> DemoResult:
    """Train every model on every graph, by default as ``memohop demo`` does.

    So many processes share the work, by default one for each core. After each task
    ``progress(done, total)`` is called.
    """
    import torch

    from memohop.jobs.executor import Lost, here
    from memohop.jobs.processes import Processes

    settings = settings or DemoSettings()
    start = time.perf_counter()
    # The long tasks first: none of them is left for the end.
    tasks = [
        (homophily, model) for model in settings.models[::-1] for homophily in settings.homophilies
    ]
    processes = min(processes or torch.get_num_threads(), len(tasks), _MOST_PROCESSES)
    cells: dict[tuple[float, str], DemoCell] = {}
    executor: Executor = here if processes == 1 else Processes(processes)
    for task, cell in executor(partial(_measure, settings), tasks):
        if isinstance(cell, Lost):
            raise DataError(f"the demo has lost a process: {cell.reason}")
        cells[task] = cell
        if progress is not None:
            progress(len(cells), len(tasks))
    ordered = [cells[h, model] for h in settings.homophilies for model in settings.models]
    versions = {name: version(name) for name in _PACKAGES} | {"Python": platform.python_version()}
    return DemoResult(settings, tuple(ordered), time.perf_counter() - start, processes, versions)


def _measure(settings: DemoSettings, task: tuple[float, str]) -> DemoCell:
    import memohop

    homophily, model = task
    data = memohop.load("csbm", homophily=homophily, splits=settings.splits)
    results: list[Result] = []
    for lam in settings.lambdas_of(model):
        numbers = {"lr": settings.lr, "weight_decay": settings.weight_decay, "lam": lam}
        results += memohop.train(
            data,
            model,
            memohop.grid(split=range(settings.splits), **numbers),
            options=settings.options(model),
            epochs=settings.epochs,
            keep_models=model == "gcn+mmp",
        )
    chosen = memohop.select(results)
    gates = _gates(settings, data, results) if model == "gcn+mmp" else None
    val, mean, std = (100 * score for score in (chosen.val, chosen.mean, chosen.std))
    return DemoCell(homophily, model, chosen.setting["lam"], val, mean, std, gates)


def _gates(settings: DemoSettings, data: Data, results: list[Result]) -> NodeGroup:
    import memohop
    from memohop.explain.gates import gate_readout
    from memohop.networks.memory import MemoryNetwork

    classes, options = int(data.y.max()) + 1, settings.options("gcn+mmp")
    network = memohop.build("gcn+mmp", data.num_features, classes, **options).eval()
    assert isinstance(network, MemoryNetwork)
    graph = network.prepare(data.edge_index, data.num_nodes)
    gates = []
    for result in results:
        if result.member.lam == 0 and result.state is not None:
            network.load_state_dict(result.state)
            gates.append(network.gates(data.x, graph).detach())
    return gate_readout(gates, data.edge_index, data.y.numpy()).overall()
