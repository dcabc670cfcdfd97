"""The store holds whole cells, whoever writes them and whatever happens to them."""

import multiprocessing
import random
import socket
import subprocess
import time
from contextlib import closing

import numpy as np
import pytest

import memohop
from study.cli import main
from study.runs import store as store_module
from study.runs.experiment import Experiment
from study.runs.export import results_of
from study.runs.runner import run_cells
from study.runs.store import Claims, Store
from tiny_experiment import content_at, failing, noted

KILLS = 5


@pytest.fixture
def cells(tiny):
    return list(tiny.cells())


def test_everything_is_trained_once_also_what_cells_share(store, cells, run, quick):
    trained = []
    tally = run(cells, store, noted(quick, trained))
    assert (tally.cells, tally.done, tally.there, tally.failed) == (12, 12, 0, [])
    runs = {run.id for cell in cells for run in cell.runs}
    assert store.db.execute("SELECT count(*) FROM runs").fetchone() == (len(runs),)
    assert sum(map(len, trained)) == len(runs)
    shared = [cell for cell in cells if cell.model == "mlp"]
    assert {cell.protocol for cell in shared} == {"paper", "official"}
    assert {run.id for run in shared[2].runs} < {run.id for run in shared[0].runs}
    again = run(cells, store)
    assert (again.there, again.done) == (12, 0)


def test_a_member_is_what_the_library_trains(store, cells):
    cell = next(c for c in cells if c.model == "gcn+mmp" and c.axes == {"noise": 0})
    run_cells([cell], store)
    rows = results_of(store, "tiny", [store.cell(cell.id)]).rows
    assert [row.setting for row in rows] == [run.setting for run in cell.runs]
    data = memohop.load("csbm", nodes=60, splits=2, channels=8)
    wanted = {"lam": 0.5, "num_layers": 1}
    (run,) = [
        run
        for row, run in zip(rows, cell.runs, strict=True)
        if row.setting == wanted and (row.split, row.seed) == (1, 1)
    ]
    (alone,) = memohop.train(
        data,
        "gcn+mmp",
        [memohop.Member(split=1, seed=1, lr=0.03, weight_decay=0, lam=0.5)],
        options={"hidden_channels": 8, "num_layers": 1},
        epochs=6,
    )
    member, source = store.run(run.id)
    scores = (member.train, member.val, member.test, member.best_epoch, member.epochs)
    assert scores == (alone.train, alone.val, alone.test, alone.best_epoch, alone.epochs)
    np.testing.assert_allclose(
        member.curves, np.stack([alone.loss_curve, alone.val_curve]), rtol=1e-3
    )
    assert source.versions["memohop"] == memohop.__version__
    repeat = member.content
    assert (repeat["split"], repeat["seed"], repeat["lam"]) == (1, 1, 0.5)
    assert repeat["options"]["decoupling"] == "mean"  # defaults are spelled out


