"""Several processes train what one would, also when they are lost, and none is left behind."""

import functools
import multiprocessing
import os
import signal
import subprocess
import sys
import time

import psutil
import pytest

import study
from study.cli import main
from study.runs import pool_engine as pool_module
from study.runs.experiment import Experiment
from study.runs.pool_engine import pool_engine
from study.runs.runner import Attempt, Job, Resources, run_cells
from study.runs.store import Store

# What processes do instead of `_serve`, in a module that they can import: other attempts.
UNLUCKY = """
import os, signal, time
from pathlib import Path
import torch
import study
from study.runs import pool_engine
from study.runs.runner import Attempt
from memohop.errors import DataError

real_serve, real_attempt = pool_engine._serve, pool_engine.attempt

HERE = Path(__file__).parent
LOG, BUSY = HERE / "log", HERE / "busy"

def note(words):
    with LOG.open("a") as file:
        print(words, file=file)

def attempt(job, resources):
    model = job.cell.model
    note(f"{model} starts")
    again = LOG.read_text().splitlines().count(f"{model} starts") > 1
    if model == "gcn":
        os.kill(os.getpid(), signal.SIGKILL)
    found = real_attempt(job, resources)
    if model == "mlp" and not again:
        os.write(CONNECTION.fileno(), b"\\0\\0\\1\\0the first of 256 bytes")
        os.kill(os.getpid(), signal.SIGKILL)
    note(f"{model} ends")
    return found

def without_data(job, resources):
    if job.cell.model == "gcn":
        BUSY.write_text(str(os.getpid()))
        time.sleep(600)
    while not (BUSY.exists() and BUSY.read_text()):
        time.sleep(0.01)
    raise DataError("there are no files")

def threads(job, resources):
    return Attempt(failure=f"{torch.get_num_threads()} threads")

def serve(attempt, connection, *arguments):
    global CONNECTION
    CONNECTION, pool_engine.attempt = connection, attempt
    real_serve(connection, *arguments)
"""


@pytest.fixture
def unlucky(tmp_path, monkeypatch):
    """Gives the processes one of those functions; nor need they import PyTorch."""
    (tmp_path / "unlucky.py").write_text(UNLUCKY, encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["study.runs.runner", "torch._dynamo"])
    monkeypatch.setattr(pool_module, "_CONTEXT", context)
    import unlucky

    def unlucky_processes(name):
        serve = functools.partial(unlucky.serve, getattr(unlucky, name))
        monkeypatch.setattr(pool_module, "_serve", serve)

    yield unlucky_processes
    del sys.modules["unlucky"]


def scores(path):
    """Runs and cells, without time and machine."""
    store = Store(path, read_only=True)
    tables = (
        "SELECT id, content, train, val, test, best_epoch, epochs, curves FROM runs",
        "SELECT id, content, failure FROM cells",
        "SELECT cell, place, run, setting FROM members",
        "SELECT cell FROM claims",
    )
    found = [sorted(store.db.execute(query)) for query in tables]
    store.close()
    return found


def test_two_processes_write_what_one_writes(tiny_file, tmp_path, capsys):
    paths = tmp_path / "one.sqlite", tmp_path / "two.sqlite"
    for path, jobs in zip(paths, "12", strict=True):
        command = ["run", str(tiny_file), "--store", str(path), "--jobs", jobs]
        assert main([*command, "--only", "model=mlp,gcn"]) == 0
        out, err = capsys.readouterr()
        assert out == "8 cells: 8 done\n"
        assert "Traceback" not in err
    assert scores(paths[0]) == scores(paths[1])
    assert len(scores(paths[1])[1]) == 8


def test_a_lost_process_costs_time_and_says_nothing_of_its_cell(one_job_each, tmp_path, unlucky):
    unlucky("attempt")
    cells = [c for c in one_job_each.cells(["paper"]) if c.axes == {"noise": 0}]
    here, there = Store(tmp_path / "here.sqlite"), Store(tmp_path / "there.sqlite")
    tally = run_cells(cells, there, resources=Resources(), engine=pool_engine(2))
    assert (tally.done, tally.failed) == (2, [])
    ((name, why),) = tally.lost.items()
    assert name == "paper csbm gcn noise=0"
    assert "process that trained it died 3 times" in why
    assert "RAM ran out" in why
    assert {cell.model for cell in there.cells().values()} == {"mlp", "gcn+mmp"}
    log = (tmp_path / "log").read_text(encoding="utf-8").splitlines()
    others_done = log.index("gcn+mmp ends")
    assert sorted(log[:others_done]) == ["gcn starts", "gcn+mmp starts", "mlp starts"]
    tried_again = log[others_done + 1 :]  # who was lost waits for the others, and has no company
    assert sorted(tried_again) == ["gcn starts", "gcn starts", "mlp ends", "mlp starts"]
    assert tried_again[tried_again.index("mlp starts") + 1] == "mlp ends"
    run_cells([c for c in cells if c.model != "gcn"], here, resources=Resources())
    for query in ("SELECT id, val, test, curves FROM runs ORDER BY id", "SELECT * FROM claims"):
        assert there.db.execute(query).fetchall() == here.db.execute(query).fetchall()
    here.close()
    there.close()


