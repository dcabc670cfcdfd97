"""Workers that die, drivers that die, and checkpoints that do not fit."""

import random

import pytest
import torch

import memohop
from memohop import Member
from memohop.jobs.executor import Lost
from memohop.jobs.processes import Processes
from memohop.jobs.train import run_on
from memohop.parts.partition import partition
from memohop.parts.run import Checkpoints, PartsRun
from memohop.training import Job
from numerics import in_float64, seeded
from own_processes import Mortal, quickly
from plain_loop import assert_alike

EPOCHS = 45


def make_run(data, folder=None, progress=None, **arguments):
    blocks = partition(data.edge_index, data.num_nodes, 2)
    given = {"epochs": EPOCHS, "keep_models": True} | arguments
    job = Job(data=data, model="gcn+mmp", members=[Member(lam=0.1)], **given)
    return PartsRun(job, blocks, folder, progress)


class Deadly(Processes):
    """A pool of two, in which a worker dies at the next of some epochs."""

    def __init__(self, *deaths):
        super().__init__(2)
        self.deaths, self.started = list(deaths), 0

    def start(self, work):
        die_at = self.deaths[0] if self.deaths else -1
        self.started += 1
        if self.started % 2 == 0:
            del self.deaths[:1]
        return super().start(Mortal(die_at))


@pytest.fixture(scope="module", autouse=True)
def _in_float64():
    with in_float64(), quickly():
        yield


@pytest.fixture(scope="module")
def undisturbed(data):
    return run_on(Deadly(), make_run(data))


def test_five_deaths_change_nothing(data, undisturbed):
    deaths = sorted(random.Random(seeded(5)).sample(range(EPOCHS), 5))
    pool = Deadly(*deaths)
    results = run_on(pool, make_run(data))
    assert not pool.deaths, "every one of them died"
    assert pool.started == 2 * 6
    assert_alike(results, undisturbed)


def test_a_killed_run_continues_from_its_file(data, undisturbed, tmp_path):
    class Killed(BaseException):
        pass

    def progress(done, total):
        if done >= EPOCHS // 2:
            raise Killed

    run = make_run(data, tmp_path, progress=progress)
    with pytest.raises(Killed):
        run_on(Deadly(), run)
    (file,) = tmp_path.iterdir()
    seen = []
    run = make_run(data, tmp_path, progress=lambda done, total: seen.append(done))
    assert run.checkpoints.done >= EPOCHS // 2
    assert_alike(run_on(Deadly(), run), undisturbed)
    assert min(seen) > EPOCHS // 2
    again = make_run(data, tmp_path)
    assert again.checkpoints.done == EPOCHS
    assert [*tmp_path.iterdir()] == [file]


def test_other_runs_have_other_files(data, tmp_path):
    other = data.clone()
    other.x = data.x.clone()
    other.x[3, 2] += 1
    runs = [
        make_run(data, tmp_path),
        make_run(data, tmp_path, epochs=46),
        make_run(other, tmp_path),
    ]
    runs.append(make_run(data, tmp_path, options={"num_layers": 3}))
    assert len({run.checkpoints.file for run in runs}) == 4
    assert make_run(data, tmp_path).checkpoints.file == runs[0].checkpoints.file


@pytest.mark.parametrize("damage", ["empty", "cut", "no tensors", "of another version"])
def test_a_checkpoint_that_cannot_be_read_is_refused(tmp_path, monkeypatch, damage):
    text = r"is no checkpoint of a run .* starts anew"
    with monkeypatch.context() as patched:
        if damage == "of another version":
            patched.setattr("memohop.parts.run.__version__", "0.0.9")
            text = r"memohop 0\.0\.9, and this is"
        checkpoints = Checkpoints("a" * 64, tmp_path)
        checkpoints.keep(0, {"epoch": torch.tensor(7)}, 1)
        assert Checkpoints("a" * 64, tmp_path).done == 7
    whole = checkpoints.file.read_bytes()
    damaged = {"empty": b"", "cut": whole[:-3], "no tensors": b"\2\0\0\0\0\0\0\0{}"}
    checkpoints.file.write_bytes(damaged.get(damage, whole))
    with pytest.raises(memohop.DataError, match=text):
        Checkpoints("a" * 64, tmp_path)


class Unlucky:
    """A pool whose every job ends so."""

    def __init__(self, end):
        self.end = end

    def __call__(self, work, jobs, **how):
        return [(job, self.end) for job in jobs]


@pytest.mark.parametrize(
    ("end", "epoch", "text"),
    [
        (Lost("out of RAM"), 40, r"^a worker was lost 3 times at epoch 40 \(out of RAM\), and"),
        (Lost("it is full; add machines", late=True), 0, "^it is full; add machines$"),
        (Lost("it is full", late=True), 12, "lost at epoch 12 and cannot be replaced: it is full$"),
    ],
)
def test_a_worker_that_cannot_be_replaced_ends_the_run(data, end, epoch, text):
    run = make_run(data)
    run.checkpoints.snapshots[0] = {"epoch": torch.tensor(epoch)}
    with pytest.raises(memohop.DataError, match=text):
        run_on(Unlucky(end), run)


def test_a_worker_that_dies_at_once_every_time(data):
    run = make_run(data)
    with pytest.raises(memohop.DataError, match=r"lost 3 times at epoch 20 \(the process that had"):
        run_on(Deadly(3, 23, 24, 25), run)
