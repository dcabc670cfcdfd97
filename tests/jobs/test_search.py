"""Any search with any executor: it is asked for jobs, and told what came of them."""

import itertools
import random

import pytest

from memohop.jobs.executor import here
from memohop.jobs.search import drive


class Doubling:
    """Asks for the sum of what it was told, until it has asked often enough."""

    def __init__(self, jobs=6, waits=False):
        self.jobs, self.waits, self.asked, self.told = jobs, waits, [], []

    def ask(self):
        if len(self.asked) == self.jobs or (self.waits and len(self.asked) > len(self.told)):
            return None
        self.asked.append(1 + sum(answer for _, answer in self.told) + 1000 * len(self.asked))
        return self.asked[-1]

    def tell(self, job, answer):
        self.told.append((job, answer))


def at_once(count, pick):
    """An executor of which any job may be done first."""

    def execute(jobs):
        out = []
        while True:
            out += itertools.islice(jobs, count - len(out))
            if not out:
                return
            job = out.pop(pick(len(out)))
            yield job, 2 * job

    return execute


def test_here_one_job_follows_the_other():
    search = Doubling(3)
    drive(search, lambda jobs: here(lambda job: 2 * job, jobs))
    assert search.told == [(1, 2), (1003, 2006), (4009, 8018)]


@pytest.mark.parametrize("waits", [False, True])
def test_a_search_is_asked_again_when_there_was_nothing_to_do(waits):
    search = Doubling(waits=waits)
    drive(search, at_once(3, lambda count: count - 1))
    assert sorted(job for job, _ in search.told) == sorted(search.asked)
    assert len(search.asked) == 6


@pytest.mark.parametrize("waits", [False, True])
@pytest.mark.parametrize("count", [1, 2, 4])
def test_in_order_it_does_not_matter_what_is_done_first(count, waits):
    histories = []
    for seed in range(5):
        search = Doubling(9, waits)
        drive(search, at_once(count, random.Random(seed).randrange), in_order=count)
        assert [job for job, _ in search.told] == search.asked
        histories.append(search.told)
    assert histories == histories[:1] * 5


def test_after_ctrl_c_what_was_done_counts():
    """The second job is done, and the first one is not."""
    search = Doubling()

    def execute(jobs):
        _, second = itertools.islice(jobs, 2)
        yield second, 2 * second
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        drive(search, execute, in_order=2)
    assert search.told == [(1001, 2002)]
