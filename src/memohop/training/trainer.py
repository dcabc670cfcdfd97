"""From (data, model, members) to results."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from memohop.allocator import release_freed_memory
from memohop.data.arguments import whole_number
from memohop.data.check import as_columns, check
from memohop.errors import UsageError
from memohop.networks import NodeModel
from memohop.networks import build as build_model
from memohop.nn import SparseFeatures
from memohop.out_of_memory import is_out_of_memory, telling_of_memory
from memohop.pyg import Data
from memohop.training.capture import CapturedStep
from memohop.training.member import Member, MemberResult
from memohop.training.objective import objective_of
from memohop.training.plan import members_at_once
from memohop.training.population import Population, Task, build_seeded
from memohop.training.rules import DEFAULT_RULES, Rules

Progress = Callable[[int, int], None]

_SPARSE_BELOW = 0.2  # density of features under which stored values are faster
_LOOK_EVERY = 10  # epochs between two looks at who has stopped
_LOOK_EVERY_ON_GPU = 50  # a look waits for the device, and leaving someone behind a new capture
_COMPACT_AT = 0.25  # share of stopped members that is worth leaving behind


class AloneWarning(UserWarning):
    """A module that cannot be vectorised is trained one member at a time."""


class DivergedWarning(UserWarning):
    """Members had a loss or an output that is not finite; they have no scores."""


class Enough(Exception):  # noqa: N818
    """Raised by ``progress`` to end the training: members count with what they have reached."""


def train(
    data: Data,
    model: str | Callable[[], nn.Module],
    members: Sequence[Member],
    *,
    options: Mapping[str, Any] | None = None,
    epochs: int = 500,
    patience: int | None = None,
    rules: Rules = DEFAULT_RULES,
    device: torch.device | str = "cpu",
    memory: int | None = None,
    features: str = "auto",
    keep_models: bool = False,
    capture: bool = True,
    progress: Progress | None = None,
) -> list[MemberResult]:
    """Train a population of networks and keep each one's best epoch.

    A member's result depends on the data, the model and the member alone: neither on who is
    trained beside it nor on how the population is cut into chunks. It is the same to the bit as
    far as the matrix library rounds one of several products alike; on one thread of a CPU that
    held for all models but ``acm-gcn``, ``gatv2`` and ``gatv2+de``. The exception is a call with a
    single member on a CPU: it goes without ``vmap``, which saves a tenth to a half of the time,
    and rounds differently. Its first losses agree to 1e-6; what training makes of the last bit may
    be another epoch to keep. Whoever wants the very figures of a population gives it company.

    A member whose loss or outputs stop being finite has diverged: its scores are NaN,
    :func:`select` does not choose it, and a :class:`DivergedWarning` counts such members.

    Args:
        data: what :func:`memohop.load` gives, or any PyG ``Data`` with ``x``, ``y``,
            ``edge_index`` and ``train_mask``, ``val_mask``, ``test_mask`` of shape ``[N]`` or
            ``[N, splits]``. ``data.metric`` names the score, one of
            :data:`~memohop.training.metrics.METRICS`; the default is accuracy.
            Features are computed with in PyTorch's default type, whatever theirs; a sparse tensor
            is taken as sparse features.
        model: an id from :func:`memohop.models`, or a function that makes a module called as
            ``module(x, edge_index)``.
        members: the runs, see :class:`Member` and :func:`grid`.
        options: options of the model, where it is an id.
        epochs: the most steps a member takes.
        patience: a member stops after so many epochs without a better validation score, or
            as ``rules`` say.
        rules: optimiser, schedule, stop and which epoch counts; see :class:`Rules`.
        device: ``"cpu"`` or ``"cuda"``.
        memory: the most bytes that this process may hold, its resident memory on a CPU and what
            it has on a GPU; where one member does not fit, it is refused before training. By
            default what the device can spare.
        features: ``"sparse"``, ``"dense"``, or ``"auto"`` to decide by density.
        keep_models: whether results carry the parameters of the best epoch.
        capture: on a GPU, whether to capture the step as a CUDA graph and replay it.
        progress: called as ``progress(done, total)`` with counts of member-epochs. If it raises
            :class:`Enough`, the training ends there.

    Returns:
        One result per member, in the order of ``members``.
    """
    if isinstance(model, nn.Module):
        raise UsageError(
            "model is a module that is built already, but each member starts from its own seed: "
            "pass a function that builds it, for example `lambda: Net(...)`"
        )
    epochs = whole_number("epochs", epochs, least=1)
    if patience is not None and whole_number("patience", patience, least=1) >= epochs:
        patience = None  # a member cannot wait that long
    if memory is not None:
        memory = whole_number("memory", memory, least=1)
    if not members:
        raise UsageError("members is empty: pass at least one Member()")
    place = find_device(device)
    name = model if isinstance(model, str) else "the module"
    with telling_of_memory("reading the features", lower="the number of features"):
        data, features = in_default_type(data, features)
        check(data)
    build = make_builder(model, data, dict(options or {}))
    with telling_of_memory(f"building {name}", lower="hidden_channels or num_layers"):
        network = build_seeded(build, seed=0)
        task = make_task(data, network, place, features)
    for member in members:
        if member.split >= len(task.masks):
            raise UsageError(f"split={member.split}, but the data has {len(task.masks)} split(s)")
    task.objective.check(task.y, task.masks, {m.split for m in members})

    run = _Run(
        task,
        build,
        epochs,
        patience,
        rules,
        keep_models,
        progress,
        total=epochs * len(members),
        capture=capture,
    )
    with telling_of_memory(
        f"training {name} for {epochs} epochs", lower="hidden_channels, num_layers or epochs"
    ):
        results = run.all(members, network, memory)
    if diverged := sum(result.diverged for result in results):
        warnings.warn(
            f"{diverged} of {len(results)} members of {name} diverged: a loss or an output was "
            "not finite, and they have no scores; give a lower lr, or features of a smaller scale",
            DivergedWarning,
            stacklevel=2,
        )
    return results


class _Run:
    """What the chunks of one call have in common."""

    def __init__(
        self,
        task: Task,
        build: Callable[[], nn.Module],
        epochs: int,
        patience: int | None,
        rules: Rules,
        keep_models: bool,
        progress: Progress | None,
        total: int,
        capture: bool,
    ) -> None:
        self.task, self.build, self.epochs, self.patience = task, build, epochs, patience
        self.rules, self.keep_models, self.progress = rules, keep_models, progress
        self.done, self.total, self.capture = 0, total, capture
        self.vectorised: bool | None = None

    def all(
        self, members: Sequence[Member], network: nn.Module, memory: int | None
    ) -> list[MemberResult]:
        """Train all members, chunk by chunk."""
        together = isinstance(network, NodeModel) or _can_be_vectorised(self, members[0])
        if len(members) > 1:  # who is left alone in a chunk goes the way of the others
            self.vectorised = together
        kept = sum(value.numel() * value.element_size() for value in network.parameters())
        size = members_at_once(
            self._try_out,
            members,
            memory=memory,
            for_results=len(members) * kept if self.keep_models else 0,
            epochs=self.epochs,
            device=self.task.y.device,
            most=None if together else 1,
        )
        results: list[MemberResult] = []
        while len(results) < len(members):
            if memory is not None:
                release_freed_memory()
            done = self.done
            try:
                results += self.chunk(members[len(results) : len(results) + size])
            except (MemoryError, RuntimeError) as error:
                if size == 1 or not is_out_of_memory(error):
                    raise
                size, self.done = size // 2, done
        return results

    def _try_out(self, members: Sequence[Member], steps: int) -> None:
        population = self.population(members)
        for _ in range(min(steps, self.epochs)):
            population.step()

    def population(self, members: Sequence[Member]) -> Population:
        return Population(
            self.task,
            self.build,
            members,
            epochs=self.epochs,
            patience=self.patience,
            rules=self.rules,
            keep_models=self.keep_models,
            vectorised=self.vectorised,
        )

    def chunk(self, members: Sequence[Member]) -> list[MemberResult]:
        """Train some members to the end."""
        population = self.population(members)
        step = self._stepper(population)
        look_every = _LOOK_EVERY_ON_GPU if self.task.y.is_cuda else _LOOK_EVERY
        places = list(range(len(members)))  # where each one left belongs in the chunk
        results: dict[int, MemberResult] = {}
        for epoch in range(self.epochs):
            step()
            self.done += len(places)
            if epoch % look_every and epoch + 1 < self.epochs:
                continue
            running = population.running().cpu()
            stopped = (~running).nonzero().flatten().tolist()
            if len(stopped) >= _COMPACT_AT * len(places):
                found = population.results(stopped)
                results |= {places[i]: r for i, r in zip(stopped, found, strict=True)}
                self.done += len(stopped) * (self.epochs - epoch - 1)
                left = running.nonzero().flatten()
                places = [places[i] for i in left.tolist()]
                if places:
                    population.select(left.to(self.task.y.device))
                    step = self._stepper(population)
            if self._is_enough() or not places:
                break
        found = population.results(range(len(places)))
        results |= dict(zip(places, found, strict=True))
        return [results[i] for i in range(len(members))]

    def _is_enough(self) -> bool:
        if self.progress is not None:
            try:
                self.progress(self.done, self.total)
            except Enough:
                return True
        return False

    def _stepper(self, population: Population) -> Callable[[], None]:
        captured = self.capture and population.is_ours and self.task.y.is_cuda
        return CapturedStep(population.step) if captured else population.step


def find_device(name: torch.device | str) -> torch.device:
    """The device of that name, if it is there."""
    device = torch.device(name)
    if device.type == "cuda" and not torch.cuda.is_available():
        raise UsageError(f"device={name!s}, but PyTorch sees no GPU here: use device='cpu'")
    return device


def make_builder(
    model: str | Callable[[], nn.Module], data: Data, options: dict[str, Any]
) -> Callable[[], nn.Module]:
    """A function that makes one network for this data."""
    if not isinstance(model, str):
        if options:
            raise UsageError("options are for model ids; let the function set its own")
        return model
    outputs = objective_of(data).outputs(data.y)
    channels, nodes = data.x.shape[1], data.num_nodes
    return lambda: build_model(model, channels, outputs, num_nodes=nodes, **options)


def in_default_type(data: Data, features: str = "auto") -> tuple[Data, str]:
    """The data with dense features in the type of the networks, and how to take these.

    Sparse ones are taken as such unless something else is asked for.
    """
    x = data.x
    if not isinstance(x, Tensor) or not (x.is_floating_point() or x.layout != torch.strided):
        return data, features  # for the check to refuse
    if x.dtype == torch.get_default_dtype() and x.layout == torch.strided:
        return data, features
    if x.layout != torch.strided and features == "auto":
        features = "sparse"
    data = copy.copy(data)
    data.x = x.to_dense().to(torch.get_default_dtype())
    return data, features


def make_task(data: Data, network: nn.Module, device: torch.device, features: str) -> Task:
    """The data as the network takes it, on its device."""
    if features not in ("auto", "sparse", "dense"):
        raise UsageError(f"features must be auto, sparse or dense, not {features!r}")
    objective = objective_of(data)
    x: Tensor | SparseFeatures = data.x.to(device)
    if not isinstance(network, NodeModel):
        graph = data.edge_index.to(device)
    else:
        graph = network.prepare_data(data, device)
        density = float((data.x != 0).float().mean())
        if features == "sparse" or (features == "auto" and density < _SPARSE_BELOW):
            x = SparseFeatures(data.x.to(device))
    masks = torch.stack(as_columns(data)).permute(2, 0, 1).to(device, torch.get_default_dtype())
    return Task((x, graph), objective.targets(data.y).to(device), masks, objective)


def _can_be_vectorised(run: _Run, member: Member) -> bool:
    reason = _obstacle(run, member)
    if reason is None:
        return True
    warnings.warn(
        f"this module cannot be vectorised, so members are trained one at a time ({reason})",
        AloneWarning,
        stacklevel=3,
    )
    return False


def _obstacle(run: _Run, member: Member) -> str | None:
    """Why a module that is not ours cannot be trained as a population, found by trying."""
    population = run.population([member, member])
    before = {name: value.clone() for name, value in population.buffers.items()}
    try:
        population.step()
    except (RuntimeError, ValueError, TypeError, NotImplementedError) as error:
        return str(error).strip().splitlines()[0]
    for name, value in population.buffers.items():
        if not torch.equal(value, before[name]):  # vmap's running variances differ from torch's
            return f"it changes its buffer {name} while training"
    return None
