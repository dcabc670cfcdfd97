"""The search: every model gets the same number of trials, and validation alone decides."""

from __future__ import annotations

import copy
import math
import time as clock
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

import torch
from torch import Tensor

from memohop.data.check import as_columns
from memohop.errors import UsageError
from memohop.own.differences import logits_of
from memohop.own.space import GROUP, MODELS, Space, Trial
from memohop.own.tried import Tried, best_of, feature_scale, for_unscaled, leading, without_networks
from memohop.pyg import Data, is_undirected
from memohop.training import Member, MemberResult, Rules, train
from memohop.training.choice import summarise

Stop = Literal["trials", "time", "interrupted"]
Progress = Callable[[int, int], None]

_KEPT = MODELS[0]
_PROBE = 10  # epochs, to see how long they take
_AROUND = 3  # epochs that setting up and the last look at the test nodes are worth
_STEPS = 1000  # in which progress is told


@dataclass(frozen=True)
class Search:
    """What a search has seen.

    Attributes:
        tried: The trials of each model, as many of one as of the other; a model that the time did
            not suffice for is not there.
        logits: Of each model, what the networks of its best trial say of every node, `[splits,
            nodes, classes]`.
        epochs: The most epochs of a trial; fewer than asked for where time was short and a network
            would have gone on.
        epochs_asked: The most epochs that were asked for.
        stopped: Whether all `trials` were made, the `time` was over, or it was `interrupted`.
        seconds: How long it took.
    """

    tried: Mapping[str, tuple[Tried, ...]]
    logits: Mapping[str, Tensor]
    epochs: int
    epochs_asked: int
    stopped: Stop
    seconds: float

    def best(self, model: str) -> Tried:
        """The trial that validation chose."""
        return best_of(self.tried[model])


