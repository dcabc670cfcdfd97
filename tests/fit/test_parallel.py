"""The search with workers: on a Ray cluster of this machine, and with workers that misbehave."""

from __future__ import annotations

import time
from threading import Thread
from types import SimpleNamespace

import numpy as np
import psutil
import pytest

from memohop import DataError, GraphClassifier
from memohop.fit.candidates.family import no_fits
from memohop.fit.candidates.linear import LinearFamily
from memohop.fit.parallel import search_with
from memohop.fit.workers import Answer, Order, Workers, _Elsewhere, ray_workers
from memohop.training import train
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
                if process.name().startswith("ray::_Fitter"):
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
    with ray_workers(2) as workers:
        there.fit(problem.x, problem.y, ring(60), workers=workers)
    hunter.stop = True
    hunter.join()
    assert len(hunter.killed) == 1
    for one, other in zip(here.report_.families, there.report_.families, strict=True):
        assert (one.family, one.tried) == (other.family, other.tried)
        assert one.val == pytest.approx(other.val, abs=1e-6)
        assert one.test == pytest.approx(other.test, abs=1e-6)
    assert np.allclose(here.outputs(), there.outputs(), atol=1e-5)


class InThisProcess:
    """Stands in for workers: fits when asked for answers, the last order first.

    Args:
        count: How many there are.
        mishap: What happens to every order but the first: ``late``, ``lost`` or ``Ctrl-C``.
        pick: The place of the next order to answer, of so many.
    """

    def __init__(self, count, mishap="", pick=lambda orders: orders - 1):
        self.count, self.idle, self.working, self.mishap = count, count, count, mishap
        self.orders, self.most, self.answered, self.lost = [], 0, 0, None
        self.pick = pick

    def begin(self, problem, families):
        self.problem, self.families = problem, {family.id: family for family in families}

    def give(self, order):
        assert self.idle > 0
        self.idle -= 1
        self.orders.append(order)
        self.most = max(self.most, len(self.orders))

    def take(self):
        if self.mishap == "Ctrl-C" and self.answered:
            raise KeyboardInterrupt
        if self.mishap == "late" and self.answered:
            return []
        order = self.orders.pop(self.pick(len(self.orders)))
        self.idle += 1
        self.answered += 1
        if self.mishap == "lost":
            self.lost = "RayActorError: gone"
            return [Answer(order, no_fits(order.settings), 1.0)]
        family = self.families[order.family]
        found = family.fit(self.problem, order.settings, order.splits, keep=True)
        return [Answer(order, found, 0.25)]

    def give_up(self, late):
        if self.mishap != "late" or not self.answered:
            return []
        given_up, self.orders = self.orders, []
        self.idle += len(given_up)
        return [Answer(order, no_fits(order.settings), order.seconds + 3) for order in given_up]


def linear(*names):
    return [LinearFamily(f"linear{name}", name.strip("+") or "columns") for name in names]


def searched(workers, problem, **limits):
    given = {"time": None, "trials": 4} | limits
    kinds = linear("", "+neighbours", "+rows")
    return search_with(workers, problem, kinds, **given, seed=0)


@pytest.mark.parametrize("count", [1, 2, 5])
def test_jobs_run_at_once_and_each_kind_gets_its_trials(count):
    workers, problem = InThisProcess(count), tiny_problem()
    found = searched(workers, problem)
    assert found.stopped == "trials"
    families = [one.setting.family for one in found.candidates]
    assert {name: families.count(name) for name in families} == dict.fromkeys(families, 4)
    assert len({id(one) for one in found.candidates}) == len(found.candidates)
    assert workers.most == count or count == 5
    assert workers.idle == count
    for one in found.complete():
        for split, fit in one.fits.items():
            assert one.scores[split] == problem.score(fit.val, problem.masks.val[:, split])


@pytest.mark.parametrize("count", [2, 3])
def test_with_a_number_of_trials_it_does_not_matter_which_worker_is_first(count):
    searches = []
    for seed in range(4):
        generator = np.random.default_rng(seed)
        workers = InThisProcess(count, pick=generator.integers)
        found = searched(workers, tiny_problem(), trials=8)
        searches.append([(one.setting, one.scores) for one in found.candidates])
    assert searches[1:] == searches[:1] * 3
    assert len(searches[0]) == 24


def test_final_fits_are_kept_in_the_order_of_the_splits():
    workers, problem = InThisProcess(2), tiny_problem()
    (family,) = linear("")
    workers.begin(problem, [family])
    (fits,) = _Elsewhere(family, workers).fit(problem, family.first(problem)[:1], [0, 1])
    assert list(fits) == [0, 1]


def test_what_is_late_is_given_up_and_the_rest_counts():
    found = searched(InThisProcess(2, "late"), tiny_problem(), time=0.5, trials=None)
    assert found.stopped == "time"
    assert sum(bool(one.scores) for one in found.candidates) == 1


