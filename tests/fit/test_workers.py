"""Who fits: workers of a Ray cluster of this machine, or this process with the threads it has."""

from __future__ import annotations

import time
from contextlib import nullcontext
from threading import Thread
from types import SimpleNamespace

import numpy as np
import psutil
import pytest
import torch

from memohop import GraphClassifier
from memohop.fit import _workers as workers
from memohop.fit._workers import (
    FitJob,
    Threads,
    Workers,
    executing,
    ray_workers,
    restoring_threads,
)
from memohop.fit.candidates._linear import LinearFamily
from memohop.fit.candidates._trees import TreeFamily
from memohop.jobs.executor import Lost
from memohop.jobs.train import train
from tiny_problem import ring, tiny_problem

KINDS = ["linear", "linear+rows", "lightgbm+neighbours", "mlp"]


class Hunter(Thread):
    """Kills the first worker that it finds at work."""

    def __init__(self):
        super().__init__(daemon=True)
        self.killed, self.stop = [], False

    def run(self):
        while not (self.killed or self.stop):
            for process in psutil.Process().children(recursive=True):
                if process.name().startswith("ray::RayWorker"):
                    process.kill()
                    self.killed.append(process.pid)
                    return
            time.sleep(0.02)


def test_a_cluster_finds_what_this_process_finds_also_if_a_worker_is_lost():
    pytest.importorskip("ray", reason="Ray is not installed here: pip install memohop[ray]")
    problem = tiny_problem()
    here, there = (
        GraphClassifier(models=KINDS, trials=1, time=None, splits=2, ensemble=False)
        for _ in range(2)
    )
    here.fit(problem.x, problem.y, ring(60))
    hunter = Hunter()
    hunter.start()
    with ray_workers(2) as crew:
        there.fit(problem.x, problem.y, ring(60), workers=crew)
    hunter.stop = True
    hunter.join()
    assert len(hunter.killed) == 1
    for local, remote in zip(here.report_.families, there.report_.families, strict=True):
        assert (local.family, local.tried) == (remote.family, remote.tried)
        assert local.val == pytest.approx(remote.val, abs=1e-6)
        assert local.test == pytest.approx(remote.test, abs=1e-6)
    assert np.allclose(here.outputs(), there.outputs(), atol=1e-5)


class Pool:
    """Stands in for processes: does jobs here, and loses the last one."""

    opened, end = nullcontext, staticmethod(lambda: None)

    def __call__(self, work, jobs, *, seconds, look):
        for job in [*jobs]:
            look()
            assert seconds(job) > job.seconds
            yield job, work(job) if job.splits else Lost("gone")


@pytest.mark.parametrize("kind", [LinearFamily("a", "neighbours"), TreeFamily("a", "rows")])
def test_what_workers_send_is_what_they_have_fitted(kind):
    problem = tiny_problem()
    first = kind.first(problem)[:1]
    jobs = [FitJob("a", first, [1, 0], 9.0), FitJob("a", first, [], 9.0)]
    with executing(Workers(Pool(), 2), problem, {"a": kind}) as execute:
        (_, (fits, seconds)), (_, lost) = execute(lambda: None, iter(jobs))
    assert lost == Lost("gone")
    assert seconds > 0
    (expected,) = kind.fit(problem, first, [0, 1])
    assert list(fits[0]) == list(expected) == [0, 1]
    for split, fit in fits[0].items():
        assert np.array_equal(fit.val, expected[split].val)
        assert np.array_equal(fit.test, expected[split].test)
        assert fit.part.view is kind.view(problem, first[0])
        assert np.array_equal(fit.part.outputs(problem), expected[split].part.outputs(problem))


def test_what_is_shared_is_said():
    said = []
    crew, problem = Workers(Pool(), 3, said.append), tiny_problem()
    assert crew.share_search(problem, memory=10**9)
    assert not crew.share_search(problem, memory=1000)
    first, second = said
    assert first.startswith("3 workers share the search, each with the whole graph: it takes about")
    assert second.startswith("3 workers share the graph, each with a block: it takes about")
    assert second.endswith("only those with memory are tried")


def test_a_graph_that_fits_no_worker_is_shared(monkeypatch):
    """Networks with memory are trained by all workers together; others are left out."""
    asked = []

    def train_in_parts(data, model, members, *, workers, **arguments):
        asked.append((model, workers))
        return train(data, model, members, **arguments | {"epochs": 5})

    monkeypatch.setattr("memohop.fit.candidates._network.train", train_in_parts)
    monkeypatch.setattr(workers, "fits_each", lambda whole, workers, memory: False)
    kinds, problem = ["linear", "gcn-res", "gcn+mmp"], tiny_problem()
    graph = problem.x, problem.y, ring(60)
    here, there = (
        GraphClassifier(models=kinds, trials=1, time=None, splits=2, ensemble=False)
        for _ in range(2)
    )
    here.set_params(models=[name for name in kinds if name != "gcn-res"]).fit(*graph)
    asked.clear()
    there.fit(*graph, workers=Workers(Pool(), 4))
    assert dict(asked) == {"gcn+mmp": 4}
    for local, remote in zip(here.report_.families, there.report_.families, strict=True):
        assert local.family == remote.family
        assert local.val == pytest.approx(remote.val, abs=1e-6)
    (local,), (remote,) = (model.model_.components for model in (here, there))
    assert local.setting == remote.setting
    for left, right in zip(local.models, remote.models, strict=True):
        pair = (model.outputs(here.own_graph()) for model in (left, right))
        assert np.allclose(*pair, atol=1e-6)


@pytest.mark.parametrize(
    ("cores", "others", "taken"), [(8, 0.1, 4), (8, 5.2, 3), (8, 7.9, 1), (2, 2.0, 1), (4, 0.0, 4)]
)
def test_others_keep_their_cores(cores, others, taken, monkeypatch):
    """Ten seconds, in which others used some cores all the time; PyTorch has four threads."""
    seconds, counts = iter([0.0, 10.0, 10.0]), []
    own = SimpleNamespace(cpu_percent=lambda: 150.0)
    monkeypatch.setattr(workers.clock, "monotonic", lambda: next(seconds))
    monkeypatch.setattr(workers.psutil, "cpu_percent", lambda: 100 * (others + 1.5) / cores)
    monkeypatch.setattr(workers.psutil, "Process", lambda: own)
    monkeypatch.setattr(workers.psutil, "cpu_count", lambda: cores)
    monkeypatch.setattr(torch, "get_num_threads", lambda: 4)
    monkeypatch.setattr(torch, "set_num_threads", counts.append)
    Threads().adapt()
    assert counts == [taken]


def test_a_fit_leaves_the_threads_as_they_were():
    before = torch.get_num_threads()

    @restoring_threads()
    def fit():
        torch.set_num_threads(before + 1)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fit()
    assert torch.get_num_threads() == before
