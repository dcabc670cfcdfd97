"""Networks of the registry, as populations: all settings and splits of a structure together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import torch
from scipy import sparse

from memohop.data.arcs import mean_weight
from memohop.fit.candidates.cost import least_seconds, network_bytes
from memohop.fit.candidates.family import Fits, Fitted, Look, Setting, no_fits
from memohop.fit.candidates.learned import packaged
from memohop.fit.candidates.network import AS_IT_IS, Network, as_data, said_by, say, sees_graph
from memohop.fit.candidates.spaces import Space, near_numbers
from memohop.fit.neighbourhood import Matrix
from memohop.fit.problem import Problem
from memohop.jobs.train import train
from memohop.networks import build
from memohop.training import Enough, Member, Result, Rules, standardised
from memohop.training.device import traits_of
from memohop.training.plan import TooLittleError
from memohop.training.room import resident_bytes
from memohop.training.rules import DEFAULT_RULES

_MANY = 10_000  # validation nodes, of which the best epoch is hardly luck
_LARGE = 5_000  # nodes from which on a CPU networks take less time one by one, and less RAM


@dataclass(frozen=True)
class NetworkFamily:
    """Networks of one model.

    Attributes:
        id: The id of the model.
        space: The settings to try.
        rules: Optimiser, class weights and so on.
        epochs: The most epochs of a network.
        patience: Epochs without a better validation score after which it stops.
        seed: Decides initial weights and dropout.
        device: The device to train on.
        memory: The most bytes that the process may hold.
        in_parts: The number of workers that train it together, each on a block of the graph, which
            fits none of them; None to train it in this process.
    """

    id: str
    space: Space
    rules: Rules = DEFAULT_RULES
    epochs: int = 300
    patience: int | None = 60
    seed: int = 0
    device: str = "cpu"
    memory: int | None = None
    in_parts: int | None = None

    @property
    def sees_graph(self) -> bool:
        """Whether it uses arcs."""
        return sees_graph(self.id)

    @property
    def has_memory(self) -> bool:
        """Whether it passes messages through a memory."""
        return self.id.endswith("+mmp")

    def openers(self, problem: Problem) -> int:
        """How many of its first settings a search starts with."""
        return self.space.openers

    def least_seconds(self, problem: Problem, setting: Setting) -> float:
        """The time of a few dozen epochs; infinite for what cannot be trained at all."""
        if not self._can_train(setting.options):
            return np.inf
        room = None if self.memory is None else self.memory - resident_bytes()
        if self.memory and self.in_parts:
            room = self.memory * self.in_parts
        return least_seconds(
            problem, setting.options, self.device, sees_graph=self.sees_graph, room=room
        )

    def least_bytes(self, problem: Problem, setting: Setting) -> float:
        """The RAM of a fit; none on a device that measures it by itself, or on other workers."""
        if self.in_parts or traits_of(torch.device(self.device)).is_separate:
            return 0.0
        return network_bytes(problem, setting.options, sees_graph=self.sees_graph)

    def _can_train(self, options: Mapping[str, Any]) -> bool:
        """On a graph in parts: networks whose outputs need not have all of it in RAM either."""
        if self.in_parts is None:
            return True
        return self.has_memory and options.get("address") != "rows"

    def first(self, problem: Problem) -> list[Setting]:
        """Settings of different kinds, and then those that did well in the fair table."""
        directed = problem.neighbourhood.directed
        if (self.space.directed_only and not directed) or not (
            self.sees_graph or problem.has_columns
        ):
            return []
        own, openers = self.space.first(directed=directed), self.space.openers
        found = own[:openers] + packaged().of(self.id, directed=directed) + own[openers:]
        return [
            Setting(self.id, options, numbers)
            for options, numbers in found
            if self._can_train(options)
        ]

    def near(
        self, problem: Problem, best: Setting, count: int, generator: np.random.Generator
    ) -> list[Setting]:
        """At most one choice changed, and numbers close by."""
        directed = problem.neighbourhood.directed
        options = self.space.changed(best.options, generator, directed=directed)
        found = [
            Setting(self.id, options, self._near(best.numbers, generator)) for _ in range(count)
        ]
        if self.least_seconds(problem, found[0]) == np.inf:  # larger than the best
            return [replace(one, options=best.options) for one in found]
        return found

    def _rules(self, problem: Problem) -> Rules:
        """The rules, with the epoch of the smallest loss where the best score would be luck."""
        return replace(self.rules, stop="loss", keep="loss") if problem.ranks_few else self.rules

    def _crosses(self, problem: Problem) -> bool:
        """Whether the best epoch would look better than it is: by score, on few nodes."""
        return not problem.ranks_few and int(problem.masks.val[:, 0].sum()) < _MANY

    def _one_by_one(self, problem: Problem) -> bool:
        """Whether a network fills the device by itself, so that a population gains nothing."""
        on_cpu = not traits_of(torch.device(self.device)).is_separate
        return on_cpu and self.in_parts is None and problem.nodes >= _LARGE

    def _near(
        self, numbers: Mapping[str, float], generator: np.random.Generator
    ) -> dict[str, float]:
        found = near_numbers(numbers, generator)
        return found if self.has_memory else found | {"lam": 0.0}

    def fit(
        self,
        problem: Problem,
        settings: Sequence[Setting],
        splits: Sequence[int],
        *,
        keep: bool = False,
        look: Look = lambda share: None,
    ) -> Fits:
        """One population, or one network after the other where that takes less time.

        If time is up, members that have not begun have no result; nor if the RAM is too small.
        """
        scale, arc_scale = feature_scale(problem.x), 1.0
        if problem.weights is not None:  # an average arc counts as much as an added self-loop
            arc_scale = mean_weight(problem.weights)
        data, standard = as_data(problem, self.id, scale, arc_scale), AS_IT_IS
        options = settings[0].options
        if not problem.classes:
            data, standard = standardised(data)
        members = [
            Member(split=split, seed=self.seed + split, **setting.numbers)
            for setting in settings
            for split in splits
        ]
        at_once, ended = 1 if self._one_by_one(problem) else len(members), False
        results: list[Result] = []

        def progress(done: int, total: int) -> None:
            nonlocal ended
            try:
                look((len(results) + at_once * done / total) / len(members))
            except Enough:
                ended = True
                raise

        train_some = partial(
            train,
            data,
            self.id,
            options=options,
            epochs=self.epochs,
            patience=self.patience,
            rules=self._rules(problem),
            device=self.device,
            memory=self.memory,
            keep_models=True,
            cross_fit=self._crosses(problem),
            progress=progress,
            workers=self.in_parts,
        )
        while len(results) < len(members) and not ended:
            try:
                results += train_some(members[len(results) : len(results) + at_once])
            except TooLittleError:
                ended = True
        sizes = (data.x.shape[1], problem.objective.outputs(data.y), problem.nodes)
        network = build(self.id, *sizes[:2], num_nodes=problem.nodes, **options)
        sound = [
            index for index, result in enumerate(results) if result.epochs and not result.diverged
        ]
        states = [results[index].state or {} for index in sound]
        known = [problem.known(splits[index % len(splits)]) for index in sound]
        by_rows = self.in_parts is not None
        spoken = say(network, states, data, standard, self.device, known, by_rows=by_rows)
        found = no_fits(settings)
        for index, state, said in zip(sound, states, spoken, strict=True):
            setting, split = divmod(index, len(splits))
            part = Network(self.id, options, sizes, scale, state, standard, arc_scale)
            crossed = results[index].val_outputs
            val = problem.masks.val[:, splits[split]]
            of_val = said[val] if crossed is None else said_by(crossed, standard)
            found[setting][splits[split]] = Fitted(
                of_val, said[problem.masks.test], part if keep else None
            )
        return found


def feature_scale(x: Matrix) -> float:
    """The root mean square of the features that are not 0."""
    values = x.data if sparse.issparse(x) else x[x != 0]
    return float(np.sqrt(np.mean(np.square(values, dtype=np.float64)))) if values.size else 1.0