def test_workers_that_never_start_do_not_hold_up_a_search():
    workers = InThisProcess(2)
    workers.idle = workers.working = 0
    workers.take = list
    found = searched(workers, tiny_problem(), time=0.3, trials=None)
    assert (found.stopped, found.candidates) == ("time", [])


def test_ctrl_c_keeps_what_there_is():
    found = searched(InThisProcess(2, "Ctrl-C"), tiny_problem())
    assert found.stopped == "interrupted"
    assert len(found.candidates) == 1


def test_workers_that_are_all_lost_are_an_error():
    with pytest.raises(DataError, match="RayActorError: gone"):
        searched(InThisProcess(2, "lost"), tiny_problem())


class LostError(Exception):
    """As Ray's errors, of which that of a task is one."""


class FailedError(LostError):
    def __init__(self, cause):
        super().__init__()
        self.cause = cause


class Cluster:
    """Stands in for Ray: every call of a worker has an answer at once, or an error.

    Args:
        ready: What the next workers answer when they have started.
        answers: What the next orders are answered.
    """

    exceptions = SimpleNamespace(RayError=LostError, RayTaskError=FailedError)
    cloudpickle = SimpleNamespace(dumps=lambda given: given, loads=lambda given: given)

    def __init__(self, ready, answers=()):
        self.ready, self.answers, self.killed = iter(ready), iter(answers), 0

    def put(self, given):
        return given

    def remote(self, **needs):
        def call(answers):
            return SimpleNamespace(remote=lambda *given: (object(), next(answers)))

        worker = SimpleNamespace(is_ready=call(self.ready), fit=call(self.answers))
        return lambda kind: SimpleNamespace(remote=lambda packed: worker)

    def wait(self, calls, num_returns, timeout):
        return calls[:num_returns], calls[num_returns:]

    def get(self, call):
        if isinstance(call[1], Exception):
            raise call[1]
        return call[1]

    def kill(self, worker):
        self.killed += 1


def begun(*arguments):
    workers = Workers(Cluster(*arguments), "cpu", 2)
    workers.begin(tiny_problem(), linear(""))
    return workers


def test_workers_that_do_not_start_are_an_error():
    workers = begun([LostError("no memohop here")] * 4)
    for _ in range(3):
        assert workers.take() == []
    with pytest.raises(DataError, match="LostError: no memohop here"):
        workers.take()


def test_an_order_is_given_again_and_at_last_given_up():
    workers = begun([True] * 9, [LostError("gone"), LostError("gone"), LostError("gone again")])
    while workers.idle < 2:
        assert workers.take() == []
    order = Order("linear", [None], [0], 9.0)
    workers.give(order)
    answers = []
    while not answers:
        answers = workers.take()
    assert (answers[0].order, answers[0].fits, order.losses) == (order, [{}], 3)
    assert workers.lost == "LostError: gone again"
    assert workers.count == 2


def test_an_error_of_the_fit_is_not_taken_for_a_loss():
    workers = begun([True] * 2, [FailedError(ValueError("a bug"))])
    workers.take()
    workers.give(Order("linear", [None], [0], 9.0))
    with pytest.raises(ValueError, match="a bug"):
        workers.take()


def test_what_takes_too_long_is_ended_and_another_worker_started():
    workers = begun([True] * 3, [None])
    workers.take()
    order = Order("linear", [None], [0], 0.0)
    workers.give(order)
    assert workers.give_up(60.0) == []
    (answer,) = workers.give_up()
    assert (answer.order, answer.fits, workers.ray.killed, workers.count) == (order, [{}], 1, 2)


def graph_of(nodes=60):
    problem = tiny_problem()
    return problem.x, problem.y, ring(nodes)


def test_what_is_shared_is_said():
    said = []
    workers = Workers(None, "cpu", 3, said.append)
    problem = tiny_problem()
    assert workers.share_search(problem, memory=10**9)
    assert not workers.share_search(problem, memory=1000)
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

    monkeypatch.setattr("memohop.fit.candidates.networks.train", train_in_parts)
    monkeypatch.setattr("memohop.fit.workers.fits_each", lambda whole, workers, memory: False)
    kinds = ["linear", "gcn-res", "gcn+mmp"]
    here, there = (
        GraphClassifier(models=kinds, trials=1, time=None, splits=2, ensemble=False)
        for _ in range(2)
    )
    here.set_params(models=[name for name in kinds if name != "gcn-res"]).fit(*graph_of())
    asked.clear()
    there.fit(*graph_of(), workers=Workers(None, "cpu", 4))
    assert dict(asked) == {"gcn+mmp": 4}
    for one, other in zip(here.report_.families, there.report_.families, strict=True):
        assert one.family == other.family
        assert one.val == pytest.approx(other.val, abs=1e-6)
    (one,), (other,) = (model.model_.components for model in (here, there))
    assert one.setting == other.setting
    for left, right in zip(one.models, other.models, strict=True):
        pair = (model.outputs(here.own_graph()) for model in (left, right))
        assert np.allclose(*pair, atol=1e-6)
