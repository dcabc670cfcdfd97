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
from typing import Any, NamedTuple, TypeVar

from memohop.errors import DataError, MemohopError

JobT = TypeVar("JobT")
AnswerT = TypeVar("AnswerT")
Executor = Callable[..., Iterator[tuple[Any, Any]]]
"""Does some work on jobs, and gives the answers as they come; called as :func:`here` is."""

_TRIES = 3
_START = 120  # seconds that processes have to start: the autoscaler of a cluster may need them
_LAST_WORDS = 10  # seconds after a failure in which the loss of a process beside it is noticed
_MOMENT = 0.5  # seconds between two looks at the clock


@dataclass(frozen=True)
class Lost:
    """Instead of an answer: why the processes that had the job were lost."""

    reason: str
    late: bool = False  # whether they were ended, as they took too long to start or to answer

    @property
    def error(self) -> DataError:
        """What to raise where the job is not done without it."""
        return DataError(
            f"a worker was lost again and again ({self.reason}); see whether its machine has "
            "RAM enough, and give the command again"
        )


class Told(NamedTuple):
    """What a job that goes in steps says after one of them."""

    value: Any


def here(work: Callable[[JobT], AnswerT], jobs: Iterable[JobT]) -> Iterator[tuple[JobT, AnswerT]]:
    """The executor that does one job after the other in this process.

    Args:
        work: What to do with a job; other processes import it by its name, or have a copy of it, if
            it is an object, for as long as they live.
        jobs: Asked for the next one whenever a process is free, also after it had none left.
    """
    for job in jobs:
        yield job, work(job)


