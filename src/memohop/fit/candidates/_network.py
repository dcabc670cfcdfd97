"""Networks of the registry, fitted as populations."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch

from memohop.fit._candidate import (
    Cost,
    Family,
    Fit,
    Fits,
    Look,
    Setting,
    room_in_ram,
)
from memohop.fit._problem import Problem
from memohop.fit.candidates import spaces
from memohop.fit.candidates._fitted_network import UNSCALED, Network, built, in_unit
from memohop.fit.candidates._network_data import (
    arc_scales,
    as_data,
    feature_scale,
    network_cost,
    relations_of,
    sees_arcs,
    structure_scales,
)
from memohop.jobs.space import Space
from memohop.jobs.train import train
from memohop.pyg import Data
from memohop.training import DEFAULT_RULES, Enough, Member, Result, Rules
from memohop.training.device import TooLittleError, find_device, is_gpu
from memohop.training.scale import standardised
from memohop.training.task import make_inputs

_MANY = 10_000  # validation nodes, of which the best epoch is hardly luck
_FEW_RELATIONS = 10  # each has maps of its own
_LARGE = 5_000  # nodes with which a network fills a CPU; one by one they also take less RAM


@dataclass(frozen=True)
class NetworkFamily(Family):
    """Networks of one model, whose id is theirs.

    Attributes:
        rules: Optimiser, class weights and so on.
        epochs: The most epochs of a network.
        patience: Epochs without a better validation score after which it stops.
        seed: Decides initial weights and dropout.
        device: The device to train on.
        in_parts: The number of workers that train it together, each on a block of the graph, which
            fits none of them; None to train it in this process.
    """

    rules: Rules = DEFAULT_RULES
    epochs: int = 300
    patience: int | None = 60
    seed: int = 0
    device: str = "cpu"
    in_parts: int | None = None

    @property
    def sees_graph(self) -> bool:
        """Whether it uses arcs."""
        return sees_arcs(self.id)

    def first(self, problem: Problem) -> list[Setting]:
        """The openers, what the fair table has taught, and the rest."""
        space = spaces.listed().networks[self.id]
        directed = problem.neighbourhood.directed and problem.times is None
        if (space.directed_only and not directed) or not (self.sees_graph or problem.has_columns):
            return []
        own, taught = [*space.own], [each for each in spaces.taught() if each.family == self.id]
        uses = self._uses_of_edges(problem)
        of_edges = [each for each in space.of_edges if each.options["edges"] in uses]
        if problem.undecided or not directed:
            own, taught, of_edges = (
                _without_directions(some, problem) for some in (own, taught, of_edges)
            )
        rest = taught + own[space.openers :]
        if self._may_see_structure(problem) and not self.has_memory:
            rest = [_with(own[0], extras="structure"), *rest]
        if uses:
            own, rest = ([_with(setting, edges="none") for setting in some] for some in (own, rest))
        first = own[: space.openers] + of_edges[:1] + rest + of_edges[1:]
        if problem.undecided and directed:
            more = [_with(setting, edges="none") for setting in space.own] if uses else space.own
            first += [setting for setting in more if setting not in first]
        if self.sees_graph and problem.times is None:
            first = [_with(setting, extras="none") for setting in first]
        return [setting for setting in first if self._can_train(setting.options)]

    def openers(self, problem: Problem) -> int:
        """How many of its first settings a search starts with."""
        space, uses = spaces.listed().networks[self.id], self._uses_of_edges(problem)
        return space.openers + any(setting.options["edges"] in uses for setting in space.of_edges)

    def _uses_of_edges(self, problem: Problem) -> list[str]:
        """What it may learn from attributes of arcs, if these have some: values of ``edges``.

        Nothing where nodes have times: a relation is followed both ways, and so to later nodes.
        """
        if not problem.described or problem.times is not None or self.in_parts is not None:
            return []
        few = 0 < len(relations_of(problem.described)) <= _FEW_RELATIONS
        known = map(str, spaces.listed().networks[self.id].choices.get("edges", []))
        return [use for use in known if few or use != "relations"]

    def _may_see_structure(self, problem: Problem) -> bool:
        """Not where nodes have times, for which it is seen from the end, nor in a block."""
        return self.sees_graph and problem.times is None and self.in_parts is None

    def space(self, problem: Problem) -> Space:
        """The options of the model, and the numbers of a member."""
        choices: Space = {
            **spaces.listed().networks[self.id].choices,
            **spaces.listed().numbers["networks"],
        }
        without = {"direction": problem.neighbourhood.directed, "lam": self.has_memory}
        if uses := self._uses_of_edges(problem):
            choices["edges"] = [*uses]
        without["edges"] = bool(uses)
        if self._may_see_structure(problem):
            choices["extras"] = ["none", "structure"]
        choices = {name: values for name, values in choices.items() if without.get(name, True)}
        return choices if problem.times is None else spaces.space_in_time(self.id, choices)

    def cost(self, problem: Problem, setting: Setting) -> Cost:
        """That of a few dozen epochs; the RAM of other devices is measured, and not guessed."""
        if not self._can_train(setting.options):
            return Cost(np.inf, 0.0)
        if is_gpu(find_device(self.device)):
            return Cost(0.0, 0.0)
        cost = network_cost(problem, setting.options, sees_graph=self.sees_graph)
        if self.in_parts:  # the RAM of the workers together, and not that of this process
            room = self.memory * self.in_parts if self.memory else room_in_ram(None)
            return Cost(cost.seconds if cost.bytes <= room else np.inf, 0.0)
        return cost.within(self.memory)

    def _can_train(self, options: Mapping[str, Any]) -> bool:
        """On a graph in parts: networks whose outputs need not have all of it in RAM either."""
        if self.in_parts is None:
            return True
        needs_all = options.get("address") == "rows" or options.get("edges", "none") != "none"
        return self.has_memory and not needs_all

    def fit(
        self,
        problem: Problem,
        settings: Sequence[Setting],
        splits: Sequence[int],
        *,
        look: Look = lambda: None,
    ) -> Fits:
        """One population, or one network after the other where that takes less time.

        If time is up, members that have not begun have no result; nor if the RAM is too small.
        """
        options, standard = dict(settings[0].options), UNSCALED
        sees_structure = options.pop("extras", "none") == "structure"
        scale = feature_scale(problem.x if self.sees_graph else problem.own)
        structure = structure_scales(problem) if sees_structure else None
        of_graph = problem.described, arc_scales(problem), structure
        data = as_data(problem, self.id, scale, *of_graph[1:])
        if not problem.classes:
            data, standard = standardised(data)
        fits: Fits = [{} for _ in settings]
        places = [(of_setting, split) for of_setting in fits for split in splits]
        members = [
            Member(split=split, seed=self.seed + split, **setting.numbers)
            for setting in settings
            for split in splits
        ]
        results = self._trained(problem, data, options, members, look)
        if not results:
            return fits
        sizes = (data.x.shape[1], problem.objective.outputs(data.y), problem.nodes)
        device = find_device("cpu" if self.in_parts else self.device)
        network = built(self.id, sizes, problem.nodes, problem.described, options)
        network = network.to(device).eval()
        inputs = make_inputs(data, network, device)
        for (of_setting, split), result in zip(places, results, strict=False):
            if result.diverged or not result.epochs:
                continue
            state = result.state or {}
            part = Network(self.id, options, sizes, scale, state, standard, *of_graph)
            said = part.of_network(network, inputs, problem.known(split))
            val = said[problem.masks.val[:, split]]
            if result.val_outputs is not None:
                val = in_unit(result.val_outputs, standard)
            of_setting[split] = Fit(val, said[problem.masks.test], part)
        return fits

    def _trained(
        self,
        problem: Problem,
        data: Data,
        options: Mapping[str, Any],
        members: Sequence[Member],
        look: Look,
    ) -> list[Result]:
        """A result for each member, or for the first ones.

        A network that fills the device is trained by itself, as a population gains nothing then.
        """
        on_cpu = not is_gpu(torch.device(self.device))
        fills = on_cpu and self.in_parts is None and problem.nodes >= _LARGE
        at_once, results = 1 if fills else len(members), list[Result]()
        rules, few = self.rules, int(problem.masks.val[:, 0].sum()) < _MANY
        if problem.ranks_few:  # the best score of many epochs: the smallest loss says more
            rules = replace(rules, stop="loss", keep="loss")
        for begin in range(0, len(members), at_once):
            try:
                if results:
                    look()
                results += train(
                    data,
                    self.id,
                    members[begin : begin + at_once],
                    options=options,
                    epochs=self.epochs,
                    patience=self.patience,
                    rules=rules,
                    device=self.device,
                    memory=self.memory,
                    keep_models=True,
                    # Otherwise the best epoch would look better than it is.
                    cross_fit=few and not problem.ranks_few,
                    progress=lambda done, total: look(),
                    workers=self.in_parts,
                )
            except (Enough, TooLittleError):
                break
        return results


def _without_directions(settings: Iterable[Setting], problem: Problem) -> list[Setting]:
    """The same settings where directions do not matter, so that some of them are alike."""
    changed: list[Setting] = []
    for setting in settings:
        if problem.times is not None:
            setting = replace(setting, options=spaces.in_time(setting.family, setting.options))
        elif "direction" in setting.options:
            setting = replace(setting, options={**setting.options, "direction": "undirected"})
        if setting not in changed:
            changed.append(setting)
    return changed


def _with(setting: Setting, **options: str) -> Setting:
    """A setting with other options, as far as it does not say them itself."""
    return replace(setting, options=options | dict(setting.options))
