"""A candidate of the search: the settings it offers, how they are trained, and their results.

:mod:`memohop.own.search` chooses the candidate for the next trials and decides when to stop. Only
this module depends on candidates being networks.
"""

from __future__ import annotations

import time as clock
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from memohop.own.space import GROUP, Space, Trial
from memohop.own.tried import State, Tried, leading, with_states
from memohop.pyg import Data
from memohop.training import Member, MemberResult, train
from memohop.training.choice import summarise
from memohop.training.device import find_device
from memohop.training.task import make_builder, make_task
from memohop.training.trainer import Progress

_PROBE = 10  # epochs that are timed


@dataclass
class Candidate:
    """Networks of one model: a trial is one network for each split."""

    model: str  # its id
    space: Space  # the settings to try
    data: Data  # the graph to train on
    splits: int  # number of splits in its masks
    seed: int  # decides initial weights and dropout
    training: Mapping[str, Any]  # further arguments of memohop.train
    tried: list[Tried] = field(default_factory=list)  # the trials so far
    seconds: float = 0.0  # spent on them

    def next_trials(self, limit: int) -> list[Trial]:
        """The next setting of the fixed list, or a group near the best trial so far."""
        done = len(self.tried)
        if done < len(self.space.first):
            return self.space.first[done : done + 1]
        return self.space.near(leading(self.tried).trial, min(GROUP, limit - done))

    def try_out(self, trials: Sequence[Trial], *, epochs: int, progress: Progress) -> None:
        """Train trials of one structure on all splits."""
        begin = clock.monotonic()
        results = self._train(trials, epochs=epochs, progress=progress)
        self.seconds += clock.monotonic() - begin
        for index, trial in enumerate(trials):
            of_trial = results[index * self.splits : (index + 1) * self.splits]
            self.tried.append(Tried(trial, summarise(of_trial)))

    def seconds_of_an_epoch(self) -> float:
        """How long an epoch of the first trial takes on all splits, after compilation."""
        looks: list[tuple[float, int]] = []
        self._train(
            self.space.first[:1],
            epochs=1 + _PROBE,
            progress=lambda done, total: looks.append((clock.monotonic(), done)),
        )
        (begin, before), (end, after) = looks[0], looks[-1]
        return (end - begin) / max(after - before, 1) * self.splits

    def forget_networks(self) -> None:
        """Keep only the networks of the best trial."""
        kept = leading(self.tried)
        self.tried = [
            one if one is kept else with_states(one, lambda state: None) for one in self.tried
        ]

    @torch.no_grad()
    def logits(self, tried: Tried) -> Tensor:
        """The outputs of the networks of a trial, ``[splits, nodes, classes]``."""
        device = find_device(self.training["device"])
        network = make_builder(self.model, self.data, dict(tried.trial.options))()
        network = network.to(device).eval()
        inputs = make_task(self.data, network, device, "auto").inputs
        found = []
        for result in tried.selection.results:
            network.load_state_dict(result.state or {})
            output = network(*inputs)
            found.append((output[0] if isinstance(output, tuple) else output).cpu())
        return torch.stack(found)

    def unscaled(self, tried: Tried, scale: float) -> Tried:
        """The same networks for unscaled features: their first layer divides by the scale."""

        def divided(state: State) -> State:
            return state and {**state, "input.weight": state["input.weight"] / scale}

        return with_states(tried, divided)

    def _train(
        self, trials: Sequence[Trial], *, epochs: int, progress: Progress
    ) -> list[MemberResult]:
        """All splits of all trials as one population, trial by trial."""
        members = [
            Member(split=split, seed=self.seed + split, **trial.numbers)
            for trial in trials
            for split in range(self.splits)
        ]
        return train(
            self.data,
            self.model,
            members,
            options=trials[0].options,
            epochs=epochs,
            keep_models=True,
            progress=progress,
            **self.training,
        )
