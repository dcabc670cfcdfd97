"""The search: every model gets the same number of trials, and validation alone decides."""

from __future__ import annotations

import copy
import time as clock
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

import torch
from torch import Tensor

from memohop.data.check import as_columns
from memohop.errors import UsageError
from memohop.own.space import GROUP, MODELS, Space, Trial
from memohop.pyg import Data, is_undirected
from memohop.training import Member, MemberResult, Rules, Selection, train
from memohop.training.select import best, summarise

Stop = Literal["trials", "time", "interrupted"]
Progress = Callable[[int, int], None]

_KEPT = MODELS[0]
_PROBE = 3  # epochs of one member, to see how long they take
_STEPS = 1000  # in which progress is told


@dataclass(frozen=True)
class Tried:
    """A trial on every split, with its scores; the best one of `gcn+mmp` has its networks."""

    trial: Trial
    selection: Selection


@dataclass(frozen=True)
class Search:
    """What a search has seen.

    Attributes:
        tried: The trials of each model, as many of one as of the other; a model that the time did
            not suffice for is not there.
        epochs: The most epochs of a trial; fewer than asked for where time was short.
        stopped: Whether all `trials` were made, the `time` was over, or it was `interrupted`.
        seconds: How long it took.
    """

    tried: Mapping[str, tuple[Tried, ...]]
    epochs: int
    stopped: Stop
    seconds: float

    def best(self, model: str) -> Tried:
        """The trial with the best mean validation score; the first of equals."""
        chosen = best([tried.selection for tried in self.tried[model]])
        return next(tried for tried in self.tried[model] if tried.selection is chosen)


class _TimeIsUp(Exception):  # noqa: N818 - no error, but the way out
    """Raised where progress is told."""


def search(
    data: Data,
    *,
    trials: int = 16,
    time: float | None = None,
    epochs: int = 200,
    patience: int | None = 50,
    rules: Rules | None = None,
    seed: int = 0,
    device: torch.device | str = "cpu",
    memory: int | None = None,
    progress: Progress | None = None,
) -> Search:
    """Try settings of each model on all splits of the data.

    The models take turns, group by group, and what one has tried more than another when the time
    is over does not count. Ctrl-C ends the search too; it goes through where there is nothing to
    keep yet.

    So that one learning rate means the same for every graph, all models are trained on features
    divided by one number, the root mean square of those that are not 0. The networks that are kept
    take the features as they are.

    Args:
        data: As for :func:`memohop.train`: features, arcs, labels, masks and metric.
        trials: How many settings of each model.
        time: Seconds after which no more is done. If they are too few for one trial of each model,
            all trials get fewer epochs.
        epochs: The most epochs of a trial.
        patience: Epochs without a better validation score after which a network stops.
        rules: Optimiser, class weights and so on.
        seed: Decides settings, initial weights and dropout.
        device: Where to train.
        memory: Bytes that training may take; by default what the device can spare.
        progress: Called as `progress(done, total)` now and then.
    """
    splits = as_columns(data)[0].shape[1]
    directed = data.num_edges > 0 and not is_undirected(data.edge_index, num_nodes=len(data.x))
    scale = _scale(data.x)
    scaled = copy.copy(data)
    scaled.x = data.x / scale
    run = _Run(
        scaled,
        splits=splits,
        trials=trials,
        time=time,
        epochs=epochs,
        patience=patience,
        rules=rules or Rules(),
        seed=seed,
        device=device,
        memory=memory,
        progress=progress,
    )
    spaces = {model: Space(model, directed=directed, seed=seed) for model in MODELS}
    stopped: Stop = "trials"
    try:
        run.fit_into_time()
        while len(run.tried[MODELS[-1]]) < trials:
            for model in MODELS:
                run.try_all(model, _next_trials(spaces[model], run.tried[model], trials))
            run.forget_networks()
    except _TimeIsUp:
        stopped = "time"
    except KeyboardInterrupt:
        stopped = "interrupted"
        if not run.tried[_KEPT]:
            raise
    if not run.tried[_KEPT]:
        raise UsageError(
            f"time={time:g} seconds were over before one trial of {_KEPT} was done; give more "
            "time, or lower splits or epochs"
        )
    tried = run.comparable()
    tried[_KEPT] = tuple(_for_unscaled(one, scale) for one in tried[_KEPT])
    return Search(tried, run.epochs, stopped, clock.monotonic() - run.started)


