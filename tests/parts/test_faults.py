"""Workers that die, drivers that die, and checkpoints that do not fit."""

import random
import re
from types import SimpleNamespace

import numpy as np
import pytest
import torch

import memohop
from memohop import Member
from memohop.parts.checkpoints import Checkpoints
from memohop.parts.crew import LostError, NoPlaceError, with_crew
from memohop.parts.partition import partition
from memohop.parts.ray_crew import _reason
from memohop.parts.run import PartsRun
from numerics import in_float64, seeded
from process_crew import ProcessCrew

EPOCHS = 45


@pytest.fixture(scope="module")
def data():
    return memohop.load("csbm", nodes=60, channels=8, homophily=0.4, seed=seeded(1))


def make_run(data, folder=None, **arguments):
    blocks = partition(data.edge_index, data.num_nodes, 2)
    given = {"epochs": EPOCHS, "keep_models": True} | arguments
    return PartsRun(data, "gcn+mmp", [Member(lam=0.1)], blocks, folder, **given)


class Hires:
    """Hires crews of two, in each of which a worker dies at the next of some epochs."""

    def __init__(self, run, deaths):
        self.run, self.deaths, self.hired = run, list(deaths), 0

    def __call__(self):
        die_at = self.deaths.pop(0) if self.deaths else None
        self.hired += 1
        crew = ProcessCrew(2)
        return crew.take_on(self.run.job_now(), list(self.run.cut), die_at)


@pytest.fixture(scope="module", autouse=True)
def _in_float64():
    with in_float64():
        yield


@pytest.fixture(scope="module")
def undisturbed(data):
    run = make_run(data)
    return run.with_crews(Hires(run, []))[0]


def assert_same(found, expected):
    assert np.array_equal(found.loss_curve, expected.loss_curve)
    assert np.array_equal(found.val_curve, expected.val_curve)
    assert (found.best_epoch, found.test) == (expected.best_epoch, expected.test)
    assert all(torch.equal(found.state[name], expected.state[name]) for name in expected.state)


def test_five_deaths_change_nothing(data, undisturbed):
    deaths = sorted(random.Random(seeded(5)).sample(range(EPOCHS), 5))
    run = make_run(data)
    hires = Hires(run, deaths)
    (found,) = run.with_crews(hires)
    assert not hires.deaths, "every one of them died"
    assert hires.hired == 6
    assert_same(found, undisturbed)


def test_a_killed_run_continues_from_its_file(data, undisturbed, tmp_path):
    class Killed(BaseException):
        pass

    def progress(done, total):
        if done >= EPOCHS // 2:
            raise Killed

    run = make_run(data, tmp_path, progress=progress)
    with pytest.raises(Killed):
        run.with_crews(Hires(run, []))
    (file,) = tmp_path.iterdir()
    seen = []
    run = make_run(data, tmp_path, progress=lambda done, total: seen.append(done))
    assert run.checkpoints.done >= EPOCHS // 2
    assert_same(run.with_crews(Hires(run, []))[0], undisturbed)
    assert min(seen) > EPOCHS // 2
    again = make_run(data, tmp_path)
    assert again.checkpoints.done == EPOCHS
    assert [*tmp_path.iterdir()] == [file]


@pytest.mark.parametrize("change", [{"epochs": 46}, {"options": {"num_layers": 3}}])
def test_another_run_has_another_file(data, tmp_path, change):
    assert (
        make_run(data, tmp_path).checkpoints.file
        != make_run(data, tmp_path, **change).checkpoints.file
    )


def test_other_data_are_another_run(data, tmp_path):
    other = data.clone()
    other.x = data.x.clone()
    other.x[3, 2] += 1
    assert make_run(data, tmp_path).checkpoints.file != make_run(other, tmp_path).checkpoints.file


@pytest.mark.parametrize("damage", ["empty", "cut", "no tensors"])
def test_a_damaged_checkpoint_is_refused(tmp_path, damage):
    checkpoints = Checkpoints("a" * 64, tmp_path)
    checkpoints.keep(0, {"epoch": torch.tensor(7)}, 1)
    assert Checkpoints("a" * 64, tmp_path).done == 7
    content = checkpoints.file.read_bytes()
    damaged = {"empty": b"", "cut": content[:-3], "no tensors": b"\2\0\0\0\0\0\0\0{}"}[damage]
    checkpoints.file.write_bytes(damaged)
    with pytest.raises(memohop.DataError, match=r"is no checkpoint of a run .* starts anew"):
        Checkpoints("a" * 64, tmp_path)


def test_a_checkpoint_of_another_version_is_refused(tmp_path, monkeypatch):
    with monkeypatch.context() as patched:
        patched.setattr("memohop.parts.checkpoints.__version__", "0.0.9")
        Checkpoints("a" * 64, tmp_path).keep(0, {"epoch": torch.tensor(7)}, 1)
    with pytest.raises(memohop.DataError, match=r"memohop 0\.0\.9, and this is"):
        Checkpoints("a" * 64, tmp_path)


class Crew:
    def dismiss(self):
        pass


def test_a_worker_that_dies_at_once_every_time_ends_the_run():
    def task(crew):
        raise LostError("out of RAM")

    with pytest.raises(memohop.DataError, match=r"lost 3 times at epoch 40 \(out of RAM\)"):
        with_crew(Crew, task, lambda: 40)


def test_a_lost_worker_that_cannot_be_replaced_is_said():
    crews = [Crew()]

    def hire():
        if not crews:
            raise NoPlaceError("the cluster is full; add machines")
        return crews.pop()

    def task(crew):
        raise LostError("its machine is gone")

    expected = "a worker was lost at epoch 12 and cannot be replaced: the cluster is full"
    with pytest.raises(memohop.DataError, match=expected):
        with_crew(hire, task, lambda: 12)


class RayError(Exception):
    """As Ray's errors are."""


class RayTaskError(RayError):
    """An error of a task, with its cause."""

    def __init__(self, cause):
        self.cause = cause


@pytest.mark.parametrize(
    ("errors", "kind", "text"),
    [
        ([RayError("the actor died\nmore")], LostError, "^the actor died$"),
        (
            [RayTaskError(RuntimeError("[gloo/pair.cc:5] closed")), RayError("died")],
            LostError,
            "died",
        ),
        ([RayTaskError(RuntimeError("[gloo/pair.cc:5] Connection closed"))], LostError, "gloo"),
        ([RayError("died"), RayTaskError(memohop.UsageError("a mistake"))], memohop.UsageError, ""),
        ([RayTaskError(RuntimeError("a bug"))], RuntimeError, "a bug"),
    ],
)
def test_what_is_to_blame_when_workers_fail(errors, kind, text):
    ray = SimpleNamespace(exceptions=SimpleNamespace(RayError=RayError, RayTaskError=RayTaskError))
    found = _reason(ray, errors)
    assert type(found) is kind
    assert re.search(text, str(found))