class Doer:
    """Does some work in a process of its own, a job or a step of it at a time."""

    def __init__(self, work: Callable[..., Any]) -> None:
        self._work = work
        self._steps: Generator[Any, Any, Any] | None = None

    def begin(self, job: Any, beside: int = 1, *where: Any) -> Any:
        """The answer to a job; of one that goes in steps, what it tells first.

        Args:
            job: The job, or this process's share of it.
            beside: How many of those that have it are on this machine.
            where: How it joins the others, if the job is done together.
        """
        answer = self._work(job, *where)
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
    """A process of a pool, which does one thing at a time."""

    address: tuple[str, int] | None = None  # where others meet it: the first thing that it says

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
    """An executor with several processes."""

    size: int  # how many there are at the same time

    def __init__(self) -> None:
        self._is_open = False
        self._idle: list[Process] = []
        self._work: Callable[..., Any] | None = None  # of those that are idle

    @abstractmethod
    def start(self, work: Callable[..., Any]) -> Process:
        """A new process for some work."""

    @abstractmethod
    def wait(self, processes: Sequence[Any], seconds: float) -> Sequence[Any]:
        """Those that have something to say, as soon as there are some."""

    def connected(self) -> AbstractContextManager[Any]:
        """What is needed while there are processes."""
        return nullcontext()

    @contextmanager
    def opened(self) -> Iterator[None]:
        """A block in which processes stay from one call to the next, if the work is the same."""
        if self._is_open:
            yield
            return
        with self.connected():
            self._is_open = True
            try:
                yield
            finally:
                self._is_open = False
                self.end()

    def end(self) -> None:
        """End the processes that have nothing to do."""
        while self._idle:
            self._idle.pop().end()

    def __call__(
        self,
        work: Callable[..., Any],
        jobs: Iterable[JobT],
        *,
        together: int | None = None,
        told: Callable[[JobT, Any], Any] = lambda job, value: None,
        seconds: Callable[[JobT], float] = lambda job: math.inf,
        look: Callable[[], None] = lambda: None,
    ) -> Iterator[tuple[JobT, Any]]:
        """Answer jobs, in any order.

        Args:
            work: See :func:`here`; what a generator yields is told, and it is sent the reply.
            jobs: See :func:`here`.
            together: How many processes take each job together. The one of each rank is given
                ``job.share(rank)`` and how to join the others: arguments of
                ``torch.distributed.init_process_group``. By default, each takes a job alone.
            told: Called with a job and what it has told; what it returns is the reply.
            seconds: The time of a job, or of each step of one, after which it is ended and
                answered by :class:`Lost`.
            look: Called every now and then.
        """
        more, lost = iter(jobs), deque[_Team]()
        teams: list[_Team] = []
        size = together or 1

        def begin(job: JobT, losses: int = 0) -> None:
            idle = [self._idle.pop() for _ in range(min(size, len(self._idle)))]
            new = [self.start(work) for _ in range(size - len(idle))]
            team = _Team(idle + new, job, losses)
            teams.append(team)
            team.course = team.work(together is not None, told, seconds(job))
            team.silent = next(team.course)

        with self.opened():
            if self._work is not work:
                self.end()
                self._work = work
            try:
                while True:
                    for job in islice(more, self.size // size - len(teams)):
                        begin(job)
                    if lost and not teams:
                        again = lost.popleft()
                        begin(again.job, again.losses)
                    if not teams:
                        return
                    look()
                    silent = [process for team in teams for process in team.silent]
                    speaking = self.wait(silent, _MOMENT)
                    for team in [*teams]:
                        if not team.has_ended(speaking):
                            continue
                        teams.remove(team)
                        if not isinstance(team.answer, Lost):
                            self._idle += team.members
                            yield team.job, team.answer
                            continue
                        team.end()
                        team.losses += 1
                        if team.answer.late or team.losses == _TRIES:
                            yield team.job, team.answer
                        else:
                            lost.append(team)
            finally:
                for team in teams:
                    team.end()


_Course = Generator[list[Process], Process | None, Any]
"""Tells which processes are to say something, and is sent one that does, or None after a while."""


@dataclass(eq=False)
class _Team:
    """The processes that have a job."""

    members: list[Process]
    job: Any
    losses: int  # of teams with this job since it has told something
    course: _Course = field(init=False)
    silent: list[Process] = field(init=False)  # those that have yet to say something
    answer: Any = field(init=False)  # or how its processes were lost

    def has_ended(self, speaking: Sequence[Process]) -> bool:
        """Go on with what some processes say; whether that was the end."""
        speakers: list[Process | None] = [each for each in self.silent if each in speaking]
        try:
            for process in speakers or [None]:
                self.silent = self.course.send(process)
        except StopIteration as end:
            self.answer = end.value
            return True
        return False

    def end(self) -> None:
        """End its processes."""
        for member in self.members:
            member.end()

    def work(self, together: bool, told: Callable[[Any, Any], Any], seconds: float) -> _Course:
        """The answer to the job, or how its processes are lost."""
        new = [member for member in self.members if member.address is None]
        said = yield from _hear(new, _START)
        if isinstance(said, Lost):
            return said
        if late := len(new) - len(said):
            return Lost(
                f"{late} of {len(self.members)} workers could not be started within {_START} s, as "
                "the Ray cluster has no place for them; add machines, or give fewer workers",
                late=True,
            )
        for member in new:
            member.address = said[member]
        if together:
            hosts, ports = zip(*(member.address or () for member in self.members), strict=True)
            group = {"init_method": f"tcp://{hosts[0]}:{ports[0]}", "world_size": len(hosts)}
            for rank, member in enumerate(self.members):
                where = {**group, "rank": rank}
                member.ask("begin", self.job.share(rank), hosts.count(hosts[rank]), where)
        else:
            self.members[0].ask("begin", self.job)
        while True:
            said = yield from _hear(self.members, seconds)
            if isinstance(said, Lost):
                return said
            if len(said) < len(self.members):
                return Lost("it took more than its time", late=True)
            answer = said[self.members[0]]
            if not isinstance(answer, Told):
                return answer
            self.losses = 0
            reply = told(self.job, answer.value)
            for member in self.members:
                member.ask("go_on", reply)


def _hear(processes: Sequence[Process], seconds: float) -> _Course:
    """What each of the processes says within a time, or that they are lost.

    When one has failed, the others have a few seconds to say what is the matter.
    """
    said: dict[Process, Any] = {}
    end = time.monotonic() + seconds
    while silent := [process for process in processes if process not in said]:
        process = yield silent
        if process is not None:
            said[process] = process.take()
            if isinstance(said[process], Lost | Exception):
                end = min(end, time.monotonic() + _LAST_WORDS)
        elif time.monotonic() > end:
            break
    return _loss_among([*said.values()]) or said


def _loss_among(said: Sequence[Any]) -> Lost | None:
    """What counts of all that went wrong: a mistake of the user, a loss, or the first error.

    The others fail too when the connection to a lost one breaks; if its whole machine is lost, that
    is noticed only later.
    """
    errors = [words for words in said if isinstance(words, Exception)]
    for mistake in errors:
        if isinstance(mistake, MemohopError):
            raise mistake
    for words in said:
        if isinstance(words, Lost):
            return words
    if errors and len(said) > 1:
        from torch.distributed import DistError

        for error in errors:
            if isinstance(error, DistError) or "gloo" in str(error):
                return Lost(str(error).strip().partition("\n")[0])
    if errors:
        raise errors[0]
    return None