def _scale(x: Tensor) -> float:
    stored = int((x != 0).sum())
    norm = float(torch.linalg.vector_norm(x, dtype=torch.float64))
    return norm / stored**0.5 if stored else 1.0


def _for_unscaled(tried: Tried, scale: float) -> Tried:
    """The same networks with the division inside their first layer."""

    def unscaled(result: MemberResult) -> MemberResult:
        if result.state is None:
            return result
        weight = result.state["input.weight"] / scale
        return replace(result, state={**result.state, "input.weight": weight})

    return _with_results(tried, map(unscaled, tried.selection.results))


def _next_trials(space: Space, tried: list[Tried], trials: int) -> list[Trial]:
    done = len(tried)
    if done < len(space.first):
        return space.first[done : done + 1]
    nearest = max(tried, key=lambda one: one.selection.rank)
    return space.near(nearest.trial, min(GROUP, trials - done))


@dataclass
class _Run:
    """A search under way."""

    data: Data
    splits: int
    trials: int
    time: float | None
    epochs: int
    patience: int | None
    rules: Rules
    seed: int
    device: torch.device | str
    memory: int | None
    progress: Progress | None
    started: float = field(default_factory=lambda: clock.monotonic())
    tried: dict[str, list[Tried]] = field(default_factory=lambda: {model: [] for model in MODELS})

    def fit_into_time(self) -> None:
        """Lower the epochs such that one trial of each model takes half of the time at most."""
        if self.time is None:
            return
        begin = clock.monotonic()
        epochs, self.epochs = self.epochs, _PROBE
        trial = Space(_KEPT, directed=False, seed=0).first[0]
        self._train(_KEPT, [self._member(trial, 0)], trial, keep_models=False)
        each = (clock.monotonic() - begin) / _PROBE * self.splits * len(MODELS)
        self.epochs = max(1, min(epochs, int(self.time / 2 / each)))

    def try_all(self, model: str, trials: Sequence[Trial]) -> None:
        """Train all splits of trials with one structure as one population."""
        members = [self._member(trial, split) for trial in trials for split in range(self.splits)]
        results = self._train(model, members, trials[0], keep_models=model == _KEPT)
        for place, trial in enumerate(trials):
            own = results[place * self.splits : (place + 1) * self.splits]
            self.tried[model].append(Tried(trial, summarise(own)))

    def comparable(self) -> dict[str, tuple[Tried, ...]]:
        """As many trials of each model, where it has any."""
        there = {model: tried for model, tried in self.tried.items() if tried}
        count = min(len(tried) for tried in there.values())
        return {model: tuple(tried[:count]) for model, tried in there.items()}

    def _member(self, trial: Trial, split: int) -> Member:
        return Member(split=split, seed=self.seed + split, **trial.numbers)

    def _train(
        self, model: str, members: Sequence[Member], trial: Trial, *, keep_models: bool
    ) -> list[MemberResult]:
        done_before = sum(map(len, self.tried.values()))
        trials = len(members) / self.splits

        def look(done: int, total: int) -> None:
            now = clock.monotonic()
            spent = 0.0 if self.time is None else (now - self.started) / max(self.time, 1e-9)
            if spent > 1:
                raise _TimeIsUp
            if self.progress is not None:
                share = (done_before + trials * done / total) / (self.trials * len(MODELS))
                self.progress(max(1, int(_STEPS * max(share, spent))), _STEPS)

        return train(
            self.data,
            model,
            members,
            options=trial.options,
            epochs=self.epochs,
            patience=self.patience,
            rules=self.rules,
            device=self.device,
            memory=self.memory,
            keep_models=keep_models,
            progress=look,
        )

    def forget_networks(self) -> None:
        """Keep the networks of the best trial alone, once all models have caught up with it."""
        tried = self.tried[_KEPT]
        kept = max(range(len(tried)), key=lambda place: tried[place].selection.rank)
        self.tried[_KEPT] = [
            one if place == kept else _without_networks(one) for place, one in enumerate(tried)
        ]


def _without_networks(tried: Tried) -> Tried:
    return _with_results(tried, (replace(one, state=None) for one in tried.selection.results))


def _with_results(tried: Tried, results: Iterable[MemberResult]) -> Tried:
    return replace(tried, selection=replace(tried.selection, results=tuple(results)))
