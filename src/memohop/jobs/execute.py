"""Trains runs: those that differ only as members may differ are one population."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import msgspec

from memohop.data.datasets.load import load
from memohop.data.datasets.registry import is_folder
from memohop.data.noise import add_noise
from memohop.jobs.run import Run, Settings
from memohop.jobs.train import train
from memohop.pyg import Data
from memohop.training import Result
from memohop.training.numbers import Numbers

Progress = Callable[[int, int], None]

_OF_DATA = ("features", "split", "data", "noise", "draw", "noise_policy")
_OF_MEMBERS = asdict(Numbers())  # any values: members of one population may differ in these


def execute(
    runs: Sequence[Run],
    *,
    root: Path | None = None,
    device: str = "cpu",
    memory: int | None = None,
    progress: Progress | None = None,
    **how: Any,
) -> list[Result]:
    """Train runs of one model on one dataset or prepared graph, in as few populations as possible.

    Args:
        runs: The runs, each one once.
        root: A local folder with the data files.
        device: ``cpu`` or ``cuda``.
        memory: The most bytes to use.
        progress: Called as ``progress(done, total)`` with counts of member-epochs.
        **how: Other arguments of :func:`memohop.train`, such as the number of workers.

    Returns:
        One result for each run, in their order, with the seconds that it took.
    """
    done: dict[str, Result] = {}
    total = sum(run.recipe.settings.epochs for run in runs)
    finished = 0
    for population in populations(runs):
        recipe, start = population[0].recipe, time.perf_counter()
        settings = recipe.settings
        results = train(
            load_data(recipe.dataset, settings, root),
            recipe.model,
            [run.member for run in population],
            options=settings.options,
            rules=settings.rules,
            epochs=settings.epochs,
            patience=settings.patience,
            device=device,
            memory=memory,
            progress=None if progress is None else _shifted(progress, finished, total),
            **how,
        )
        finished += settings.epochs * len(population)
        seconds = (time.perf_counter() - start) / len(population)
        for run, result in zip(population, results, strict=True):
            done[run.id] = replace(result, seconds=seconds)
    return [done[run.id] for run in runs]


def load_data(dataset: str, settings: Settings, root: Path | None = None) -> Data:
    """The data that the settings ask for; the last two graphs are cached."""
    of_data = {name: getattr(settings, name) for name in _OF_DATA}
    return _load(dataset, msgspec.json.encode(Settings(**of_data)), root)


@lru_cache(maxsize=2)
def _load(dataset: str, of_data: bytes, root: Path | None) -> Data:
    settings = msgspec.json.decode(of_data, type=Settings)
    split = None if settings.split == "published" else settings.split
    if is_folder(dataset):
        from memohop.jobs.folder import load_folder

        return load_folder(dataset, settings.data | ({} if split is None else {"split": split}))
    graph = load(dataset, root=root, features=settings.features, split=split, **settings.data)
    if not settings.noise:
        return graph
    return add_noise(graph, settings.noise, draw=settings.draw, policy=settings.noise_policy)


def populations(runs: Sequence[Run]) -> list[list[Run]]:
    """Groups of runs with the same settings, apart from the numbers of each member.

    Runs without dropout are apart: some networks take a shorter way then, which all members must
    take together.
    """
    groups: dict[tuple[bytes, bool], list[Run]] = {}
    for run in runs:
        settings = run.recipe.settings
        shared = msgspec.json.encode(replace(settings, **_OF_MEMBERS))
        groups.setdefault((shared, settings.dropout == 0), []).append(run)
    return list(groups.values())


def _shifted(progress: Progress, before: int, total: int) -> Progress:
    """Turns the progress of a part into that of the whole."""
    return lambda done, _: progress(before + done, total)
