"""Several processes train what one would, also when they are lost, and none is left behind."""

import os
import signal
import subprocess
import sys
import time
from contextlib import closing

import psutil
import pytest

import study
from study.cli import main
from study.runs.experiment import Experiment
from study.runs.runner import run_cells
from study.runs.store import Store
from tiny_experiment import content_at, failing


def test_two_processes_write_what_one_writes(tiny_file, tmp_path, capsys):
    paths = tmp_path / "one.sqlite", tmp_path / "two.sqlite"
    for path, jobs in zip(paths, "12", strict=True):
        command = ["run", str(tiny_file), "--store", str(path), "--jobs", jobs]
        assert main([*command, "--only", "model=mlp,gcn"]) == 0
        out, err = capsys.readouterr()
        assert out == "8 cells: 8 done\n"
        assert "Traceback" not in err
    assert content_at(paths[0]) == content_at(paths[1])
    assert len(content_at(paths[1])["cells"]) == 8


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
        assert not any(content_at(tmp_path / "memohop-runs.sqlite").values())


def name_of(cell):
    return cell.protocol, cell.model, cell.axes["noise"]


def test_costly_cells_come_first_and_repetitions_last(tiny_file, tmp_path):
    text = tiny_file.read_text(encoding="utf-8")
    # The official mlp has the runs of the paper's and more, though it comes after it.
    text = text.replace('like = "paper"\nseeds = [0]', 'like = "paper"\nseeds = [0, 1, 2]')
    tiny_file.write_text(text, encoding="utf-8")
    cells = list(Experiment(str(tiny_file)).cells())
    orders = []

    def engine(work, jobs):
        taken = list(jobs)  # as if all of them ran at once
        orders.append([*dict.fromkeys(map(name_of, (job.cell for job in taken)))])
        yield from failing()(work, taken)

    for number, more in enumerate(({}, {"costly_first": True}, {"costly_first": True, "limit": 7})):
        with closing(Store(tmp_path / f"{number}.sqlite")) as store:
            run_cells(cells, store, executor=engine, **more)
    plain, costly, few = orders
    assert plain == [name_of(cell) for cell in cells]
    assert sorted(costly) == sorted(plain)
    assert costly[:2] == [("official", "gcn+mmp", 50), ("official", "gcn+mmp", 0)]
    repetitions = [("official", "mlp", 0), ("paper", "mlp", 0), ("paper", "mlp", 50)]
    assert sorted(costly[-3:]) == repetitions  # all of it is in the official one with noise
    assert sorted(few) == sorted(plain[:7])  # the same cells as without the order
