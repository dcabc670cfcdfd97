"""Workers of a Ray cluster on this machine: the results are those of one process."""

import os
import signal
import subprocess
import sys
import time
import warnings
from contextlib import suppress

import psutil
import pytest

import memohop
from memohop import Member
from memohop.jobs.ray_workers import RayWorkers
from memohop.jobs.train import run_on, train
from memohop.parts.partition import partition
from memohop.parts.run import PartsRun
from memohop.training import Job
from numerics import in_float64, seeded
from plain_loop import assert_alike

ray = pytest.importorskip("ray", reason="Ray is not installed here: pip install memohop[ray]")


@pytest.fixture(scope="module")
def cluster():
    with RayWorkers(None, "cpu", "run the tests again", count=2).connected():
        yield


def name_of(process):
    """Its name; empty if it has ended since it was listed."""
    with suppress(psutil.NoSuchProcess):
        return process.name()
    return ""


def workers_of(process):
    children = process.children(recursive=True)
    return [child for child in children if name_of(child).startswith("ray::RayWorker")]


def test_what_ray_plans_for_its_own_users_is_not_shown(monkeypatch):
    told = []

    def init(**_):
        told.append("a tip")
        warnings.warn("Tip: in future versions of Ray ...", FutureWarning, stacklevel=2)

    fakes = {"is_initialized": lambda: False, "init": init, "shutdown": lambda: None}
    fakes["cluster_resources"] = lambda: {"CPU": 1}
    for name, fake in fakes.items():
        monkeypatch.setattr(ray, name, fake)
    with RayWorkers(None, "cpu", "give the command again").connected():
        assert told == ["a tip"]  # and no warning, which would be an error here


@pytest.mark.usefixtures("cluster")
def test_a_graph_in_blocks_survives_the_loss_of_a_worker(data):
    killed = []

    def progress(done, total):
        if done >= 10 and not killed:
            victim = workers_of(psutil.Process())[0]
            victim.kill()
            killed.append(victim.pid)

    members, said = [Member(lam=0.1)], []
    with in_float64():
        expected = train(data, "gcn+mmp", members, epochs=20)
        how = {"workers": 2, "progress": progress, "say": said.append}
        assert_alike(memohop.train(data, "gcn+mmp", members, epochs=20, **how), expected, 1e-6)
    assert len(killed) == 1
    assert said[0].startswith("the graph is cut for 2 workers (there are too few members")
    _, alive = psutil.wait_procs(workers_of(psutil.Process()), timeout=60)
    assert not alive


@pytest.mark.usefixtures("cluster")
def test_a_mistake_that_a_worker_finds_is_said_in_one_line(data):
    blocks = partition(data.edge_index, data.num_nodes, 1)
    run = PartsRun(Job(data=data, model="gcn", memory=1000), blocks)
    with pytest.raises(memohop.UsageError, match=r"^block 1 of 1, .* give each worker more$"):
        run_on(RayWorkers(None, "cpu", "give the command again", count=1), run)


@pytest.mark.usefixtures("cluster")
def test_a_cluster_without_room_for_the_workers(data, monkeypatch):
    with pytest.raises(memohop.UsageError, match="workers=3, but the Ray cluster has 2 CPUs"):
        memohop.train(data, "gcn", [Member()], workers=3)
    monkeypatch.setattr("memohop.jobs.executor._START", 0.0)
    with pytest.raises(memohop.DataError, match="2 of 2 workers could not be started within"):
        memohop.train(data, "gcn", [Member()], workers=2)


DRIVER = """
import sys, memohop
data = memohop.load("csbm", nodes=60, channels=8, homophily=0.4, seed=int(sys.argv[1]))
memohop.train(data, "gcn", [memohop.Member()], epochs=100_000, workers=1, checkpoints=sys.argv[2])
"""


def test_a_killed_driver_leaves_no_process_behind_and_a_checkpoint(data, tmp_path):
    """Ray's own two agents excepted: they look for their cluster for a minute, and end then."""
    command = [sys.executable, "-W", "ignore", "-c", DRIVER, str(seeded(1)), str(tmp_path)]
    driver = subprocess.Popen(command, env={**os.environ, "RAY_ADDRESS": ""})
    try:
        end = time.monotonic() + 120
        while not (files := [*tmp_path.glob("*.safetensors")]):
            assert driver.poll() is None
            assert time.monotonic() < end, "the driver wrote no checkpoint"
            time.sleep(0.05)
        left = psutil.Process(driver.pid).children(recursive=True)
        left = [child for child in left if not name_of(child).endswith("Agent")]
        assert any(name_of(child).startswith("ray::RayWorker") for child in left)
    finally:
        driver.send_signal(signal.SIGKILL)
        driver.wait()
    _, alive = psutil.wait_procs(left, timeout=60)
    assert not alive
    blocks = partition(data.edge_index, data.num_nodes, 2)
    run = PartsRun(Job(data=data, model="gcn", epochs=100_000), blocks, tmp_path)
    assert run.checkpoints.file == files[0]
    assert run.checkpoints.done >= 10
    assert run.checkpoints.size == 1