@pytest.mark.usefixtures("one_job_each")
def test_missing_data_ends_everything(tiny_file, tmp_path, unlucky, capsys):
    unlucky("without_data")
    path = tmp_path / "runs.sqlite"
    command = ["run", str(tiny_file), "--store", str(path), "--only", "model=mlp,gcn", "--jobs=2"]
    assert main([*command, "--only", "noise=0", "--protocol", "paper"]) == 1
    assert capsys.readouterr().err == "memohop: there are no files\n"
    assert scores(path) == [[], [], [], []]
    busy = int((tmp_path / "busy").read_text(encoding="utf-8"))
    for _ in range(10_000):
        if not psutil.pid_exists(busy):
            break
        time.sleep(0.01)
    assert not psutil.pid_exists(busy)


def test_the_processes_share_the_threads_of_one(tiny, monkeypatch, unlucky):
    unlucky("threads")
    monkeypatch.setattr("torch.get_num_threads", lambda: 7)
    jobs = (Job(cell, cell.runs) for cell in tiny.cells(["paper"]))
    attempts = [attempt for _, attempt in pool_engine(3)(jobs, Resources(), lambda *_: None)]
    assert [attempt.failure for attempt in attempts] == ["2 threads"] * 6


def is_worker(process):
    try:
        return "spawn_main" in "".join(process.cmdline())
    except psutil.NoSuchProcess:  # it has ended since it was listed
        return False


@pytest.mark.skipif(os.name != "posix", reason="signals are sent as a POSIX terminal does")
@pytest.mark.parametrize("way", ["ctrl-c", "kill"])
def test_no_process_is_left_behind(way, tiny_file, tmp_path):
    text = tiny_file.read_text(encoding="utf-8").replace("epochs = 6", "epochs = 100_000_000")
    tiny_file.write_text(text, encoding="utf-8")
    with (tmp_path / "err").open("w") as err:
        driver = subprocess.Popen(
            [sys.executable, "-m", "study", "run", "tiny.toml", "--jobs", "2"],
            cwd=tmp_path,
            env=os.environ | {"PYTHONPATH": str(study.ROOT)},
            stderr=err,
            start_new_session=True,
            # A shell has what it runs behind ignore Ctrl-C, and that is inherited.
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
        )
    workers, left = [], None
    try:
        while driver.poll() is None and len(workers) < 2:
            time.sleep(0.01)
            family = psutil.Process(driver.pid).children(recursive=True)
            workers = [process for process in family if is_worker(process)]
        if way == "kill":
            driver.kill()
        else:  # a terminal sends it to all of them: the workers leave it to the driver
            for worker in workers:
                worker.send_signal(signal.SIGINT)
            assert len(psutil.wait_procs(workers, timeout=0.5)[1]) == 2
            os.killpg(driver.pid, signal.SIGINT)
        code = driver.wait(timeout=120)
        _, left = psutil.wait_procs(workers, timeout=120)
    finally:
        if left != []:
            os.killpg(driver.pid, signal.SIGKILL)
            driver.wait()
    assert (len(workers), left) == (2, [])
    if way == "ctrl-c":
        assert code == 130
        assert (tmp_path / "err").read_text(encoding="utf-8") == "memohop: interrupted\n"
        assert scores(tmp_path / "memohop-runs.sqlite") == [[], [], [], []]


def test_costly_cells_come_first_and_repetitions_last(tiny_file, tmp_path):
    text = tiny_file.read_text(encoding="utf-8")
    # The official mlp has the runs of the paper's and more, though it comes after it.
    text = text.replace('like = "paper"\nseeds = [0]', 'like = "paper"\nseeds = [0, 1, 2]')
    tiny_file.write_text(text, encoding="utf-8")
    cells = list(Experiment(str(tiny_file)).cells())
    orders = []

    def engine(jobs, resources, inner):
        taken = list(jobs)  # as if all of them ran at once
        cells = dict.fromkeys(
            (job.cell.protocol, job.cell.model, job.cell.axes["noise"]) for job in taken
        )
        orders.append(list(cells))
        return ((job, Attempt(failure="not tried")) for job in taken)

    for number, more in enumerate(({}, {"costly_first": True}, {"costly_first": True, "limit": 7})):
        store = Store(tmp_path / f"{number}.sqlite")
        run_cells(cells, store, resources=Resources(), engine=engine, **more)
        store.close()
    plain, costly, few = orders
    assert plain == [(cell.protocol, cell.model, cell.axes["noise"]) for cell in cells]
    assert sorted(costly) == sorted(plain)
    assert costly[:2] == [("official", "gcn+mmp", 50), ("official", "gcn+mmp", 0)]
    repetitions = [("official", "mlp", 0), ("paper", "mlp", 0), ("paper", "mlp", 50)]
    assert sorted(costly[-3:]) == repetitions  # all of it is in the official one with noise
    assert sorted(few) == sorted(plain[:7])  # the same cells as without the order


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--jobs", "0"], "--jobs 0: give at least 1"),
        (["--jobs", "two"], "--jobs"),
        (["--jobs", "2", "--engine", "ray"], "--jobs 2 goes with --engine local"),
    ],
)
def test_numbers_of_processes_that_make_no_sense(arguments, words, tiny_file, tmp_path, capsys):
    path = tmp_path / "runs.sqlite"
    assert main(["run", str(tiny_file), "--store", str(path), *arguments]) == 2
    assert words in capsys.readouterr().err
    assert not path.exists()