@pytest.fixture(scope="module")
def processes():
    """Processes that need not import PyTorch, since they are forks of one that has."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["study.runs.runner", "torch._dynamo"])

    def start(*arguments):
        process = context.Process(target=main, args=([str(word) for word in arguments],))
        process.start()
        return process

    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("OMP_NUM_THREADS", "1")  # as conftest.py does for this process
        start("--version").join()
    return start


@pytest.fixture
def small_file(tiny_file):
    """The tiny experiment without its slowest model."""
    text = tiny_file.read_text(encoding="utf-8")
    tiny_file.write_text(text.replace('"gcn", "gcn+mmp"]', '"gcn"]'), encoding="utf-8")
    return tiny_file


def test_killing_it_at_random_moments_changes_nothing(small_file, tmp_path, processes):
    whole, killed = tmp_path / "whole.sqlite", tmp_path / "killed.sqlite"
    begin = time.monotonic()
    processes("run", small_file, "--store", whole).join()
    each = (time.monotonic() - begin) / 8
    moments = random.Random(7)
    watched, exits = Store(killed), []
    while len(exits) < KILLS and 0 not in exits:
        process = processes("run", small_file, "--store", killed)
        begun = "SELECT * FROM claims WHERE pid = ?"
        while process.is_alive() and not watched.db.execute(begun, (process.pid,)).fetchall():
            process.join(0.01)
        process.join(moments.uniform(0, 1.5 * each))
        process.kill()
        process.join()
        exits.append(process.exitcode)
    watched.close()
    # On a machine that has less to do than before, one may come to the end.
    assert exits[0] == -9
    assert set(exits) <= {-9, 0}
    processes("run", small_file, "--store", killed).join()
    assert content_at(killed) == content_at(whole)
    assert len(content_at(whole)["cells"]) == 8


def test_two_processes_share_a_store(small_file, tmp_path, processes):
    path = tmp_path / "runs.sqlite"
    both = [processes("run", small_file, "--store", path) for _ in range(2)]
    for process in both:
        process.join()
    processes("run", small_file, "--store", path).join()  # what one left to the other is there
    content = content_at(path)
    assert len(content["cells"]) == 8
    assert content["claims"] == []


class TestClaims:
    def test_a_cell_belongs_to_one_process(self, store):
        with Claims(store) as ours:
            assert ours.take("cell")
            theirs = Claims(store)
            theirs._me = ("another machine", 1)
            assert not theirs.take("cell")
            assert ours.take("another")
            ours.drop("cell")
            assert theirs.take("cell")
            assert not ours.take("cell")
        assert store.db.execute("SELECT cell, pid FROM claims").fetchall() == [("cell", 1)]

    @pytest.mark.parametrize("why", ["no signs of life", "its process is gone"])
    def test_a_claim_may_be_void(self, why, store):
        theirs = Claims(store)
        if why == "its process is gone":
            process = subprocess.Popen(["true"])
            process.wait()
            theirs._me = (theirs._me[0], process.pid)
        else:
            theirs._me = ("another machine", 1)
        theirs.take("cell")
        if why == "no signs of life":
            store.db.execute("UPDATE claims SET alive = alive - 61")
        with Claims(store) as ours:
            assert ours.take("cell")

    def test_no_claim_of_a_process_that_is_gone_is_left(self, store):
        killed = subprocess.Popen(["true"])
        killed.wait()
        for host, pid in [(socket.gethostname(), killed.pid), ("another machine", killed.pid)]:
            theirs = Claims(store)
            theirs._me = (host, pid)
            theirs.take(f"cell of {host}")
        with Claims(store) as ours:
            ours.take("ours")
        claims = store.db.execute("SELECT cell FROM claims").fetchall()
        assert claims == [("cell of another machine",)]

    def test_signs_of_life_are_given(self, store, monkeypatch):
        monkeypatch.setattr(store_module, "_BEAT", 0.01)
        with Claims(store) as ours:
            ours.take("cell")
            store.db.execute("UPDATE claims SET alive = 0")
            for _ in range(10_000):
                ((alive,),) = store.db.execute("SELECT alive FROM claims").fetchall()
                if alive:
                    break
                time.sleep(0.01)
            assert alive == pytest.approx(time.time(), abs=60)


class TestFailures:
    def test_they_are_kept_and_not_repeated_unless_asked_for(self, store, cells, run):
        assert len(run(cells[:2], store, failing()).failed) == 2
        (first, second) = store.cells().values()
        assert first.failure == second.failure == "Traceback ...\nValueError: no luck"
        tally = run(cells[:3], store)
        assert (tally.given_up, tally.done) == (2, 1)
        tally = run(cells[:3], store, retry=True)
        assert (tally.there, tally.done, tally.given_up) == (1, 2, 0)
        assert all(cell.failure is None for cell in store.cells().values())

    def test_an_error_in_training_is_one(self, store, cells, monkeypatch):
        def broken(*_, **__):
            raise ZeroDivisionError("in the middle of it")

        monkeypatch.setattr("memohop.jobs.named.train_job", broken)
        (cell,) = run_cells(cells[:1], store).failed
        failure = store.cell(cell.id).failure
        assert failure.startswith("Traceback")
        assert failure.endswith("ZeroDivisionError: in the middle of it\n")
        assert store.db.execute("SELECT * FROM claims").fetchall() == []

    def test_missing_data_is_not_one_but_ends_the_run(self, store, tiny_file, tmp_path):
        text = tiny_file.read_text(encoding="utf-8").replace(
            'datasets = ["csbm"]', 'datasets = ["texas"]'
        )
        text = text.replace("data = { nodes = 60, splits = 2, channels = 8 }", "")
        tiny_file.write_text(text, encoding="utf-8")
        with pytest.raises(memohop.DataError, match="has no readable"):
            run_cells(list(Experiment(str(tiny_file)).cells()), store, root=tmp_path)
        assert store.cells() == {}
        assert store.db.execute("SELECT * FROM claims").fetchall() == []


def test_a_cell_is_run_again_when_its_file_has_changed(store, tiny_file, cells, run, quick):
    run(cells, store)
    text = tiny_file.read_text(encoding="utf-8")
    tiny_file.write_text(text.replace("search.lam = [0, 0.5]", "search.lam = [0, 1]"), "utf-8")
    changed = list(Experiment(str(tiny_file)).cells())
    tally = run(changed, store)
    assert (tally.there, tally.done) == (8, 4)
    rows = results_of(store, "tiny", [store.cell(changed[-1].id)]).rows
    assert {row.setting["lam"] for row in rows} == {0, 1}
    narrowed = text.replace("search.num_layers = [1, 2]", "search.num_layers = [2]")
    tiny_file.write_text(narrowed, encoding="utf-8")
    trained = []
    tally = run(list(Experiment(str(tiny_file)).cells()), store, noted(quick, trained))
    assert (tally.there, tally.done, trained) == (8, 4, [])  # all its runs are there


def test_the_share_of_the_work_grows_to_one(store, cells, run):
    shares = []
    run(cells, store, watcher=lambda tally, cell, share: shares.append(share))
    assert shares == sorted(shares)
    assert shares[-1] == pytest.approx(1)
    assert len(shares) > len(cells)


class TestMerge:
    def test_two_halves_are_the_whole(self, cells, tmp_path, run):
        paths = [tmp_path / name for name in ("first.sqlite", "second.sqlite", "whole.sqlite")]
        for path, part in zip(paths, (cells[:8], cells[4:], cells), strict=True):
            with closing(Store(path)) as store:
                run(part, store)
        first, whole = ({r.id for c in part for r in c.runs} for part in (cells[:8], cells))
        with closing(Store(paths[0])) as store:
            assert store.merge(paths[1]) == (len(whole - first), 4)
            assert store.merge(paths[1]) == (0, 0)
        assert content_at(paths[0]) == content_at(paths[2])

    def test_a_result_counts_more_than_a_failure(self, cells, tmp_path, run):
        good, bad = Store(tmp_path / "good.sqlite"), Store(tmp_path / "bad.sqlite")
        run(cells[:1], good)
        run(cells[:1], bad, failing())
        assert good.merge(bad.path) == (0, 0)
        assert bad.merge(good.path)[1] == 1
        for store in (good, bad):
            assert store.cell(cells[0].id).failure is None
            rows = results_of(store, "tiny", store.cells().values()).rows
            assert len(rows) == len(cells[0].runs)
            store.close()

    def test_what_cannot_be_merged(self, store, tmp_path):
        with pytest.raises(memohop.UsageError, match="is the store itself"):
            store.merge(store.path)
        with pytest.raises(memohop.UsageError, match="there is no store"):
            store.merge(tmp_path / "none.sqlite")


def test_files_that_are_no_store(tmp_path):
    text = tmp_path / "text.sqlite"
    text.write_text("not a database, but long enough to be looked at" * 50, encoding="utf-8")
    with pytest.raises(memohop.DataError, match="cannot be used as a store"):
        Store(text)
