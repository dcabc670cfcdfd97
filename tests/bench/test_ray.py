"""A Ray cluster on this machine trains what this process would, also when it loses a worker."""

import time
from threading import Thread
from types import SimpleNamespace

import psutil
import pytest

import memohop
from memohop.bench.experiment import Experiment
from memohop.bench.ray_engine import _received, ray_engine
from memohop.bench.runner import Place, run_cells
from memohop.bench.store import Store

ray = pytest.importorskip("ray", reason="Ray is not installed here: pip install memohop[ray]")


class Hunter(Thread):
    """Kills the first worker that it finds at work."""

    def __init__(self):
        super().__init__(daemon=True)
        self.killed, self.stop = [], False

    def run(self):
        while not (self.killed or self.stop):
            for process in psutil.Process().children(recursive=True):
                if process.name().startswith("ray::attempt"):
                    time.sleep(0.3)  # it has only just begun
                    process.kill()
                    self.killed.append(process.pid)
                    return
            time.sleep(0.02)


def scores(store):
    query = "SELECT id, train, val, test, best_epoch, epochs, curves FROM runs ORDER BY id"
    return store.db.execute(query).fetchall()


def test_the_cell_of_a_lost_worker_is_run_again(tiny_file, tmp_path):
    text = tiny_file.read_text(encoding="utf-8").replace("epochs = 6", "epochs = 100")
    tiny_file.write_text(text.replace('"mlp", "gcn", "gcn+mmp"', '"mlp"'), encoding="utf-8")
    cells = list(Experiment(str(tiny_file)).cells(["paper"]))
    here, there = Store(tmp_path / "here.sqlite"), Store(tmp_path / "there.sqlite")
    run_cells(cells, here, place=Place())
    hunter = Hunter()
    hunter.start()
    tally = run_cells(cells, there, place=Place(), engine=ray_engine())
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


def test_a_worker_that_is_lost_for_good_is_a_failure():
    def get(ready):
        raise ray.exceptions.WorkerCrashedError

    stub = SimpleNamespace(get=get, exceptions=ray.exceptions)
    assert "worker died unexpectedly" in _received(stub, "ready").failure
