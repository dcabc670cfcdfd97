"""A Ray cluster on this machine trains what this process would, also when it loses a worker."""

import time
from contextlib import suppress
from threading import Thread

import psutil
import pytest

from memohop.jobs.ray_workers import RayWorkers
from study.runs.experiment import Experiment
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
                    if process.name().startswith("ray::RayWorker"):
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
    tally = run_cells(
        cells, there, resources=Resources(), executor=RayWorkers(None, "cpu", "again")
    )
    hunter.stop = True
    hunter.join()
    assert len(hunter.killed) == 1
    assert (tally.done, tally.failed) == (2, [])
    assert scores(there) == scores(here)
    assert not ray.is_initialized()
