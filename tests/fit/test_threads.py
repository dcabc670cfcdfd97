"""As many threads as the load of the machine leaves cores for."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
import torch

from memohop.fit import threads
from memohop.fit.threads import Threads, restoring_threads


@pytest.mark.parametrize(
    ("cores", "others", "taken"), [(8, 0.1, 4), (8, 5.2, 3), (8, 7.9, 1), (2, 2.0, 1), (4, 0.0, 4)]
)
def test_others_keep_their_cores(cores, others, taken, monkeypatch):
    """Ten seconds, in which others used some cores all the time; PyTorch has four threads."""
    seconds, used = iter([0.0, 10.0]), iter([50.0, 50.0 + 10 * others])
    found = []
    monkeypatch.setattr(threads.clock, "monotonic", lambda: next(seconds))
    monkeypatch.setattr(threads, "_seconds_of_others", lambda: next(used))
    monkeypatch.setattr(threads.psutil, "cpu_count", lambda: cores)
    monkeypatch.setattr(torch, "get_num_threads", lambda: 4)
    monkeypatch.setattr(torch, "set_num_threads", found.append)
    Threads().adapt()
    assert found == [taken]


def test_own_work_is_not_that_of_others(monkeypatch):
    machine = (70.0, 1.0, 9.0, 500.0, 20.0, 0.0, 0.0, 0.0)

    class Times(tuple):
        idle, iowait = 500.0, 20.0

    own = SimpleNamespace(user=30.0, system=5.0)
    monkeypatch.setattr(threads.psutil, "cpu_times", lambda: Times(machine))
    monkeypatch.setattr(threads.psutil, "Process", lambda: SimpleNamespace(cpu_times=lambda: own))
    assert threads._seconds_of_others() == pytest.approx(45)


def test_a_fit_leaves_the_threads_as_they_were():
    before = torch.get_num_threads()

    @restoring_threads
    def fit():
        torch.set_num_threads(before + 1)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fit()
    assert torch.get_num_threads() == before