class _TimeIsUp(Exception):  # noqa: N818 - no error, but the way out
    """Raised where progress is told, or where a round would not end in time."""


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

    A limit of time costs trials, and what is tried is what would be tried without it: a search
    whose trials all end in time has the result of one without a limit. The first trial of each
    model is always made. Only where even those would not end in time they get fewer epochs, which
    `Search.epochs` tells.

    So that one learning rate means the same for every graph, all models are trained on features
    divided by one number, the root mean square of those that are not 0. The networks that are kept
    take the features as they are.

    Args:
        data: As for :func:`memohop.train`: features, arcs, labels, masks and metric.
        trials: How many settings of each model.
        time: Seconds for the trials and for the last look at their test nodes; None for no limit.
            They are counted from the moment when everything is compiled.
        epochs: The most epochs of a trial.
        patience: Epochs without a better validation score after which a network stops.
        rules: Optimiser, class weights and so on.
        seed: Decides settings, initial weights and dropout.
        device: Where to train.
        memory: The most bytes that the process may hold; by default what the device can spare.
        progress: Called as `progress(done, total)` now and then.
    """
    splits = as_columns(data)[0].shape[1]
    directed = data.num_edges > 0 and not is_undirected(data.edge_index, num_nodes=len(data.x))
    scale = feature_scale(data.x)
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
    run.fit_into_time({model: space.first[0] for model, space in spaces.items()})
    try:
        while len(run.tried[MODELS[-1]]) < trials:
            of_round = {
                model: _next_trials(space, run.tried[model], trials)
                for model, space in spaces.items()
            }
            run.expect_to_end(of_round)
            for model, following in of_round.items():
                run.try_all(model, following)
            run.forget_networks()
    except _TimeIsUp:
        stopped = "time"
    except KeyboardInterrupt:
        stopped = "interrupted"
        if not run.tried[_KEPT]:
            raise
    tried = run.comparable()
    chosen = {model: best_of(of_model) for model, of_model in tried.items()}
    logits = {model: run.logits(model, one) for model, one in chosen.items()}
    tried[_KEPT] = tuple(for_unscaled(one, scale) for one in tried[_KEPT])
    seconds = clock.monotonic() - run.started
    return Search(tried, logits, run.epochs_had(epochs), epochs, stopped, seconds)


def _next_trials(space: Space, tried: list[Tried], trials: int) -> list[Trial]:
    done = len(tried)
    if done < len(space.first):
        return space.first[done : done + 1]
    return space.near(leading(tried).trial, min(GROUP, trials - done))


@dataclass
class _Run:
    """A search under way.

    Attributes:
        started: When its clock began to run.
        deadline: When the last trial must have ended.
        tried: The trials of each model so far.
        seconds: What they took, of each model.
    """

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
    deadline: float = math.inf
    tried: dict[str, list[Tried]] = field(default_factory=lambda: {model: [] for model in MODELS})
    seconds: dict[str, float] = field(default_factory=lambda: dict.fromkeys(MODELS, 0.0))

    def fit_into_time(self, first: Mapping[str, Trial]) -> None:
        """Compile, start the clock, and lower the epochs if even the first trials take too long.

        Args:
            first: The first trial of each model.
        """
        if self.time is None:
            return
        each = sum(self._seconds_of_an_epoch(model, trial) for model, trial in first.items())
        self.started = clock.monotonic()
        self.deadline = self.started + self.time - _AROUND * each
        if (self.epochs + _AROUND) * each <= self.time:
            return
        self.epochs = int(self.time / each) - _AROUND
        if self.epochs < 1:
            raise UsageError(
                f"time={self.time:g} seconds are too few for one epoch of each model, which takes "
                f"about {(1 + _AROUND) * each:.2g}; give more time, or lower splits"
            )

    def _seconds_of_an_epoch(self, model: str, trial: Trial) -> float:
        """Of a trial on all splits, when everything is compiled: from the end of the first on."""
        looks: list[tuple[float, int]] = []

        def look(done: int, total: int) -> None:
            looks.append((clock.monotonic(), done))

        self._train(model, [trial], epochs=1 + _PROBE, progress=look)
        (begin, before), (end, after) = looks[0], looks[-1]
        return (end - begin) / max(after - before, 1) * self.splits

    def expect_to_end(self, of_round: Mapping[str, Sequence[Trial]]) -> None:
        """Stop before trials that would not end in time, to judge by the earlier ones."""
        seconds = sum(
            len(trials) * self.seconds[model] / max(len(self.tried[model]), 1)
            for model, trials in of_round.items()
        )
        if clock.monotonic() + seconds > self.deadline and self.tried[_KEPT]:
            raise _TimeIsUp

    def try_all(self, model: str, trials: Sequence[Trial]) -> None:
        """Train all splits of trials with one structure as one population."""
        begin = clock.monotonic()
        results = self._train(model, trials, epochs=self.epochs, progress=self._look(len(trials)))
        self.seconds[model] += clock.monotonic() - begin
        for place, trial in enumerate(trials):
            own = results[place * self.splits : (place + 1) * self.splits]
            self.tried[model].append(Tried(trial, summarise(own)))

    def comparable(self) -> dict[str, tuple[Tried, ...]]:
        """As many trials of each model, where it has any."""
        there = {model: tried for model, tried in self.tried.items() if tried}
        count = min(len(tried) for tried in there.values())
        return {model: tuple(tried[:count]) for model, tried in there.items()}

    def epochs_had(self, asked: int) -> int:
        """The most epochs of a trial; those asked for, too, where all stopped before fewer."""
        ran = [
            result.epochs
            for tried in self.tried.values()
            for one in tried
            for result in one.selection.results
        ]
        return self.epochs if max(ran) >= self.epochs else asked

    def logits(self, model: str, tried: Tried) -> Tensor:
        """What the networks of a trial say of every node."""
        states = [result.state or {} for result in tried.selection.results]
        return logits_of(self.data, model, tried.trial, states, self.device)

    def _look(self, trials: int) -> Progress:
        """What is called while some trials are trained: it tells progress, and looks at the clock.

        The first trials of all models go on to their end whatever the clock says.
        """
        done_before = sum(map(len, self.tried.values()))
        is_first = not self.tried[MODELS[-1]]

        def look(done: int, total: int) -> None:
            now = clock.monotonic()
            if now > self.deadline and not is_first:
                raise _TimeIsUp
            if self.progress is not None:
                share = (done_before + trials * done / total) / (self.trials * len(MODELS))
                spent = (now - self.started) / (self.deadline - self.started)
                self.progress(max(1, int(_STEPS * min(1, max(share, spent)))), _STEPS)

        return look

    def _train(
        self, model: str, trials: Sequence[Trial], *, epochs: int, progress: Progress
    ) -> list[MemberResult]:
        """All splits of trials with one structure, as one population."""
        members = [
            Member(split=split, seed=self.seed + split, **trial.numbers)
            for trial in trials
            for split in range(self.splits)
        ]
        return train(
            self.data,
            model,
            members,
            options=trials[0].options,
            epochs=epochs,
            patience=self.patience,
            rules=self.rules,
            device=self.device,
            memory=self.memory,
            keep_models=True,
            progress=progress,
        )

    def forget_networks(self) -> None:
        """Keep the networks of the best trials alone, once all models have caught up."""
        for model, tried in self.tried.items():
            kept = leading(tried)
            self.tried[model] = [one if one is kept else without_networks(one) for one in tried]
