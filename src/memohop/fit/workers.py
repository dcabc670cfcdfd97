"""Workers of a Ray cluster that fit candidates: each has a copy of the problem, if that fits.

An *order* is some settings of one kind of model and some splits. A worker has one order at a time,
and answers with outputs and models in the form in which models are saved. An order whose worker is
lost goes to another one; after three losses it is given up.
"""

from __future__ import annotations

import time as clock
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from memohop.cluster import check_room, connected, import_ray, in_a_line, needs_of
from memohop.data.arguments import whole_number
from memohop.errors import DataError
from memohop.fit.candidates.family import Family, Fits, Fitted, Look, Setting, by_split, no_fits
from memohop.fit.candidates.linear import Linear
from memohop.fit.candidates.network import Network
from memohop.fit.candidates.networks import NetworkFamily
from memohop.fit.candidates.trees import Trees
from memohop.fit.candidates.view_family import ViewFamily
from memohop.fit.problem import Outputs, Problem
from memohop.fit.saved import Saved, Sizes
from memohop.jobs.train import fits_each, whole_bytes
from memohop.ram import in_units, keep_freed_ram
from memohop.training import Enough

_LOSSES = 3  # of workers with the same order, after which it is given up
_MOMENT = 0.5  # seconds between two looks at the clock
_PARTS: dict[str, Any] = {"Linear": Linear, "Network": Network, "Trees": Trees}


@dataclass(eq=False)
class Order:
    """What a worker is to fit.

    Attributes:
        family: The id of the kind of model.
        settings: Settings with the same options.
        splits: Splits to fit each of them on.
        seconds: The time for it.
        for_the_end: Whether to fit to every label.
        losses: How many workers were lost with it.
    """

    family: str
    settings: Sequence[Setting]
    splits: Sequence[int]
    seconds: float
    for_the_end: bool = False
    losses: int = 0


class Answer(NamedTuple):
    """The results of an order, and the seconds that it took; empty results if it was given up."""

    order: Order
    fits: Fits
    seconds: float


class _Sent(NamedTuple):
    """A fitted candidate on its way from a worker."""

    val: Outputs
    test: Outputs
    kind: str
    saved: Saved


class _Fitter:
    """The work of a worker."""

    def __init__(self, packed: bytes) -> None:
        from ray.cloudpickle import dumps, loads

        keep_freed_ram()
        # Packed and unpacked here: arrays that Ray passes on cannot be written to.
        self._pack = dumps
        self.problem, self.families = loads(packed)
        self.ending = self.problem.for_the_end()

    def is_ready(self) -> bool:
        """Answers as soon as the problem is unpacked."""
        return True

    def fit(self, order: Order) -> bytes:
        """The results, and the seconds that they took, packed."""
        begin = clock.monotonic()

        def look(share: float) -> None:
            if clock.monotonic() > begin + order.seconds:
                raise Enough

        family: Family = self.families[order.family]
        problem = self.ending if order.for_the_end else self.problem
        found = family.fit(problem, order.settings, order.splits, keep=True, look=look)
        sent = [{split: _send(fit) for split, fit in fits.items()} for fits in found]
        return self._pack((sent, clock.monotonic() - begin))


def _send(fit: Fitted) -> _Sent:
    assert fit.part is not None
    return _Sent(fit.val, fit.test, type(fit.part).__name__, fit.part.saved())


