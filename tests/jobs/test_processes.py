"""Several processes answer as one would, also when they are lost."""

import multiprocessing
import sys
import time
from pathlib import Path

import psutil
import pytest

from memohop.errors import DataError
from memohop.jobs import processes
from memohop.jobs.executor import Lost, here
from memohop.jobs.processes import Processes

HERE = str(Path(__file__).parent)


@pytest.fixture(autouse=True)
def quick_processes(monkeypatch):
    """They need not import PyTorch anew, and find what they are to do."""
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    monkeypatch.syspath_prepend(HERE)
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["memohop.jobs.processes"])
    monkeypatch.setattr(processes, "_CONTEXT", context)
    yield
    sys.modules.pop("toy_work", None)


def answers(executor, work, jobs):
    return dict(executor(work, iter(jobs), lambda *_: None))


def test_a_lost_process_costs_time_and_nothing_else(tmp_path):
    import toy_work

    jobs = [(str(tmp_path), name) for name in ("doomed", "hurt", "sound", "sounder")]
    answered = answers(Processes(2), toy_work.unlucky, jobs)
    found = {name: answer for (_, name), answer in answered.items()}
    assert isinstance(found.pop("doomed"), Lost)
    assert found == {name: f"{name} is done" for name in ("hurt", "sound", "sounder")}
    lines = (tmp_path / "log").read_text(encoding="utf-8").splitlines()
    last = max(lines.index("sound ends"), lines.index("sounder ends"))
    assert lines[:last].count("doomed starts") == 1
    again = lines[last + 1 :]  # what was lost waits for the others, and has no company
    assert sorted(again) == ["doomed starts", "doomed starts", "hurt ends", "hurt starts"]
    assert again[again.index("hurt starts") + 1] == "hurt ends"


def test_a_process_may_die_while_it_sends(tmp_path):
    import toy_work

    job = (str(tmp_path), "only")
    assert answers(Processes(2), toy_work.half_an_answer, [job]) == {job: "whole"}


@pytest.mark.parametrize(
    ("name", "kind", "words"),
    [
        ("mistaken", DataError, "there are no files"),
        ("wrong", ZeroDivisionError, "a slip"),
    ],
)
def test_what_the_work_raises_ends_everything(tmp_path, name, kind, words):
    import toy_work

    jobs = [(str(tmp_path), name) for name in ("busy", name)]
    with pytest.raises(kind, match=words):
        answers(Processes(2), toy_work.mistaken, jobs)
    busy = int((tmp_path / "busy").read_text(encoding="utf-8"))
    for _ in range(10_000):
        if not psutil.pid_exists(busy):
            break
        time.sleep(0.01)
    assert not psutil.pid_exists(busy)


def test_they_share_the_threads_of_one(monkeypatch):
    import toy_work

    monkeypatch.setattr("torch.get_num_threads", lambda: 7)
    assert answers(Processes(3), toy_work.threads, range(4)) == dict.fromkeys(range(4), 2)


def test_here_jobs_are_done_one_by_one_and_tell_how_far_they_are():
    told = []

    def work(job, progress):
        progress(0.5)
        return job + 1

    found = here(work, iter([1, 2]), lambda job, share: told.append((job, share)))
    assert next(found) == (1, 2)
    assert told == [(1, 0.5)]
    assert list(found) == [(2, 3)]
