"""From (data, model, members) to results."""

from __future__ import annotations

import math
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import torch
from torch import Tensor, nn

from memohop.data.check import check
from memohop.errors import MemohopWarning, UsageError, whole_number
from memohop.networks import NodeModel
from memohop.ram import is_out_of_memory, release_freed_ram, reporting_out_of_memory
from memohop.training.device import captured, find_device, traits_of, waiter
from memohop.training.member import Member, Result
from memohop.training.objective import Objective
from memohop.training.plan import members_at_once
from memohop.training.population import Population, build_seeded
from memohop.training.rules import DEFAULT_RULES, Rules
from memohop.training.task import Task, in_default_type, make_builder, make_task
from memohop.training.thrift import Thrift

if TYPE_CHECKING:
    from memohop.pyg import Data

Progress = Callable[[int, int], None]

_COMPACT_AT = 0.25  # share of stopped members at which continuing without them may pay off
_LONG = 0.25  # seconds after which the progress is reported, however few epochs they were


class AloneWarning(MemohopWarning):
    """A module cannot be vectorised, so it is trained one member at a time."""


class DivergedWarning(MemohopWarning):
    """Members had a loss or an output that is not finite; they have no scores."""


class Enough(Exception):  # noqa: N818
    """Raised by ``progress`` to end the training: members count with what they have reached.

    Example:
        >>> import memohop
        >>> from memohop.training import Enough
        >>> def stop_early(done, total):
        ...     if done >= total / 2:
        ...         raise Enough
        >>> data = memohop.load("csbm", nodes=60)
        >>> members = memohop.grid(seed=range(2))
        >>> results = memohop.train(data, "mlp", members, epochs=100, progress=stop_early)
        >>> results[0].epochs < 100
        True
    """


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
    cross_fit: bool = False,
    capture: bool = True,
    states: Literal["bfloat16"] | None = None,
    recompute: bool = False,
    progress: Progress | None = None,
) -> list[Result]:
    """Train a population of networks and keep each one's best epoch.

    A member's result depends on the data, the model and the member alone, not on the other members
    or on the chunks. It is the same to the bit wherever the matrix library rounds a product alike
    in batches of any size; on one thread of a CPU that held for all models but ``acm-gcn``,
    ``gatv2`` and ``gatv2+de``. The exception is a call with a single member on a CPU: it goes
    without ``vmap``, which saves a tenth to a half of the time, and rounds differently. Its first
    losses agree to 1e-6, but training can magnify the difference until another epoch is kept. To
    repeat the exact figures of a population, pass a second member.

    A member whose loss or outputs stop being finite has diverged: its scores are NaN,
    :func:`select` does not choose it, and a :class:`DivergedWarning` counts such members.

    Args:
        data: the result of :func:`memohop.load`, or any PyG ``Data`` with ``x``, ``y``,
            ``edge_index`` and ``train_mask``, ``val_mask``, ``test_mask`` of shape ``[N]`` or
            ``[N, splits]``; without ``test_mask``, test scores are NaN. ``y`` holds class numbers
            (int64), or numbers to predict (floating point, best :func:`standardised`).
            ``data.metric`` names the score, one of :data:`~memohop.training.metrics.METRICS`; by
            default accuracy, or R2. Features are converted to PyTorch's default type. Sparse
            features, a tensor or a matrix of SciPy, stay sparse up to the kernel, except for
            modules that are not of this library.
        model: an id from :func:`memohop.models`, or a function that makes a module called as
            ``module(x, edge_index)``.
        members: the runs, see :class:`Member` and :func:`grid`.
        options: options of the model, if it is an id.
        epochs: the most steps a member takes.
        patience: a member stops after this many epochs without a better validation score, or by
            the rule in ``rules``.
        rules: optimiser, schedule, stop and which epoch counts; see :class:`Rules`.
        device: ``"cpu"`` or ``"cuda"``.
        memory: the most bytes that this process may hold, its resident size on a CPU and its bytes
            on a GPU; if one member does not fit, the call is refused before training. By default
            as many as the device can spare.
        features: ``"sparse"``, ``"dense"``, or ``"auto"`` to decide by density; features that come
            sparse are sparse then.
        keep_models: whether results carry the parameters of the best epoch.
        cross_fit: whether results carry ``val_outputs``, to compare networks with models that do
            not choose among epochs by the validation nodes.
        capture: on a GPU, whether to capture the step as a CUDA graph and replay it.
        states: ``"bfloat16"`` for states of nodes with 16 bits, which takes up to half of the bytes
            on a GPU and changes results in their third digit; by default they are as exact as
            parameters.
        recompute: whether a network with memory computes each round again in the backward pass
            instead of keeping it, which takes fewer bytes and more time. Members are then trained
            one at a time.
        progress: called as ``progress(done, total)`` with counts of member-epochs. If it raises
            :class:`Enough`, the training ends: members of the current chunk count with the epochs
            that they have run; those of later chunks have run none, and their scores are NaN.

    Returns:
        One result per member, in the order of ``members``.

    Example:
        >>> import memohop
        >>> data = memohop.load("csbm", nodes=60, homophily=0.1)
        >>> members = memohop.grid(split=range(3), lr=(0.01, 0.03))
        >>> results = memohop.train(data, "gcn+mmp", members, epochs=5)
        >>> len(results), 0 <= results[0].test <= 1
        (6, True)
    """
    epochs, patience, memory = check_arguments(model, members, epochs, patience, memory)
    thrift = Thrift(states, recompute)
    found_device = find_device(device)
    name = model if isinstance(model, str) else "the module"
    with reporting_out_of_memory("reading the features", lower="the number of features"):
        data = in_default_type(data)
        check(data)
    build = make_builder(model, data, dict(options or {}))
    with reporting_out_of_memory(f"building {name}", lower="hidden_channels or num_layers"):
        network = build_seeded(build, seed=0)
        thrift.check(network, name)
        task = thrift.of_task(make_task(data, network, found_device, features))
    check_splits(members, task.y, task.masks, task.objective)

    total = epochs * len(members)
    kept = {"keep_models": keep_models, "cross_fit": cross_fit}
    run = _Run(task, build, epochs, patience, rules, kept, capture, thrift, progress, total)
    with reporting_out_of_memory(
        f"training {name} for {epochs} epochs", lower="hidden_channels, num_layers or epochs"
    ):
        results = run.all(members, network, memory)
    warn_of_diverged(results, name)
    return results


