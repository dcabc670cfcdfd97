"""How long a model-epoch takes, here and in stock PyG, in one run.

A model-epoch is one epoch of one model: a training step and an evaluation. Stock PyG trains one
model at a time; the population trains many in one step, and its time is divided by their number.
The two take turns, so that both meet the same load of the machine, and medians are compared.
"""

from __future__ import annotations

import statistics
import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch

from memohop.nn import Graph, fixed_product
from memohop.pyg import Data
from memohop.training import Job, Member
from memohop.training.device import captured, is_gpu, peak_bytes
from memohop.training.population import Population
from study.speed.stock import stock_epoch, twin_options

_WIDTH = 64
_WARM_UP = 5  # epochs, the capture of a CUDA graph among them


@dataclass(frozen=True)
class Speed:
    """One line of the speed table.

    Attributes:
        stock_ms, ms: Milliseconds per model-epoch in stock PyG and in the population.
        ratio: The first over the second.
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
    population = _population(data, model, members, device)
    peak = _peak(population, device)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        contenders = [stock_epoch(model, data, device), captured(population.step, device)]
        stock, ours = _take_turns(contenders, device, epochs)
    floor = _floor_ms(population, members, device)
    return Speed(
        dataset=data.name,
        model=model,
        device=device.type,
        members=members,
        stock_ms=stock,
        ms=ours / members,
        ratio=stock / (ours / members),
        peak_mb=peak / 1e6,
        floor_share=None if floor is None else floor / ours,
    )


def _population(data: Data, model: str, members: int, device: torch.device) -> Population:
    options = {**twin_options(model), "hidden_channels": _WIDTH}
    splits = data.train_mask.shape[1]
    runs = [Member(split=i % splits, seed=i) for i in range(members)]
    job = Job(data=data, model=model, members=runs, options=options, epochs=1000, device=device)
    return Population.of(job)


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


def _floor_ms(population: Population, members: int, device: torch.device) -> float | None:
    graph = population.task.inputs[1]
    if not isinstance(graph, Graph) or "attention_dropout" in str(population.model):
        return None
    hidden = torch.randn(members, graph.num_nodes, _WIDTH, device=device)
    (product_ms,) = _take_turns([lambda: fixed_product(hidden, graph.matrix)], device, 10)
    return 6 * product_ms


def _peak(population: Population, device: torch.device) -> float:
    if is_gpu(device):
        torch.cuda.reset_peak_memory_stats(device)
        population.step()
        return torch.cuda.max_memory_allocated(device)
    return peak_bytes(population.step)


def _wait(device: torch.device) -> None:
    if is_gpu(device):
        torch.cuda.synchronize(device)
