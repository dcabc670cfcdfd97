"""Networks of the registry, as populations: all settings and splits of a structure together."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from scipy import sparse
from torch import Tensor

from memohop.errors import UsageError, check_choice
from memohop.inference import block_logits
from memohop.networks import MemoryNetwork, NodeModel, build
from memohop.own.candidates.cost import least_seconds
from memohop.own.candidates.family import Fits, Fitted, Look, Setting, no_fits
from memohop.own.candidates.learned import packaged
from memohop.own.candidates.spaces import SPACES, Space, near_numbers
from memohop.own.neighbourhood import Matrix
from memohop.own.problem import Inputs, Outputs, Problem
from memohop.own.saved import Saved, Sizes, check_state, checked_options
from memohop.own.views import side_by_side
from memohop.parts.train import train
from memohop.pyg import Data
from memohop.training import Enough, Member, MemberResult, Rules, Scale, standardised
from memohop.training.device import find_device, traits_of
from memohop.training.rules import DEFAULT_RULES
from memohop.training.task import make_inputs

DEGREE = 3.0
"""The logarithm of degrees is divided by this to match the columns."""

_AS_IT_IS = Scale(0.0, 1.0)
_MOST = 10_000  # channels or layers of a network
_MANY = 10_000  # validation nodes, of which the best epoch is hardly luck
_LARGE = 5_000  # nodes from which on a CPU networks take less time one by one, and less RAM


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
        arc_scale: The number by which the weights of arcs are divided.
    """

    model: str
    options: Mapping[str, Any]
    sizes: tuple[int, int, int]
    scale: float
    state: Mapping[str, Tensor]
    standard: Scale = _AS_IT_IS
    arc_scale: float = 1.0

    @torch.no_grad()
    def outputs(self, inputs: Inputs) -> Outputs:
        """Probabilities of the classes, or the number."""
        network, data = self.ready(inputs)
        if isinstance(network, MemoryNetwork):
            return _said(_by_rows(network, data), self.standard)
        return _said(network(*make_inputs(data, network, torch.device("cpu"))), self.standard)

    def ready(self, inputs: Inputs) -> tuple[NodeModel, Data]:
        """The network with its parameters, and the graph in its input form."""
        network = build(self.model, *self.sizes[:2], num_nodes=inputs.nodes, **self.options)
        state = dict(self.state)
        for name in network.per_node:
            state[name] = self._of_nodes(state[name], inputs)
        network.load_state_dict(state)
        _know(network, inputs.y, self.standard)
        return network.eval(), as_data(inputs, self.model, self.scale, self.arc_scale)

    def _of_nodes(self, rows: Tensor, inputs: Inputs) -> Tensor:
        """Weights with a row for each node, zeros for nodes added after ``fit``."""
        if inputs.hidden is not None:
            return rows.masked_fill(torch.from_numpy(inputs.hidden)[:, None], 0)
        if inputs.of_fit == inputs.nodes:
            return rows
        padded = torch.zeros(inputs.nodes, *rows.shape[1:], dtype=rows.dtype)
        padded[: inputs.of_fit] = rows[: inputs.of_fit]
        return padded

    @property
    def has_rows(self) -> bool:
        """Whether it has weights for each node of the graph of ``fit``."""
        return self.model == "linkx" or self.options.get("address") == "rows"

    @property
    def takes_labels(self) -> bool:
        """Whether it is given known labels."""
        return self.options.get("labels") == "memory"

    def saved(self) -> Saved:
        """Everything but the sizes, which all parts of a model share."""
        about = {
            "model": self.model,
            "options": dict(self.options),
            "scale": self.scale,
            "arc_scale": self.arc_scale,
        }
        # Copies: layers that share a gate have one each.
        state = {name: value.clone().contiguous() for name, value in self.state.items()}
        return Saved(about | self.standard._asdict(), state)

    @classmethod
    def from_saved(cls, saved: Saved, view: None, sizes: Sizes) -> Network:
        """The network that was saved."""
        check_choice("model", model := saved.value("model", str), SPACES)
        options = saved.value("options", dict)
        if any(
            type(one) is int and one > _MOST for one in checked_options(model, options).values()
        ):
            raise UsageError(f"the options of {model} describe a network that is too large")
        channels = (_width(model, sizes), sizes.outputs, sizes.nodes)
        try:
            with torch.device("meta"):  # shapes alone: nothing is allocated
                network = build(model, *channels[:2], num_nodes=sizes.nodes, **options)
        except (TypeError, ValueError, ArithmeticError, RuntimeError) as error:
            raise UsageError(f"the options of {model} do not make a network ({error})") from error
        check_state(network, saved.tensors)
        names = ("scale", "arc_scale", "spread", "mean")
        scale, arc_scale, spread, mean = numbers = [saved.value(name, float) for name in names]
        if not (min(numbers[:3]) > 0 and np.isfinite(numbers).all()):
            listed = ", ".join(map("{}={}".format, names, numbers))
            raise UsageError(f"a network has {listed}")
        return cls(model, options, channels, scale, saved.tensors, Scale(mean, spread), arc_scale)


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
        return _sees_graph(self.id)

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
        room = self.memory * self.in_parts if self.memory and self.in_parts else None
        return least_seconds(
            problem, setting.options, self.device, sees_graph=self.sees_graph, room=room
        )

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

        If time is up, members that have not begun have no result.
        """
        scale, arc_scale = feature_scale(problem.x), mean_weight(problem.weights)
        data, standard = as_data(problem, self.id, scale, arc_scale), _AS_IT_IS
        options = settings[0].options
        if not problem.classes:
            data, standard = standardised(data)
        members = [
            Member(split=split, seed=self.seed + split, **setting.numbers)
            for setting in settings
            for split in splits
        ]
        at_once, ended = 1 if self._one_by_one(problem) else len(members), False
        results: list[MemberResult] = []

        def progress(done: int, total: int) -> None:
            nonlocal ended
            try:
                look((len(results) + at_once * done / total) / len(members))
            except Enough:
                ended = True
                raise

        while len(results) < len(members) and not ended:
            results += train(
                data,
                self.id,
                members[len(results) : len(results) + at_once],
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
        sizes = (data.x.shape[1], problem.objective.outputs(data.y), problem.nodes)
        network = build(self.id, *sizes[:2], num_nodes=problem.nodes, **options)
        sound = [
            index for index, result in enumerate(results) if result.epochs and not result.diverged
        ]
        states = [results[index].state or {} for index in sound]
        known = [problem.known(splits[index % len(splits)]) for index in sound]
        by_rows = self.in_parts is not None
        spoken = _say(network, states, data, standard, self.device, known, by_rows=by_rows)
        found = no_fits(settings)
        for index, state, said in zip(sound, states, spoken, strict=True):
            setting, split = divmod(index, len(splits))
            part = Network(self.id, options, sizes, scale, state, standard, arc_scale)
            crossed = results[index].val_outputs
            val = problem.masks.val[:, splits[split]]
            of_val = said[val] if crossed is None else _said(crossed, standard)
            found[setting][splits[split]] = Fitted(
                of_val, said[problem.masks.test], part if keep else None
            )
        return found


def feature_scale(x: Matrix) -> float:
    """The root mean square of the features that are not 0."""
    values = x.data if sparse.issparse(x) else x[x != 0]
    return float(np.sqrt(np.mean(np.square(values, dtype=np.float64)))) if values.size else 1.0


def mean_weight(weights: NDArray[np.float32] | None) -> float:
    """The mean weight of the arcs, so that an average arc counts as much as an added self-loop."""
    mean = 1.0 if weights is None or not weights.size else float(np.mean(weights, dtype=np.float64))
    return mean or 1.0


def as_data(inputs: Inputs, model: str, scale: float, arc_scale: float) -> Data:
    """The graph in the form that the trainer takes.

    A model that uses the graph gets the logarithm of each node's degree as well as its columns.

    Args:
        inputs: The graph.
        model: The id of the model.
        scale: The number by which features are divided.
        arc_scale: The number by which weights of arcs are divided.
    """
    x = inputs.x / np.float32(scale)
    if _sees_graph(model):
        x = side_by_side([x, inputs.neighbourhood.degrees()[0] / DEGREE])
    data = Data(
        x=x if sparse.issparse(x) else torch.from_numpy(np.ascontiguousarray(x)),
        y=torch.from_numpy(inputs.y),
        edge_index=torch.from_numpy(inputs.arcs),
        num_nodes=inputs.nodes,
    )
    if inputs.weights is not None:
        data.edge_weight = torch.from_numpy(inputs.weights / np.float32(arc_scale))
    if isinstance(inputs, Problem):
        masks = inputs.masks
        data.train_mask, data.val_mask = map(torch.from_numpy, (masks.train, masks.val))
        data.metric = inputs.objective.metric.id
    return data


def _sees_graph(model: str) -> bool:
    return model != "mlp"


def _width(model: str, sizes: Sizes) -> int:
    """How many features a network gets: the columns, and the degrees in each direction."""
    return sizes.features + _sees_graph(model) * (3 if sizes.directed else 1)


@torch.no_grad()
def _say(
    network: NodeModel,
    states: Sequence[Mapping[str, Tensor]],
    data: Data,
    standard: Scale,
    device: str,
    known: Sequence[NDArray[Any]],
    *,
    by_rows: bool,
) -> Iterator[Outputs]:
    """The outputs of a network for every node, with each of several sets of parameters.

    Args:
        network: The network.
        states: The sets of parameters.
        data: The graph.
        standard: Mean and standard deviation of the numbers that it learned to predict.
        device: The device to compute on.
        known: For each set of parameters, the targets that it may use.
        by_rows: Whether to compute some rows at a time, which networks with memory can.
    """
    home = find_device("cpu" if by_rows else device)
    inputs = None if by_rows else make_inputs(data, network, home)
    network.to(home).eval()
    for state, targets in zip(states, known, strict=True):
        network.load_state_dict(dict(state))
        _know(network, targets, standard)
        if inputs is None:
            assert isinstance(network, MemoryNetwork)
            yield _said(_by_rows(network, data), standard)
        else:
            yield _said(network(*inputs), standard)


def _by_rows(network: MemoryNetwork, data: Data) -> Tensor:
    """The logits, computed some rows at a time."""
    return block_logits(network, data.x, data.edge_index, data.get("edge_weight"))


def _know(network: NodeModel, targets: NDArray[Any], standard: Scale) -> None:
    """Put known targets into the memory of a network that takes them."""
    if isinstance(network, MemoryNetwork) and network.label_rate is not None:
        shown = torch.from_numpy(targets).to(network.classifier.weight.device)
        network.know(standard.standardise(shown) if shown.is_floating_point() else shown)


def _said(output: Any, standard: Scale) -> Outputs:
    """Probabilities of the classes, or the number, from what a network returns."""
    logits = output[0] if isinstance(output, tuple) else output
    said = logits.softmax(-1) if logits.shape[-1] > 1 else standard.restore(logits)
    return said.cpu().numpy()