def check_arguments(
    model: str | Callable[[], nn.Module],
    members: Sequence[Member],
    epochs: int,
    patience: int | None,
    memory: int | None,
) -> tuple[int, int | None, int | None]:
    """Refuse arguments that cannot be right; the three numbers, as they are used."""
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
    return epochs, patience, memory


def check_splits(members: Sequence[Member], y: Tensor, masks: Tensor, objective: Objective) -> None:
    """Refuse members whose split does not exist, and splits that cannot be scored."""
    for member in members:
        if member.split >= len(masks):
            raise UsageError(f"split={member.split}, but the data has {len(masks)} split(s)")
    objective.check(y, masks, {member.split for member in members})


def warn_of_diverged(results: Sequence[Result], name: str) -> None:
    """Count the members that diverged, if there are any."""
    if diverged := sum(result.diverged for result in results):
        warnings.warn(
            f"{diverged} of {len(results)} members of {name} diverged: a loss or an output was "
            "not finite, and they have no scores; give a lower lr, or features of a smaller scale",
            DivergedWarning,
            stacklevel=3,
        )


@dataclass
class _Run:
    """The arguments and the progress that all chunks of one call share."""

    task: Task
    build: Callable[[], nn.Module]
    epochs: int
    patience: int | None
    rules: Rules
    kept: Mapping[str, bool]
    capture: bool
    thrift: Thrift
    progress: Progress | None
    total: int
    done: int = 0
    is_enough: bool = False
    vectorised: bool | None = None

    def all(
        self, members: Sequence[Member], network: nn.Module, memory: int | None
    ) -> list[Result]:
        """Train all members, chunk by chunk."""
        together = isinstance(network, NodeModel) or self._can_be_vectorised(members[0])
        if len(members) > 1:  # a member that is left alone in a chunk computes as the others do
            self.vectorised = together
        kept = sum(value.numel() * value.element_size() for value in network.parameters())
        device = self.task.y.device
        most = None if together and not self.thrift.recompute else 1
        plan = partial(
            members_at_once,
            self._try_out,
            members,
            memory=memory,
            for_results=len(members) * kept if self.kept["keep_models"] else 0,
            epochs=self.epochs,
            device=device,
            most=most,
        )
        # A GPU tells at the first step whether all fit, which takes less time than measuring one.
        unplanned = most is None and memory is None and traits_of(device).is_separate
        size = len(members) if unplanned else plan()
        results: list[Result] = []
        while len(results) < len(members):
            if memory is not None:
                release_freed_ram()
            if self.is_enough:
                return results + [_untrained(member) for member in members[len(results) :]]
            done = self.done
            try:
                results += self._chunk(members[len(results) : len(results) + size])
                continue
            except (MemoryError, RuntimeError) as error:
                if size == 1 or not is_out_of_memory(error):
                    raise
            size, self.done = plan() if unplanned else size // 2, done
            unplanned = False
        return results

    def _chunk(self, members: Sequence[Member]) -> list[Result]:
        """Train some members to the end."""
        device = self.task.y.device
        population = self._population(members)
        step = self._stepper(population)
        wait = waiter(device)
        left = list(range(len(members)))  # the position in the chunk of each member that is left
        results: dict[int, Result] = {}
        looked = time.monotonic()
        for epoch in range(self.epochs):
            step()
            self.done += len(left)
            regular = epoch % traits_of(device).look_every == 0
            if not regular and time.monotonic() < looked + _LONG and epoch + 1 < self.epochs:
                continue
            wait()
            looked = time.monotonic()
            running = population.watch.running.cpu()
            stopped = (~running).nonzero().flatten().tolist()
            to_come = self.epochs - epoch - 1
            # Never by the clock: some networks round differently in other company.
            if len(stopped) == len(left) or (
                regular and self._pays_off(len(stopped), len(left), to_come)
            ):
                found = population.results(stopped)
                results |= {left[i]: r for i, r in zip(stopped, found, strict=True)}
                self.done += len(stopped) * to_come
                index = running.nonzero().flatten()
                left = [left[i] for i in index.tolist()]
                if left:
                    population.select(index.to(device))
                    step = self._stepper(population)
            self._report()
            if self.is_enough or not left:
                break
        found = population.results(range(len(left)))
        results |= dict(zip(left, found, strict=True))
        return [results[i] for i in range(len(members))]

    def _pays_off(self, stopped: int, members: int, epochs: int) -> bool:
        """Whether to go on without the members that have stopped, for so many epochs at most."""
        saved = stopped * epochs * self.task.y.numel()
        return stopped >= _COMPACT_AT * members and saved > traits_of(self.task.y.device).change

    def _report(self) -> None:
        if self.progress is not None and not self.is_enough:
            try:
                self.progress(self.done, self.total)
            except Enough:
                self.is_enough = True

    def _population(self, members: Sequence[Member]) -> Population:
        return Population(
            self.task,
            self.build,
            members,
            epochs=self.epochs,
            patience=self.patience,
            rules=self.rules,
            **self.kept,
            vectorised=self.vectorised,
            thrift=self.thrift,
        )

    def _stepper(self, population: Population) -> Callable[[], None]:
        if self.capture and population.is_ours:
            return captured(population.step, self.task.y.device)
        return population.step

    def _try_out(self, members: Sequence[Member], steps: int) -> None:
        population = self._population(members)
        for _ in range(min(steps, self.epochs)):
            population.step()

    def _can_be_vectorised(self, member: Member) -> bool:
        reason = self._obstacle(member)
        if reason is not None:
            warnings.warn(
                f"this module cannot be vectorised, so its members are trained one at a time "
                f"({reason})",
                AloneWarning,
                stacklevel=4,
            )
        return reason is None

    def _obstacle(self, member: Member) -> str | None:
        """Why a module that is not ours cannot be trained as a population, found by trying."""
        population = self._population([member, member])
        before = {name: value.clone() for name, value in population.buffers.items()}
        try:
            population.step()
        except UsageError:
            raise
        except (RuntimeError, ValueError, TypeError, NotImplementedError) as error:
            return str(error).strip().splitlines()[0]
        for name, value in population.buffers.items():
            if not torch.equal(value, before[name]):  # vmap's running variances are not torch's
                return f"it changes its buffer {name} while training"
        return None


def _untrained(member: Member) -> Result:
    """The result of a member whose turn never came."""
    none, nothing = math.nan, np.empty(0, dtype=np.float32)
    return Result(member, -1, 0, none, none, none, nothing, nothing)
