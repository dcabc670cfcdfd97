"""The search: every candidate gets the same number of trials, and validation alone decides."""

from __future__ import annotations

import copy
import math
import time as clock
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from memohop.data.check import as_columns
from memohop.errors import UsageError
from memohop.own.candidate import Candidate
from memohop.own.space import MODEL, MODELS, Space
from memohop.own.tried import Tried, best_of
from memohop.pyg import Data, is_undirected
from memohop.training import Rules
from memohop.training.trainer import Progress

Stop = Literal["trials", "time", "interrupted"]
"""Why a search ended: all trials were made, the time was up, or it was interrupted."""

_AROUND = 3  # time for setup and final test scores, in epochs
_STEPS = 1000  # of progress


@dataclass(frozen=True)
class Search:
    """The result of a search; a model is left out if there was no time for it."""

    tried: Mapping[str, tuple[Tried, ...]]  # the trials of each model, equally many
    logits: Mapping[str, Tensor]  # of the best trial of each model, [splits, nodes, classes]
    epochs: int  # the most of a trial; fewer than requested if a network was cut short
    epochs_asked: int
    stopped: Stop
    seconds: float

    def best(self, model: str) -> Tried:
        """The trial that validation chose."""
        return best_of(self.tried[model])


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

    The models take turns, group by group; when the time is up, trials that one model has made and
    another has not are dropped. Ctrl-C ends the search as well, and is raised if no trial has ended
    yet. A time limit lowers the number of trials and leaves the trials themselves as they are. The
    first trial of each model is always made; if even those would not end in time, they get fewer
    epochs, and ``Search.epochs`` shows it.

    Features are divided by the root mean square of those that are not 0, so that a learning rate
    means the same for every graph. The kept networks take the features as they are.

    ``data`` and ``rules`` are those of :func:`memohop.train`, the other arguments those of
    :class:`memohop.MMPClassifier`.
    """
    splits = as_columns(data)[0].shape[1]
    directed = data.num_edges > 0 and not is_undirected(data.edge_index, num_nodes=len(data.x))
    stored = int((data.x != 0).sum())
    norm = float(torch.linalg.vector_norm(data.x, dtype=torch.float64))
    scale = norm / stored**0.5 if stored else 1.0
    scaled = copy.copy(data)
    scaled.x = data.x / scale
    training = {"patience": patience, "rules": rules or Rules(), "device": device, "memory": memory}
    candidates = [
        Candidate(model, Space(model, directed=directed, seed=seed), scaled, splits, seed, training)
        for model in MODELS
    ]
    turns = _Turns(candidates, trials, epochs, progress)
    if time is not None:
        turns.fit_into_time(time)
    stopped: Stop = "trials"
    try:
        while len(candidates[-1].tried) < trials:
            turns.one_round()
    except _TimeIsUp:
        stopped = "time"
    except KeyboardInterrupt:
        stopped = "interrupted"
        if not candidates[0].tried:
            raise
    there = [candidate for candidate in candidates if candidate.tried]
    count = min(len(candidate.tried) for candidate in there)
    tried = {candidate.model: tuple(candidate.tried[:count]) for candidate in there}
    logits = {one.model: one.logits(best_of(tried[one.model])) for one in there}
    tried[MODEL] = tuple(candidates[0].unscaled(one, scale) for one in tried[MODEL])
    seconds = clock.monotonic() - turns.started
    return Search(tried, logits, turns.epochs_had(epochs), epochs, stopped, seconds)


class _TimeIsUp(Exception):  # noqa: N818 - no error, but the way out
    """Raised during a trial, or before a round that would not end in time."""


class _Turns:
    """The turns of the candidates, against the clock."""

    def __init__(
        self, candidates: Sequence[Candidate], trials: int, epochs: int, progress: Progress | None
    ) -> None:
        self._candidates, self._trials, self._progress = candidates, trials, progress
        self.epochs, self.started, self.deadline = epochs, clock.monotonic(), math.inf

    def fit_into_time(self, seconds: float) -> None:
        """Compile, start the clock, and lower the epochs if even the first trials take too long."""
        each = sum(candidate.seconds_of_an_epoch() for candidate in self._candidates)
        self.started = clock.monotonic()
        self.deadline = self.started + seconds - _AROUND * each
        if (self.epochs + _AROUND) * each <= seconds:
            return
        self.epochs = int(seconds / each) - _AROUND
        if self.epochs < 1:
            raise UsageError(
                f"time={seconds:g} seconds are too few for one epoch of each model, which takes "
                f"about {(1 + _AROUND) * each:.2g}; give more time, or lower splits"
            )

    def one_round(self) -> None:
        """Train the next trials of each candidate, unless they are expected to end too late."""
        turns = [(one, one.next_trials(self._trials)) for one in self._candidates]
        seconds = sum(
            len(trials) * candidate.seconds / max(len(candidate.tried), 1)
            for candidate, trials in turns
        )
        if clock.monotonic() + seconds > self.deadline and self._candidates[0].tried:
            raise _TimeIsUp
        for candidate, trials in turns:
            candidate.try_out(trials, epochs=self.epochs, progress=self._look(len(trials)))
        for candidate in self._candidates:
            candidate.forget_networks()

    def epochs_had(self, asked: int) -> int:
        """The most epochs of a trial; the number requested if every network stopped earlier."""
        tried = [one for candidate in self._candidates for one in candidate.tried]
        ran = max(result.epochs for one in tried for result in one.selection.results)
        return self.epochs if ran >= self.epochs else asked

    def _look(self, trials: int) -> Progress:
        """A callback for some trials that reports progress and stops them when the time is up.

        The first trials of all candidates are never stopped.
        """
        done_before = sum(len(candidate.tried) for candidate in self._candidates)
        is_first = not self._candidates[-1].tried

        def look(done: int, total: int) -> None:
            now = clock.monotonic()
            if now > self.deadline and not is_first:
                raise _TimeIsUp
            if self._progress is not None:
                all_trials = self._trials * len(self._candidates)
                share = (done_before + trials * done / total) / all_trials
                spent = (now - self.started) / (self.deadline - self.started)
                self._progress(max(1, int(_STEPS * min(1, max(share, spent)))), _STEPS)

        return look
