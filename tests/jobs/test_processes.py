"""Several processes answer as one would, also when they are lost."""

import re
import time

import psutil
import pytest

import toy_work
from memohop.errors import DataError
from memohop.jobs.executor import Lost, _loss_among, here
from memohop.jobs.processes import Processes
from own_processes import quickly


@pytest.fixture(autouse=True)
def quick_processes():
    with quickly():
        yield


def test_a_lost_process_costs_time_and_nothing_else(tmp_path):
    jobs = [(str(tmp_path), name) for name in ("doomed", "hurt", "sound", "sounder")]
    answered = dict(Processes(2)(toy_work.unlucky, jobs))
    answers = {name: answer for (_, name), answer in answered.items()}
    assert isinstance(answers.pop("doomed"), Lost)
    assert answers == {name: f"{name} is done" for name in ("hurt", "sound", "sounder")}
    lines = (tmp_path / "log").read_text(encoding="utf-8").splitlines()
    last = max(lines.index("sound ends"), lines.index("sounder ends"))
    assert lines[:last].count("doomed starts") == 1
    again = lines[last + 1 :]  # what was lost waits for the others, and has no company
    assert sorted(again) == ["doomed starts", "doomed starts", "hurt ends", "hurt starts"]
    assert again[again.index("hurt starts") + 1] == "hurt ends"


def test_a_process_may_die_while_it_sends(tmp_path):
    job = (str(tmp_path), "only")
    assert dict(Processes(2)(toy_work.half_an_answer, [job])) == {job: "whole"}


@pytest.mark.parametrize(
    ("name", "kind", "words"),
    [
        ("mistaken", DataError, "there are no files"),
        ("wrong", ZeroDivisionError, "a slip"),
    ],
)
def test_what_the_work_raises_ends_everything(tmp_path, name, kind, words):
    jobs = [(str(tmp_path), name) for name in ("busy", name)]
    with pytest.raises(kind, match=words):
        dict(Processes(2)(toy_work.mistaken, jobs))
    busy = int((tmp_path / "busy").read_text(encoding="utf-8"))
    for _ in range(10_000):
        if not psutil.pid_exists(busy):
            break
        time.sleep(0.01)
    assert not psutil.pid_exists(busy)


def test_they_share_the_threads_of_one(monkeypatch):
    monkeypatch.setattr("torch.get_num_threads", lambda: 7)
    assert dict(Processes(3)(toy_work.threads, range(4))) == dict.fromkeys(range(4), 2)


def test_processes_stay_and_keep_what_they_hold():
    pool, work = Processes(1), toy_work.Counting()
    with pool.opened():
        answers = [answer for jobs in ("ab", "c") for _, answer in pool(work, jobs)]
    assert [count for _, count in answers] == [1, 2, 3]
    assert len({process for process, _ in answers}) == 1
    assert not psutil.pid_exists(answers[0][0])


def test_a_job_that_takes_more_than_its_time_is_ended():
    looks = []
    times = {"endless": 0.3, "short": 60}
    look = {"seconds": times.get, "look": lambda: looks.append(1)}
    answers = dict(Processes(1)(toy_work.Counting(), times, **look))
    assert answers["endless"] == Lost("it took more than its time", late=True)
    assert answers["short"][1] == 1  # in a new process
    assert looks


def test_processes_that_work_together_are_replaced_together(tmp_path):
    told = []

    def tell(job, value):
        told.append(value)
        job.at = value
        return "enough" if len(told) > 9 else None

    job = toy_work.Walk(str(tmp_path))
    pool, how = Processes(2), {"together": 2, "told": tell}
    with pool.opened():
        assert dict(pool(toy_work.walk, [job], **how)) == {job: "2 walked to 5"}
        assert told == [1, 2, 3, 4, 5]
        job.at, told[5:] = 0, [0] * 5
        assert dict(pool(toy_work.walk, [job], **how)) == {job: 1}


@pytest.mark.parametrize(
    ("said", "kind", "text"),
    [
        ([Lost("the actor died"), RuntimeError("a bug")], Lost, "^the actor died$"),
        ([RuntimeError("[gloo/pair.cc:5] closed\nmore"), 3], Lost, r"closed$"),
        ([Lost("died"), DataError("a mistake")], DataError, "a mistake"),
        ([RuntimeError("a bug"), 3], RuntimeError, "a bug"),
    ],
)
def test_what_is_to_blame_when_one_of_several_fails(said, kind, text):
    if kind is Lost:
        assert re.search(text, _loss_among(said).reason)
        return
    with pytest.raises(kind, match=text):
        _loss_among(said)


def test_here_jobs_are_done_one_by_one():
    begun = []
    answers = here(lambda job: begun.append(job) or job + 1, iter([1, 2]))
    assert next(answers) == (1, 2)
    assert begun == [1]
    assert list(answers) == [(2, 3)]
