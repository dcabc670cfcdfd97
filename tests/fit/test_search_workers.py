"""A search by several workers at once, some of which are lost."""

from __future__ import annotations

import itertools
from contextlib import nullcontext

import numpy as np
import pytest

from memohop import DataError
from memohop.fit._workers import FitJob, Workers
from memohop.fit.candidates._linear import LinearFamily
from memohop.jobs.executor import Lost
from tiny_problem import tiny_problem
from toy_kind import Toy, counts, searched, toy_problem


class Crew:
    """Stands in for the processes of workers, of which any may be done first.

    Args:
        count: How many there are.
        mishap: What happens to every job but the first: ``lost``, ``late`` or ``Ctrl-C``.
        pick: The place of the next job to be done, of so many.
    """

    def __init__(self, count, mishap="", pick=lambda jobs: jobs - 1):
        self.count, self.mishap, self.pick, self.most = count, mishap, pick, 0

    opened, end = nullcontext, staticmethod(lambda: None)

    def __call__(self, work, jobs, *, seconds, look):
        out: list[FitJob] = []
        for answered in itertools.count():
            out += itertools.islice(jobs, self.count - len(out))
            self.most = max(self.most, len(out))
            if not out:
                return
            look()
            while self.mishap == "late" and answered:
                look()
            if self.mishap == "Ctrl-C" and answered:
                raise KeyboardInterrupt
            job = out.pop(self.pick(len(out)))
            lost = self.mishap == "lost"
            yield job, Lost("RayActorError: gone") if lost else work(job)


def by_crew(crew, **limits):
    kinds = [
        LinearFamily(f"linear{name}", name.strip("+") or "columns")
        for name in ("", "+neighbours", "+rows")
    ]
    problem = tiny_problem()
    return problem, searched(
        problem, kinds, **{"trials": 4} | limits, workers=Workers(crew, crew.count)
    )


@pytest.mark.parametrize("count", [1, 2, 5])
def test_jobs_run_at_once_and_each_kind_gets_its_trials(count):
    crew = Crew(count)
    problem, run = by_crew(crew)
    assert run.stopped == "trials"
    assert counts(run, "linear", "linear+neighbours", "linear+rows") == [4, 4, 4]
    assert len({id(tried) for tried in run.candidates}) == len(run.candidates)
    assert min(count, 3) <= crew.most <= count
    for tried in run.complete():
        for split, fit in tried.fits.items():
            assert tried.scores[split] == problem.score(fit.val, problem.masks.val[:, split])


@pytest.mark.parametrize("count", [2, 3])
def test_with_a_number_of_trials_it_does_not_matter_which_worker_is_first(count):
    searches = []
    for seed in range(4):
        crew = Crew(count, pick=np.random.default_rng(seed).integers)
        _, run = by_crew(crew, trials=8)
        searches.append([(tried.setting, tried.scores) for tried in run.candidates])
    assert searches[1:] == searches[:1] * 3
    assert len(searches[0]) == 24


def test_the_search_ends_though_workers_do_not():
    _, run = by_crew(Crew(2, "late"), time=0.5, trials=None)
    assert run.stopped == "time"
    assert sum(bool(tried.scores) for tried in run.candidates) == 1


def test_ctrl_c_keeps_what_there_is():
    _, run = by_crew(Crew(2, "Ctrl-C"))
    assert run.stopped == "interrupted"
    assert len(run.candidates) == 1

    class Interrupts(Toy):
        def fit(self, *args, **options):  # type: ignore[no-untyped-def]
            raise KeyboardInterrupt

    problem = toy_problem()
    run = searched(problem, [Toy("good", 0.9), Interrupts("bad", 0.1)], trials=2)
    assert (run.stopped, run.complete()[0].setting.family) == ("interrupted", "good")
    with pytest.raises(KeyboardInterrupt):
        searched(problem, [Interrupts("bad", 0.1)], trials=2)


def test_workers_that_are_all_lost_are_an_error():
    with pytest.raises(DataError, match="RayActorError: gone"):
        by_crew(Crew(2, "lost"))
