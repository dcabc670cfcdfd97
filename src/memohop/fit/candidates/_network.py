"""Networks of the registry: fitted as populations, and what a fitted one says of every node."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from memohop.data.arcs import ArcAttribute
from memohop.errors import UsageError
from memohop.fit._candidate import (
    Cost,
    Family,
    Fit,
    Fits,
    Look,
    Setting,
    room_in_ram,
)
from memohop.fit._neighbourhood import EVERY, Rows
from memohop.fit._problem import Inputs, Outputs, Problem
from memohop.fit._saved import Saved, Sizes, check_state, checked_options
from memohop.fit.candidates import spaces
from memohop.fit.candidates._network_data import (
    arc_scales,
    as_data,
    feature_scale,
    network_cost,
    relations_of,
    sees_arcs,
)
from memohop.jobs.space import Space
from memohop.jobs.train import train
from memohop.networks import MemoryNetwork, NodeModel, build
from memohop.pyg import Data
from memohop.training import DEFAULT_RULES, Enough, Member, Result, Rules
from memohop.training.device import TooLittleError, find_device, is_gpu
from memohop.training.scale import Scale, standardised
from memohop.training.task import make_inputs

_AS_IT_IS = Scale(0.0, 1.0)  # of targets that are not standardised
_SCALES = "scales_of_arcs"  # an array beside the weights
_LARGEST = 10_000  # channels or layers of a network
_MANY = 10_000  # validation nodes, of which the best epoch is hardly luck
_FEW_RELATIONS = 10  # each has maps of its own
_LARGE = 5_000  # nodes with which a network fills a CPU; one by one they also take less RAM


@dataclass(frozen=True, eq=False)
class Network:
    """A fitted network.

    Attributes:
        model: Its id in the registry.
        options: Its options.
        sizes: The numbers of features, outputs and nodes that it was built for.
        scale: The number by which all features are divided.
        state: Parameters and buffers.
        standard: Mean and standard deviation of the numbers that it learned to predict.
        described: The attributes that the arcs of the graph of ``fit`` have.
        scales_of_arcs: The number by which each of them is divided; None if there are none.
    """

    model: str
    options: Mapping[str, Any]
    sizes: tuple[int, int, int]
    scale: float
    state: Mapping[str, Tensor]
    standard: Scale = _AS_IT_IS
    described: tuple[ArcAttribute, ...] = ()
    scales_of_arcs: NDArray[np.float32] | None = None

    @torch.no_grad()
    def outputs(self, inputs: Inputs, rows: Rows = EVERY) -> Outputs:
        """Probabilities of the classes, or the number."""
        network, data = self.ready(inputs)
        return _in_unit(inputs.passed(network, data), self.standard)[rows]

    @torch.no_grad()
    def of_network(
        self, network: NodeModel, inputs: Sequence[Any], targets: NDArray[Any]
    ) -> Outputs:
        """The same by a network of these options, given its inputs and the targets it may use."""
        network.load_state_dict(dict(self.state))
        _know(network, targets, self.standard)
        return _in_unit(network(*inputs), self.standard)

    def ready(self, inputs: Inputs) -> tuple[NodeModel, Data]:
        """The network with its parameters, and the graph in its input form."""
        network = _built(self.model, self.sizes, inputs.nodes, self.described, self.options)
        state = dict(self.state)
        for name in network.per_node:
            state[name] = _of_nodes(state[name], inputs)
        network.load_state_dict(state)
        _know(network, inputs.y, self.standard)
        data = as_data(inputs, self.model, self.scale, self.scales_of_arcs)
        return network.eval(), data

    @property
    def has_rows(self) -> bool:
        """Whether it has weights for each node of the graph of ``fit``."""
        return self.model == "linkx" or self.options.get("address") == "rows"

    @property
    def takes_labels(self) -> bool:
        """Whether it is given known labels."""
        return self.options.get("labels") == "memory"

    @property
    def takes_attributes(self) -> bool:
        """Whether it learned from attributes of arcs."""
        return self.options.get("edges", "none") != "none"

    def saved(self) -> Saved:
        """Everything but the sizes, which all parts of a model share."""
        about = {"model": self.model, "options": dict(self.options), "scale": self.scale}
        arrays = {name: value.numpy(force=True) for name, value in self.state.items()}
        if self.scales_of_arcs is not None:
            arrays[_SCALES] = self.scales_of_arcs
        return Saved(about | self.standard._asdict(), arrays)

    @classmethod
    def from_saved(cls, saved: Saved, view: None, sizes: Sizes) -> Network:
        """The network that was saved."""
        model, options = saved.value("model", str), saved.value("options", dict)
        values = checked_options(model, options).values()
        if any(type(value) is int and value > _LARGEST for value in values):
            raise UsageError(f"the options of {model} describe a network that is too large")
        # The columns, and for those that see the graph the degrees in each direction.
        features = sizes.features - sizes.of_edges
        if sees_arcs(model):
            features = sizes.features + (3 if sizes.directed else 1)
        channels = (features, sizes.outputs, sizes.nodes)
        try:
            with torch.device("meta"):  # shapes alone: nothing is allocated
                network = _built(model, channels, sizes.nodes, sizes.described, options)
        except (TypeError, ValueError, ArithmeticError, RuntimeError) as error:
            raise UsageError(f"the options of {model} do not make a network ({error})") from error
        scales = None
        if sizes.described:
            scales = saved.array(_SCALES, (len(sizes.described),))
            if (scales <= 0).any():
                raise UsageError(f"a network has {_SCALES} that are not above 0")
        arrays = {name: array for name, array in saved.arrays.items() if name != _SCALES}
        state = {name: torch.from_numpy(array) for name, array in arrays.items()}
        check_state(network, state)
        scale, spread, mean = (saved.value(name, float) for name in ("scale", "spread", "mean"))
        if not (min(scale, spread) > 0 and np.isfinite([scale, spread, mean]).all()):
            raise UsageError(f"a network has {scale=}, {spread=}, {mean=}")
        standard = Scale(mean, spread)
        return cls(model, options, channels, scale, state, standard, sizes.described, scales)


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
        if uses:
            own, rest = ([_with_edges(setting) for setting in some] for some in (own, rest))
        first = own[: space.openers] + of_edges[:1] + rest + of_edges[1:]
        if problem.undecided and directed:
            more = [_with_edges(setting) for setting in space.own] if uses else space.own
            first += [setting for setting in more if setting not in first]
        return [setting for setting in first if self._can_train(setting.options)]

    def openers(self, problem: Problem) -> int:
        """How many of its first settings a search starts with."""
        space, uses = spaces.listed().networks[self.id], self._uses_of_edges(problem)
        return space.openers + any(one.options["edges"] in uses for one in space.of_edges)

    def _uses_of_edges(self, problem: Problem) -> list[str]:
        """What it may learn from attributes of arcs, if these have some: values of ``edges``.

        Nothing where nodes have times: a relation is followed both ways, and so to later nodes.
        """
        if not problem.described or problem.times is not None or self.in_parts is not None:
            return []
        few = 0 < len(relations_of(problem.described)) <= _FEW_RELATIONS
        known = map(str, spaces.listed().networks[self.id].choices.get("edges", []))
        return [use for use in known if few or use != "relations"]

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
        options, standard = settings[0].options, _AS_IT_IS
        scale = feature_scale(problem.x if self.sees_graph else problem.own)
        of_arcs = problem.described, arc_scales(problem)
        data = as_data(problem, self.id, scale, of_arcs[1])
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
        network = _built(self.id, sizes, problem.nodes, problem.described, options)
        network = network.to(device).eval()
        inputs = make_inputs(data, network, device)
        for (of_setting, split), result in zip(places, results, strict=False):
            if result.diverged or not result.epochs:
                continue
            state = result.state or {}
            part = Network(self.id, options, sizes, scale, state, standard, *of_arcs)
            said = part.of_network(network, inputs, problem.known(split))
            val = said[problem.masks.val[:, split]]
            if result.val_outputs is not None:
                val = _in_unit(result.val_outputs, standard)
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


def _built(
    model: str,
    sizes: tuple[int, int, int],
    nodes: int,
    described: Sequence[ArcAttribute],
    options: Mapping[str, Any],
) -> NodeModel:
    """A network for a graph of this many nodes, whose arcs have these attributes."""
    return build(
        model,
        *sizes[:2],
        num_nodes=nodes,
        arc_attributes=len(described),
        relations=len(relations_of(described)),
        **options,
    )


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


def _with_edges(setting: Setting) -> Setting:
    """A setting that says that it learns nothing from attributes of arcs."""
    return replace(setting, options={**setting.options, "edges": "none"})


def _of_nodes(rows: Tensor, inputs: Inputs) -> Tensor:
    """Weights with a row for each node, zeros for nodes added after ``fit``."""
    if inputs.hidden is not None:
        return rows.masked_fill(torch.from_numpy(inputs.hidden)[:, None], 0)
    if inputs.of_fit == inputs.nodes:
        return rows
    padded = torch.zeros(inputs.nodes, *rows.shape[1:], dtype=rows.dtype)
    padded[: inputs.of_fit] = rows[: inputs.of_fit]
    return padded


def _know(network: NodeModel, targets: NDArray[Any], standard: Scale) -> None:
    """Put known targets into the memory of a network that takes them."""
    if isinstance(network, MemoryNetwork) and network.label_rate is not None:
        shown = torch.from_numpy(targets).to(network.classifier.weight.device)
        network.know(standard.standardise(shown) if shown.is_floating_point() else shown)


def _in_unit(output: Any, standard: Scale) -> Outputs:
    """Probabilities of the classes, or the number, from what a network returns."""
    logits = output[0] if isinstance(output, tuple) else output
    said = logits.softmax(-1) if logits.shape[-1] > 1 else standard.restore(logits)
    return said.cpu().numpy()
