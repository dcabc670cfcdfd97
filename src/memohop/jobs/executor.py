"""Who does some work on jobs: this process, several of this machine, or workers of a Ray cluster.

All of them are executors, and behave alike. What the work raises ends everything, and is raised
here. A process that is lost says nothing about its job: the job is tried again after the others,
with nothing beside it, and after three losses it is answered by :class:`Lost`.

A job may take several processes at once, which meet in a group. If one of them is lost, all of them
are replaced, and the job goes on from what it told last.
"""

from __future__ import annotations

import math
import time
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, NamedTuple, Protocol, TypeVar

from memohop.errors import MemohopError

JobT = TypeVar("JobT")
AnswerT = TypeVar("AnswerT")
Progress = Callable[[float], None]
"""Called with the share of a job that is done, by executors that can tell."""

_TRIES = 3
_START = 120  # seconds that processes have to start: the autoscaler of a cluster may need them
_LAST_WORDS = 10  # seconds after a failure in which the loss of a process beside it is noticed
_MOMENT = 0.5  # seconds between two looks at the clock


@dataclass(frozen=True)
class Lost:
    """Instead of an answer: why the processes that had the job were lost."""

    reason: str


class NotStarted(Lost):
    """There was no place for the processes of a job."""


@dataclass(frozen=True)
class Told:
    """What a job that goes in steps says after one of them."""

    value: Any


class Seat(NamedTuple):
    """The place of a process among those that do a job together.

    Attributes:
        rank: Its number.
        size: How many there are.
        meeting: The address where they meet, for ``torch.distributed``.
        beside: How many of them are on its machine.
    """

    rank: int
    size: int
    meeting: str
    beside: int


class Executor(Protocol):
    """Does some work on jobs, and gives the answers as they come."""

    def __call__(
        self,
        work: Callable[[JobT, Progress], AnswerT],
        jobs: Iterator[JobT],
        progress: Callable[[JobT, float], None],
    ) -> Iterator[tuple[JobT, AnswerT | Lost]]:
        """Answer the jobs, in any order.

        Args:
            work: What to do with a job; other processes import it by its name, or have a copy of
                it, if it is an object, for as long as they live.
            jobs: Asked for the next one whenever a process is free, also after it had none left.
            progress: Called with a job and the share of it that is done.
        """
        ...


def here(
    work: Callable[[JobT, Progress], AnswerT],
    jobs: Iterator[JobT],
    progress: Callable[[JobT, float], None],
) -> Iterator[tuple[JobT, AnswerT | Lost]]:
    """The executor that does one job after the other in this process."""
    for job in jobs:

        def of_job(share: float, job: JobT = job) -> None:
            progress(job, share)

        yield job, work(job, of_job)


class Doer:
    """Does some work in a process of its own, a job or a step of it at a time."""

    def __init__(self, work: Callable[..., Any]) -> None:
        self._work = work
        self._steps: Generator[Any, Any, Any] | None = None

    def begin(self, job: Any, seat: Seat | None) -> Any:
        """The answer to a job; of one that goes in steps, what it tells first."""
        answer = self._work(job, (lambda share: None) if seat is None else seat)
        if not isinstance(answer, Generator):
            return answer
        self._steps = answer
        return self.go_on(None)

    def go_on(self, reply: Any) -> Any:
        """What the job tells after one more step, or its answer."""
        assert self._steps is not None
        try:
            return Told(self._steps.send(reply))
        except StopIteration as end:
            return end.value


class Process(ABC):
    """A process of a pool, which does one thing at a time.

    Attributes:
        address: Host and port where others can meet it; None until it has started, which is the
            first thing that it says.
    """

    address: tuple[str, int] | None = None

    @abstractmethod
    def ask(self, method: str, *given: Any) -> None:
        """Have it call a method of its :class:`Doer`."""

    @abstractmethod
    def take(self) -> Any:
        """What it says: an answer, what the work has raised, or :class:`Lost`."""

    @abstractmethod
    def end(self) -> None:
        """Kill it, even in the middle of its work."""


class Pool(ABC):
    """An executor with several processes.

    Attributes:
        size: How many there are at the same time.
    """

    size: int

    @abstractmethod
    def start(self, work: Callable[..., Any]) -> Process:
        """A new process for some work."""

    @abstractmethod
    def wait(self, processes: Sequence[Any], seconds: float) -> Sequence[Any]:
        """Those that have something to say, as soon as there are some."""

    def opened(self) -> AbstractContextManager[Any]:
        """What is needed while there are processes."""
        return nullcontext()

    def __call__(
        self,
        work: Callable[[JobT, Progress], AnswerT],
        jobs: Iterator[JobT],
        progress: Callable[[JobT, float], None],
    ) -> Iterator[tuple[JobT, AnswerT | Lost]]:
        """See :class:`Executor`; they do not tell their progress."""
        with self.ready(work) as staff:
            yield from staff(jobs)

    @contextmanager
    def ready(self, work: Callable[..., Any], *, together: int | None = None) -> Iterator[Staff]:
        """Processes for some work, which end with the block, however it ends.

        Args:
            work: Called with a job; what a generator yields is told, and it is sent the reply.
            together: How many processes take each job together. The one of each rank is given
                ``job.share(rank)`` and its :class:`Seat`. By default, each takes a job alone.
        """
        with self.opened():
            staff = Staff(self, work, together)
            try:
                yield staff
            finally:
                staff.end()


