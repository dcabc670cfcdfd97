"""Networks of the registry: fitted as populations, and what a fitted one says of every node."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from scipy import sparse
from torch import Tensor

from memohop.errors import UsageError
from memohop.fit._candidate import (
    Cost,
    Family,
    Fit,
    Fits,
    Look,
    Setting,
    kept_bytes,
    room_in_ram,
)
from memohop.fit._neighbourhood import EVERY, Matrix, Rows
from memohop.fit._problem import Inputs, Outputs, Problem
from memohop.fit._saved import Saved, Sizes, check_state, checked_options
from memohop.fit._views import side_by_side
from memohop.fit.candidates import spaces
from memohop.jobs.space import Space
from memohop.jobs.train import train
from memohop.networks import MemoryNetwork, NodeModel, build
from memohop.pyg import Data
from memohop.training import DEFAULT_RULES, Enough, Member, Result, Rules
from memohop.training.device import TooLittleError, find_device, is_gpu
from memohop.training.scale import Scale, standardised
from memohop.training.task import make_inputs

_DEGREE = 3.0  # the logarithm of degrees is divided by this to match the columns
_FEWEST = 50  # epochs of a network that is worth its time
_AS_IT_IS = Scale(0.0, 1.0)  # of targets that are not standardised
_LARGEST = 10_000  # channels or layers of a network
_MANY = 10_000  # validation nodes, of which the best epoch is hardly luck
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
    """

    model: str
    options: Mapping[str, Any]
    sizes: tuple[int, int, int]
    scale: float
    state: Mapping[str, Tensor]
    standard: Scale = _AS_IT_IS

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
        network = build(self.model, *self.sizes[:2], num_nodes=inputs.nodes, **self.options)
        state = dict(self.state)
        for name in network.per_node:
            state[name] = _of_nodes(state[name], inputs)
        network.load_state_dict(state)
        _know(network, inputs.y, self.standard)
        return network.eval(), as_data(inputs, self.model, self.scale)

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
        about = {"model": self.model, "options": dict(self.options), "scale": self.scale}
        arrays = {name: value.numpy(force=True) for name, value in self.state.items()}
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
        if _sees_graph(model):
            features = sizes.features + (3 if sizes.directed else 1)
        channels = (features, sizes.outputs, sizes.nodes)
        try:
            with torch.device("meta"):  # shapes alone: nothing is allocated
                network = build(model, *channels[:2], num_nodes=sizes.nodes, **options)
        except (TypeError, ValueError, ArithmeticError, RuntimeError) as error:
            raise UsageError(f"the options of {model} do not make a network ({error})") from error
        state = {name: torch.from_numpy(array) for name, array in saved.arrays.items()}
        check_state(network, state)
        scale, spread, mean = (saved.value(name, float) for name in ("scale", "spread", "mean"))
        if not (min(scale, spread) > 0 and np.isfinite([scale, spread, mean]).all()):
            raise UsageError(f"a network has {scale=}, {spread=}, {mean=}")
        return cls(model, options, channels, scale, state, Scale(mean, spread))


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
        return _sees_graph(self.id)

    def first(self, problem: Problem) -> list[Setting]:
        """The openers, what the fair table has taught, and the rest."""
        space = spaces.listed().networks[self.id]
        directed = problem.neighbourhood.directed and problem.times is None
        if (space.directed_only and not directed) or not (self.sees_graph or problem.has_columns):
            return []
        own, taught = space.own, [each for each in spaces.taught() if each.family == self.id]
        if not directed:
            own, taught = (_without_directions(some, problem) for some in (own, taught))
        first = [*own[: space.openers], *taught, *own[space.openers :]]
        return [setting for setting in first if self._can_train(setting.options)]

    def openers(self, problem: Problem) -> int:
        """How many of its first settings a search starts with."""
        return spaces.listed().networks[self.id].openers

    def space(self, problem: Problem) -> Space:
        """The options of the model, and the numbers of a member."""
        choices = {
            **spaces.listed().networks[self.id].choices,
            **spaces.listed().numbers["networks"],
        }
        without = {"direction": problem.neighbourhood.directed, "lam": self.has_memory}
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
        return self.has_memory and options.get("address") != "rows"

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
        data = as_data(problem, self.id, scale)
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
        network = build(self.id, *sizes[:2], num_nodes=sizes[2], **options).to(device).eval()
        inputs = make_inputs(data, network, device)
        for (of_setting, split), result in zip(places, results, strict=False):
            if result.diverged or not result.epochs:
                continue
            part = Network(self.id, options, sizes, scale, result.state or {}, standard)
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


def network_cost(problem: Problem, options: Mapping[str, Any], *, sees_graph: bool) -> Cost:
    r"""What a network takes: the seconds of a few dozen epochs on a CPU, and its RAM.

    Both are guessed. An epoch (a training step and an evaluation) of :math:`L` layers of width
    :math:`D` takes about :math:`L D (5 |E| + 30 N)` nanoseconds of one thread, or :math:`10 L D N`
    if it does not see the graph, and holds about :math:`40 L D N` bytes of activations; a graph
    takes about 200 bytes and a microsecond for each of its :math:`|E|` arcs. These figures were
    measured on 100,000 nodes with 2,000,000 arcs and are good to a factor of two. With :math:`C`
    classes, logits and what is derived from them take about :math:`32 C N` bytes more.
    """
    hops, nodes, arcs = options.get("hops", 0), problem.nodes, problem.arcs.shape[1] * sees_graph
    # Each map of fsgnn takes its steps by itself, on two graphs.
    layers = hops * (hops + 1) if hops else options.get("num_layers", 1)
    channels, graphs = layers * options.get("hidden_channels", 1), 2 if hops else 1
    epoch = channels * (5e-9 * arcs + (3e-8 if sees_graph else 1e-8) * nodes)
    held = 200 * graphs * arcs + (40 * channels + 32 * problem.classes) * nodes
    seconds = 1e-6 * graphs * arcs + _FEWEST * epoch / torch.get_num_threads()
    return Cost(seconds, held + kept_bytes(problem))


def as_data(inputs: Inputs, model: str, scale: float) -> Data:
    """The graph in the form that the trainer takes.

    Columns are divided by ``scale``. A model that uses the graph gets those of edges, and the
    logarithm of each node's degree, as well as a node's own.
    """
    if _sees_graph(model):
        x = side_by_side([inputs.x / np.float32(scale), inputs.neighbourhood.degrees() / _DEGREE])
    else:
        x = inputs.own / np.float32(scale)
    arcs, weights = inputs.as_received()
    data = Data(
        x=x if sparse.issparse(x) else torch.from_numpy(np.ascontiguousarray(x)),
        y=torch.from_numpy(inputs.y),
        edge_index=torch.from_numpy(arcs),
        num_nodes=inputs.nodes,
    )
    if weights is not None:
        data.edge_weight = torch.from_numpy(weights)
    if isinstance(inputs, Problem):
        masks = inputs.masks
        data.train_mask, data.val_mask = map(torch.from_numpy, (masks.train, masks.val))
        metric = inputs.objective.metric
        data.metric, data.positive = metric.id, metric.positive
    return data


def feature_scale(x: Matrix) -> float:
    """The root mean square of the features that are not 0."""
    values = x.data if sparse.issparse(x) else x[x != 0]
    return float(np.sqrt(np.mean(np.square(values, dtype=np.float64)))) if values.size else 1.0


def _sees_graph(model: str) -> bool:
    return model != "mlp"


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
