"""A Ray cluster on this machine trains what this process would, also when it loses a worker."""

import time
from contextlib import suppress
from functools import partial
from threading import Thread
from types import SimpleNamespace

import psutil
import pytest

import memohop
from study.runs.experiment import Experiment
from study.runs.ray_engine import _received, _send, ray_engine
from study.runs.runner import Resources, run_cells
from study.runs.store import Store

ray = pytest.importorskip("ray", reason="Ray is not installed here: pip install memohop[ray]")


class Hunter(Thread):
    """Kills the first worker that it finds at work."""

    def __init__(self):
        super().__init__(daemon=True)
        self.killed, self.stop = [], False

    def run(self):
        while not (self.killed or self.stop):
            for process in psutil.Process().children(recursive=True):
                with suppress(psutil.NoSuchProcess):  # it has ended since it was listed
                    if process.name().startswith("ray::attempt"):
                        time.sleep(0.3)  # it has only just begun
                        process.kill()
                        self.killed.append(process.pid)
                        return
            time.sleep(0.02)


def scores(store):
    query = "SELECT id, train, val, test, best_epoch, epochs, curves FROM runs ORDER BY id"
    return store.db.execute(query).fetchall()


def test_the_cell_of_a_lost_worker_is_run_again(tiny_file, tmp_path, monkeypatch):
    # Ray's workers give way to all other processes, and the other tests leave them nothing.
    monkeypatch.setenv("RAY_worker_niceness", "0")
    text = tiny_file.read_text(encoding="utf-8").replace("epochs = 6", "epochs = 100")
    tiny_file.write_text(text.replace('"mlp", "gcn", "gcn+mmp"', '"mlp"'), encoding="utf-8")
    cells = list(Experiment(str(tiny_file)).cells(["paper"]))
    here, there = Store(tmp_path / "here.sqlite"), Store(tmp_path / "there.sqlite")
    run_cells(cells, here, resources=Resources())
    hunter = Hunter()
    hunter.start()
    tally = run_cells(cells, there, resources=Resources(), engine=ray_engine())
    hunter.stop = True
    hunter.join()
    assert len(hunter.killed) == 1
    assert (tally.done, tally.failed) == (2, [])
    assert scores(there) == scores(here)
    assert not ray.is_initialized()


def test_missing_data_on_a_worker_is_said_in_one_line():
    class FromWorker(memohop.DataError, ray.exceptions.RayTaskError):
        """As Ray makes them of what a task raises."""

        def __init__(self, cause):
            self.cause = cause

    def get(ready):
        raise FromWorker(memohop.DataError("there are no files"))

    stub = SimpleNamespace(get=get, exceptions=ray.exceptions)
    with pytest.raises(memohop.DataError, match=r"^there are no files$"):
        _received(stub, "ready")


class Cluster:
    """Stands in for Ray: trains at once, unless a worker is lost.

    Args:
        losses: How often the worker of each model is lost, and by which error of Ray's.
    """

    exceptions = ray.exceptions

    def __init__(self, losses):
        self.losses, self.given = {model: list(errors) for model, errors in losses.items()}, []

    def cluster_resources(self):
        return {"CPU": 2.0}

    def remote(self, **_):
        return lambda function: SimpleNamespace(remote=partial(partial, function))

    def wait(self, running, num_returns):
        return running[:1], running[1:]

    def get(self, ready):
        model = ready.args[0].cell.model
        self.given.append(model)
        if self.losses.get(model):
            raise self.losses[model].pop(0)
        return ready()


def lost_on(cluster, cells, store, **more):
    def engine(jobs, resources, inner):
        return _send(cluster, jobs, resources)

    return run_cells(cells, store, resources=Resources(), engine=engine, **more)


def test_lost_workers_and_nodes_say_nothing_of_the_cell(one_job_each, tmp_path):
    paper = one_job_each.cells(["paper"])
    cells = [c for c in paper if c.axes == {"noise": 0} and c.model != "gcn+mmp"]
    errors = ray.exceptions
    node = errors.NodeDiedError("the node is gone\nand a page about that")
    losses = {"mlp": [errors.WorkerCrashedError()], "gcn": [node, node, node]}
    store = Store(tmp_path / "runs.sqlite")
    cluster = Cluster(losses)
    tally = lost_on(cluster, cells, store)
    assert cluster.given == ["mlp", "gcn", "mlp", "gcn", "gcn"]
    assert (tally.done, tally.failed) == (1, [])
    assert tally.lost == {"paper csbm gcn noise=0": "NodeDiedError: the node is gone"}
    assert [cell.model for cell in store.cells().values()] == ["mlp"]
    again = lost_on(Cluster({}), cells, store)  # a plain rerun does not skip it
    assert (again.there, again.done, again.given_up, again.lost) == (1, 1, 0, {})
    store.close()


def test_an_error_in_training_is_the_failure_of_its_cell(tiny, tmp_path, monkeypatch):
    monkeypatch.setattr("memohop.jobs.execute.train", lambda *_, **__: 1 / 0)
    cells = list(tiny.cells(["paper"]))[:1]
    store = Store(tmp_path / "runs.sqlite")
    cluster = Cluster({})
    tally = lost_on(cluster, cells, store)
    assert (cluster.given, tally.failed, tally.lost) == (["mlp"] * 2, cells, {})
    assert "ZeroDivisionError" in store.cell(cells[0].id).failure
    store.close()