@dataclass(eq=False)
class Workers:
    """Workers of a cluster, each on a core or a GPU of its own.

    Attributes:
        ray: Ray, connected.
        device: What networks are trained on.
        wanted: How many there are to be.
        say: Called with a sentence on what they share, and why.
        lost: Why the last one of them was lost, if one was.
    """

    ray: Any
    device: str
    wanted: int
    say: Callable[[str], None] = lambda sentence: None
    lost: str | None = None
    _starting: dict[Any, Any] = field(default_factory=dict)  # workers by what says they are ready
    _idle: list[Any] = field(default_factory=list)
    _busy: dict[Any, tuple[Any, Order, float]] = field(default_factory=dict)
    _again: list[Order] = field(default_factory=list)  # orders whose worker was lost
    _failures: int = 0  # of workers to start, one after the other

    def share_search(self, problem: Problem, memory: int | None) -> bool:
        """Whether they share the search, as the graph fits each of them, and not the graph.

        Args:
            problem: The problem to be solved.
            memory: The most bytes that each of them may hold; by default its share of what is free.
        """
        whole = whole_bytes(problem.x, problem.arcs.shape[1])
        fits = fits_each(whole, self.wanted, memory)
        size = f"it takes about {in_units(whole)} in training"
        if fits:
            self.say(
                f"{self.wanted} workers share the search, each with the whole graph: {size}, and "
                "each of them has that much"
            )
        else:
            self.say(
                f"{self.wanted} workers share the graph, each with a block: {size}, more than "
                "any of them has; of networks that use the graph, only those with memory are tried"
            )
        return fits

    def in_parts(self, families: Sequence[Family]) -> list[Family]:
        """The same kinds of model, of which networks are trained on a graph in blocks."""
        return [
            replace(family, in_parts=self.wanted)
            if isinstance(family, NetworkFamily) and family.sees_graph
            else family
            for family in families
        ]

    def begin(self, problem: Problem, families: Sequence[Family]) -> None:
        """Give every worker a problem and the kinds of model to fit."""
        self._problem, self._families = problem, {family.id: family for family in families}
        for family in families:  # so that the copies have them
            if isinstance(family, ViewFamily):
                for setting in family.first(problem):
                    family.view(problem, setting)
        self._sizes = Sizes(
            problem.x.shape[1], problem.classes, problem.nodes, problem.neighbourhood.directed
        )
        self._packed = self.ray.put(self.ray.cloudpickle.dumps((problem, self._families)))
        for worker in [*self._idle, *self._starting.values()]:  # of an earlier problem
            self.ray.kill(worker)
        self.give_up()
        self._idle, self._starting = [], {}
        for _ in range(self.wanted):
            self._start()

    def _start(self) -> None:
        """Start a worker; it is idle once it is ready, which takes some seconds."""
        needs = needs_of(self.device)
        worker = self.ray.remote(max_restarts=0, **needs)(_Fitter).remote(self._packed)
        self._starting[worker.is_ready.remote()] = worker

    @property
    def count(self) -> int:
        """How many there are."""
        return len(self._starting) + len(self._idle) + len(self._busy)

    @property
    def idle(self) -> int:
        """How many of them have nothing to do."""
        return max(0, len(self._idle) - len(self._again))

    @property
    def working(self) -> int:
        """How many of them have started."""
        return len(self._idle) + len(self._busy)

    def give(self, order: Order) -> None:
        """Give an order to an idle worker."""
        worker = self._idle.pop()
        self._busy[worker.fit.remote(order)] = (worker, order, clock.monotonic())

    def take(self) -> list[Answer]:
        """The answers of a moment; none if no worker has finished."""
        while self._again and self._idle:
            self.give(self._again.pop())
        waiting = [*self._busy, *self._starting]
        ready, _ = self.ray.wait(waiting, num_returns=1, timeout=_MOMENT)
        for one in [one for one in ready if one in self._starting]:
            self._started(one)
        ended = [one for one in ready if one in self._busy]
        return [answer for one in ended if (answer := self._taken(one)) is not None]

    def _started(self, ready: Any) -> None:
        worker = self._starting.pop(ready)
        try:
            self.ray.get(ready)
        except self.ray.exceptions.RayError as error:
            self.lost, self._failures = in_a_line(error), self._failures + 1
            if self._failures < _LOSSES:
                self._start()
            elif not self.count:
                raise DataError(
                    f"the workers of the Ray cluster do not start ({self.lost}); see that they "
                    "have this version of memohop and enough RAM, or leave out --workers"
                ) from error
        else:
            self._idle.append(worker)
            self._failures = 0

    def _taken(self, ready: Any) -> Answer | None:
        worker, order, began = self._busy.pop(ready)
        try:
            sent, seconds = self.ray.cloudpickle.loads(self.ray.get(ready))
        except self.ray.exceptions.RayTaskError as error:  # raised by the fit itself
            raise getattr(error, "cause", error) from None
        except self.ray.exceptions.RayError as error:
            order.losses, self.lost = order.losses + 1, in_a_line(error)
            self._start()
            if order.losses == _LOSSES:
                return Answer(order, no_fits(order.settings), clock.monotonic() - began)
            self._again.append(order)
            return None
        self._idle.append(worker)
        fits = [{split: self._received(order, one) for split, one in of.items()} for of in sent]
        return Answer(order, fits, seconds)

    def _received(self, order: Order, sent: _Sent) -> Fitted:
        family, view = self._families[order.family], None
        if isinstance(family, ViewFamily):
            view = family.view(self._problem, order.settings[0])
        part = _PARTS[sent.kind].from_saved(sent.saved, view, self._sizes)
        return Fitted(sent.val, sent.test, part)

    def give_up(self, late: float | None = None) -> list[Answer]:
        """End orders that are so many seconds over their time, or all, with empty results."""
        now, answers = clock.monotonic(), []
        if late is None:
            answers = [Answer(order, no_fits(order.settings), 0.0) for order in self._again]
            self._again = []
        for ready, (worker, order, began) in [*self._busy.items()]:
            if late is None or now - began > order.seconds + late:
                self.ray.kill(worker)
                del self._busy[ready]
                self._start()
                answers.append(Answer(order, no_fits(order.settings), now - began))
        return answers

    def families(self, families: Mapping[str, Family]) -> dict[str, Family]:
        """The same kinds of model, fitted to every label by these workers."""
        return {name: _Elsewhere(family, self) for name, family in families.items()}