@dataclass(eq=False)
class _Team:
    """The processes that have a job."""

    members: list[Process]
    together: bool
    job: Any
    losses: int = 0  # of teams with this job since it has told something
    since: float = field(default_factory=time.monotonic)  # it was started, or was given the job
    begun: bool = False
    said: dict[Process, Any] = field(default_factory=dict)
    failed: float = math.inf  # when the first of them failed

    def begin(self) -> None:
        """Give them the job, if all have started."""
        places = [member.address for member in self.members]
        if self.begun or None in places:
            return
        self.begun, self.since, size = True, time.monotonic(), len(self.members)
        if not self.together:
            self.members[0].ask("begin", self.job, None)
            return
        addresses = [place for place in places if place is not None]
        (host, port), hosts = addresses[0], [host for host, _ in addresses]
        for rank, member in enumerate(self.members):
            seat = Seat(rank, size, f"tcp://{host}:{port}", hosts.count(hosts[rank]))
            member.ask("begin", self.job.share(rank), seat)

    def hear(self, member: Process) -> None:
        """Take what a member says."""
        said = member.take()
        if member.address is None and not isinstance(said, Lost | Exception):
            member.address = said
            self.begin()
            return
        self.said[member] = said
        if isinstance(said, Lost | Exception):
            self.failed = min(self.failed, time.monotonic())

    def outcome(self, seconds: float) -> Any:
        """What they say together, or why they end; None as long as they are at work."""
        now, silent = time.monotonic(), len(self.members) - len(self.said)
        if self.failed < math.inf and (not silent or now > self.failed + _LAST_WORDS):
            return _to_blame(list(self.said.values()))
        if not silent:
            return self.said[self.members[0]]
        if not self.begun and now > self.since + _START:
            late = sum(member.address is None for member in self.members)
            return NotStarted(
                f"{late} of {len(self.members)} workers could not be started within {_START} s, as "
                "the Ray cluster has no place for them; add machines, or give fewer workers"
            )
        if self.begun and now > self.since + seconds:
            return Lost("it took more than its time")
        return None


class Staff:
    """The processes of a pool that do some work; they stay from one call to the next."""

    def __init__(self, pool: Pool, work: Callable[..., Any], together: int | None = None) -> None:
        self._pool, self._work, self._together = pool, work, together
        self._idle: list[Process] = []
        self._teams: list[_Team] = []

    def __call__(
        self,
        jobs: Iterable[JobT],
        *,
        told: Callable[[JobT, Any], Any] = lambda job, value: None,
        seconds: Callable[[JobT], float] = lambda job: math.inf,
        look: Callable[[], None] = lambda: None,
    ) -> Iterator[tuple[JobT, Any]]:
        """Answer jobs, in any order.

        Args:
            jobs: Asked for the next one whenever a process is free, also after it had none left.
            told: Called with a job and what it has told; what it returns is the reply.
            seconds: The time of a job, after which it is ended and answered by :class:`Lost`.
            look: Called every now and then.
        """
        more, lost = iter(jobs), deque[_Team]()
        most = self._pool.size // (self._together or 1)
        try:
            while True:
                for job in islice(more, most - len(self._teams)):
                    self._begin(job)
                if lost and not self._teams:
                    again = lost.popleft()
                    self._begin(again.job, again.losses)
                if not self._teams:
                    return
                look()
                self._hear()
                for team in [*self._teams]:
                    said = team.outcome(seconds(team.job))
                    if isinstance(said, Exception):
                        raise said
                    if isinstance(said, Told):
                        team.losses, team.said = 0, {}
                        reply = told(team.job, said.value)
                        for member in team.members:
                            member.ask("go_on", reply)
                    elif isinstance(said, Lost):
                        has_failed = team.failed < math.inf
                        self._end(team)
                        team.losses += 1
                        if has_failed and team.losses < _TRIES:
                            lost.append(team)
                        else:
                            yield team.job, said
                    elif len(team.said) == len(team.members):
                        self._teams.remove(team)
                        self._idle += team.members
                        yield team.job, said
        finally:
            for team in [*self._teams]:
                self._end(team)

    def _begin(self, job: Any, losses: int = 0) -> None:
        members = [
            self._idle.pop() if self._idle else self._pool.start(self._work)
            for _ in range(self._together or 1)
        ]
        self._teams.append(_Team(members, self._together is not None, job, losses))
        self._teams[-1].begin()

    def _hear(self) -> None:
        teams = {
            member: team
            for team in self._teams
            for member in team.members
            if member not in team.said and (team.begun or member.address is None)
        }
        for member in self._pool.wait([*teams], _MOMENT):
            teams[member].hear(member)

    def _end(self, team: _Team) -> None:
        self._teams.remove(team)
        for member in team.members:
            member.end()

    def end(self) -> None:
        """End all processes."""
        while self._idle:
            self._idle.pop().end()


def _to_blame(said: Sequence[Any]) -> Any:
    """What counts of all that went wrong: a mistake of the user, a loss, or the first error.

    The others fail too when the connection to a lost one breaks; if its whole machine is lost, that
    is noticed only later.
    """
    failures = [one for one in said if isinstance(one, Lost | Exception)]
    for kind in (MemohopError, Lost):
        for failure in failures:
            if isinstance(failure, kind):
                return failure
    if len(said) > 1:
        from torch.distributed import DistError

        for failure in failures:
            if isinstance(failure, DistError) or "gloo" in str(failure):
                return Lost(str(failure).strip().partition("\n")[0])
    return failures[0]