@dataclass(frozen=True)
class _Elsewhere:
    """A kind of model that workers fit to every label, each on one split at a time."""

    family: Family
    workers: Workers

    def __getattr__(self, name: str) -> Any:
        return getattr(self.family, name)

    def fit(
        self,
        problem: Problem,
        settings: Sequence[Setting],
        splits: Sequence[int],
        *,
        keep: bool = False,
        look: Look = lambda share: None,
    ) -> Fits:
        """Fit settings with the same options, each on each of some splits."""
        waiting = [Order(self.family.id, settings, [split], float("inf"), True) for split in splits]
        found, answered = no_fits(settings), 0
        try:
            while answered < len(splits):
                while waiting and self.workers.idle:
                    self.workers.give(waiting.pop(0))
                for answer in self.workers.take():
                    answered += 1
                    for fits, more in zip(found, answer.fits, strict=True):
                        fits.update(more)
                look(answered / len(splits))
        except Enough:
            self.workers.give_up()
        return by_split(found)


@contextmanager
def ray_workers(
    workers: int,
    address: str | None = None,
    device: str = "cpu",
    say: Callable[[str], None] = lambda sentence: None,
) -> Iterator[Workers]:
    """Workers of a Ray cluster, for ``fit`` of a ``GraphClassifier`` or ``GraphRegressor``.

    They share the search if the graph fits each of them: each fits other candidates. Otherwise
    they share the graph: all of them train one candidate after the other, each on a block.

    Args:
        workers: How many.
        address: Of a running cluster, or ``auto``; one is started on this machine by default.
        device: What networks are trained on, ``cpu`` or ``cuda``.
        say: Called with a sentence on what they share, and why.
    """
    workers = whole_number("workers", workers, least=1)
    import_ray(f"workers={workers}", "leave them out")
    with connected(address, "fit again", cores=workers) as ray:
        check_room(ray, workers, device)
        yield Workers(ray, device, workers, say)
