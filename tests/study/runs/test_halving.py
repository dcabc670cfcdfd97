"""A search climbs its ladder by validation alone, stores each rung, and trains nothing twice."""

import itertools
from contextlib import closing
from dataclasses import replace

import msgspec
import numpy as np
import pytest
import torch

import memohop
from memohop.errors import DataError
from memohop.jobs.named import NamedGraph
from study.cli import main
from study.cli.run import plan_of
from study.pages.page import data_table
from study.runs.cell import RUNG, Halving, Rung, best_places
from study.runs.experiment import Experiment
from study.runs.export import export_tuned
from study.runs.runner import run_cells
from study.runs.store import Store
from study.runs.tuned import Tuned
from tiny_experiment import altered, failing, noted
from tiny_search import SEARCH

FAIR = Halving(8, (Rung(32, 2, 0.2), Rung(4, 4), Rung(1, 10)))


@pytest.fixture
def cells(tiny_search):
    return list(tiny_search.cells())


@pytest.fixture
def stored(tmp_path, run):
    """Makes the store of some cells, and gives what is exported of it."""

    def stored(name, experiment, cells, *engine):
        with closing(Store(tmp_path / f"{name}.sqlite")) as store:
            run(cells, store, *engine)
            return export_tuned(store, experiment)[0]

    return stored


def cells_of(store):
    return {key: (cell.axes, cell.content) for key, cell in store.cells().items()}


def test_the_budget_of_the_fair_table():
    assert Experiment("fair").halving("fair") == FAIR
    assert FAIR.trainings(10) == [64, 16, 6]
    assert FAIR.trainings(3) == [64, 12, 0]  # fewer splits than asked for
    # A network that two rungs share counts once.
    long = Halving(4, (Rung(8, 3, 0.5), Rung(4, 10, 0.5), Rung(2, 10), Rung(1, 10, seeds=3)))
    assert long.trainings(10) == [24, 4 * 7, 20, 20]


def test_settings_fall_from_rung_to_rung():
    with pytest.raises(ValueError, match="down to 1"):
        Halving(1, tuple(Rung(count, 1) for count in (2, 4, 1)))


def test_the_first_rung_has_every_variant(cells):
    names = [(cell.dataset, cell.model, cell.axes) for cell in cells]
    assert names == [
        ("csbm", "mlp", {"homophily": 0.1, RUNG: 1}),
        ("csbm", "mlp", {"homophily": 0.8, RUNG: 1}),
        ("csbm", "gcn+mmp", {"homophily": 0.1, RUNG: 1}),
        ("csbm", "gcn+mmp", {"homophily": 0.1, "labels": "memory", RUNG: 1}),
        ("csbm", "gcn+mmp", {"homophily": 0.8, RUNG: 1}),
        ("csbm", "gcn+mmp", {"homophily": 0.8, "labels": "memory", RUNG: 1}),
        ("digits", "mlp", {RUNG: 1}),
    ]
    with_labels = cells[3].runs[0]
    assert with_labels.options["labels"] == "memory"
    assert with_labels.data.data["homophily"] == 0.1
    assert {run.epochs for run in cells[0].runs} == {3}
    assert [row["networks"] for row in plan_of(cells)] == [8 + 2 + 6] * 7
    assert [row["epochs"] for row in plan_of(cells)] == [8 * 3 + 2 * 3 + 6 * 6] * 7


def test_a_direction_is_drawn_on_directed_graphs_alone(cells, search_file):
    undirected = next(cell for cell in cells if cell.model == "gcn+mmp")
    assert "direction" not in undirected.drawn[0]
    text = SEARCH.replace('"gcn+mmp" = ["digits"]', 'mlp = ["csbm"]', 1)
    search_file.write_text(text, encoding="utf-8")
    directed = [cell for cell in Experiment(str(search_file)).cells() if cell.dataset == "digits"]
    assert {setting["direction"] for setting in directed[1].drawn} == {"undirected", "out"}
    lrs = [[setting["lr"] for setting in cell.drawn] for cell in (directed[1], undirected)]
    assert lrs[0] == lrs[1]


def test_each_rung_keeps_the_best_by_validation(cells, store, run):
    tally = run(cells, store)
    assert (tally.cells, tally.done, tally.failed) == (21, 21, [])
    for first in cells:
        rungs = [first, first.after(store), first.after(store).after(store)]
        assert rungs[2].after(store) is None
        for rung, after in itertools.pairwise(rungs):
            vals = {}
            for job in rung.runs:
                place = first.drawn.index(job.setting)
                vals.setdefault(place, []).append(store.run(job.id)[0].val)
            means = {place: np.mean(scores) for place, scores in vals.items()}
            best = sorted(means, key=means.get, reverse=True)
            assert after.tried == tuple(best[: len(after.tried)])
        assert {(job.member.split, job.member.seed) for job in rungs[2].runs} == {
            (split, seed) for split in range(3) for seed in range(2)
        }


def test_nothing_is_trained_twice_and_a_search_goes_on_where_it_stopped(
    cells, store, run, quick, tmp_path
):
    trained = []
    for limit in (1, 7, 2, None):
        run(cells, store, noted(quick, trained), limit=limit)
    ids = [key for population in trained for key in population]
    assert len(ids) == len(set(ids)) == 7 * 16
    again = run(cells, store, noted(quick, trained))
    assert (again.there, again.done, sum(map(len, trained))) == (21, 0, 7 * 16)
    with closing(Store(tmp_path / "whole.sqlite")) as whole:
        run(cells, whole)
        assert cells_of(store) == cells_of(whole)


def test_a_search_is_finished_before_the_next_begins(cells, store, run, quick):
    trained, shares = [], []

    def engine(work, jobs):
        for batch, attempt in quick(work, jobs):
            cell = batch.cell
            trained.append((cell.dataset, cell.model, *cell.variant.items(), cell.axes[RUNG]))
            yield batch, attempt

    run(cells, store, engine, costly_first=True, watcher=lambda *state: shares.append(state[-1]))
    rungs = [rung for rung, _ in itertools.groupby(trained)]  # of one or more populations each
    assert [rung[-1] for rung in rungs] == [1, 2, 3] * 7
    firsts = [cell.dataset for cell in cells]
    assert [rung[0] for rung in rungs[::3]] == firsts  # whole datasets, in the order of the file
    assert shares == sorted(shares)
    assert shares[-1] == pytest.approx(1.0)


def test_several_at_once_take_the_next_search_while_a_rung_is_on(cells, store, run, quick):
    order = []

    def two_at_once(work, jobs):
        running = []
        while True:
            running += itertools.islice(jobs, 2 - len(running))
            if not running:
                return
            job = running.pop(0)
            order.append(job.cell)
            yield from quick(work, iter([job]))

    tally = run(cells, store, two_at_once)
    assert (tally.cells, tally.done) == (21, 21)
    begun = {cell.id: cell.axes[RUNG] for cell in order}
    assert list(begun.values())[:6] == [1, 1, 2, 2, 3, 3]
    last = order[-1]
    assert (last.dataset, last.model, last.axes[RUNG]) == ("digits", "mlp", 3)


def test_the_test_scores_decide_nothing(cells, tiny_search, stored, quick):
    """Whatever they are, the same settings are tried and the same one is chosen."""
    rng = np.random.default_rng(0)
    other_tests = altered(quick, lambda job, result: replace(result, test=rng.random()))
    true = stored("true", tiny_search, cells).cells
    false = stored("false", tiny_search, cells, other_tests).cells
    for cell, other in zip(true, false, strict=True):
        assert (cell.rungs, cell.val) == (other.rungs, other.val)
        assert cell.test != other.test


def test_scrambled_test_labels_change_no_choice(cells, tiny_search, tmp_path, monkeypatch):
    """With real trainings; test nodes are the same in every split, and get other labels."""
    results = []
    for scrambled in (False, True):

        def load(graph, root=None, scrambled=scrambled):
            data = memohop.load("csbm", homophily=0.1, nodes=60, splits=3, channels=8)
            test = data.test_mask[:, 0]
            for name in ("train_mask", "val_mask"):
                data[name] &= ~test[:, None]
            data.test_mask = test[:, None].repeat(1, 3)
            if scrambled:
                data.y[test] = (data.y[test] + 1) % 5
            return data

        monkeypatch.setattr(NamedGraph, "load", load)
        with closing(Store(tmp_path / f"{scrambled}.sqlite")) as store:
            run_cells(cells[3:4], store)
            results.append(export_tuned(store, tiny_search)[0].cells[0])
    true, scrambled = results
    assert [rung.settings for rung in true.rungs] == [rung.settings for rung in scrambled.rungs]
    assert [rung.val for rung in true.rungs] == [rung.val for rung in scrambled.rungs]
    assert (true.val, true.chosen) == (scrambled.val, scrambled.chosen)
    assert torch.tensor(true.test).mean() > torch.tensor(scrambled.test).mean()


def test_settings_that_diverge_are_left_behind(cells, tiny_search, store, run, quick):
    def unlucky(work, jobs):
        for batch in jobs:
            highest = max(job.member.lr for job in batch.runs)
            gone = {"val": float("nan"), "test": float("nan"), "diverged": True}
            yield from altered(
                quick,
                lambda job, result, highest=highest, gone=gone: (
                    replace(result, **gone) if job.member.lr == highest else result
                ),
            )(work, iter([batch]))

    run(cells[:1], store, unlucky)
    after = cells[0].after(store)
    highest = max(setting["lr"] for setting in cells[0].drawn)
    assert all(cells[0].drawn[place]["lr"] < highest for place in after.tried)
    assert export_tuned(store, tiny_search)[0].cells == ()  # the last one always diverges


def test_of_equals_the_first_is_better_and_what_has_no_score_is_worst():
    assert best_places({3: 0.5, 1: 0.7, 2: float("nan"), 0: 0.7}, 3) == (1, 0, 3)


def test_a_failed_rung_has_none_after_it(cells, store, run):
    tally = run(cells, store, failing())
    assert (tally.cells, len(tally.failed)) == (7, 7)


class TestResults:
    @pytest.fixture
    def tuned(self, tiny_search, cells, store, run):
        run(cells, store)
        tuned, missing = export_tuned(store, tiny_search)
        assert missing == []
        return tuned

    def test_they_are_what_the_store_has(self, tuned, cells, store):
        first, cell = cells[3], tuned.cells[3]
        assert cell.axes == {"homophily": 0.1, "labels": "memory"}
        last = first.after(store).after(store)
        assert tuned.setting(cell) == first.drawn[last.tried[0]]
        assert (cell.networks, [rung.networks for rung in cell.rungs]) == (16, [8, 2, 6])
        assert cell.seconds == pytest.approx(16 * 0.5)
        assert sum(rung.epochs for rung in cell.rungs) == 16 * 6
        runs = {(run.member.seed, run.member.split): store.run(run.id)[0] for run in last.runs}
        assert cell.test == tuple(
            tuple(round(runs[seed, split].test, 9) for split in range(3)) for seed in range(2)
        )
        measured = tuned.measured(cell)
        assert measured.scores[1] == pytest.approx(50 * (cell.test[0][1] + cell.test[1][1]))
        assert (measured.seeds, measured.runs) == (2, 16)
        assert (cell.row, cell.column) == ("gcn+mmp labels=memory", "csbm homophily=0.1")
        assert cell.takes_labels

    def test_only_datasets_that_are_whole(self, tuned, tiny_search, cells, tmp_path, run):
        with closing(Store(tmp_path / "part.sqlite")) as store:
            run(cells[:5], store)
            run(cells[6:], store)
            run(cells[5:6], store, limit=2)  # the last rung is not there
            part, missing = export_tuned(store, tiny_search)
            assert (len(part.cells), part.unfinished, len(missing)) == (6, (), 1)
            part, missing = export_tuned(store, tiny_search, whole=True)
        assert part.unfinished == ("csbm",)
        assert [cell.dataset for cell in part.cells] == ["digits"]
        assert part.cells[0] == tuned.cells[-1]
        assert set(part.drawn) == {part.cells[0].space}

    def test_what_another_sitting_has_measured_is_kept(
        self, tuned, tiny_search, cells, search_file, stored, tmp_path, capsys
    ):
        output = tmp_path / "out.json"
        for name, part in (("first", cells[:3]), ("second", cells[2:])):
            stored(name, tiny_search, part)
            path = str(tmp_path / f"{name}.sqlite")
            words = ["store", "export", path, str(search_file), "--output", str(output)]
            assert main([*words, *(["--add"] if name == "second" else [])]) == 0
        assert Tuned.load(output) == tuned
        search_file.write_text(SEARCH.replace("[4, 8]", "[4, 16]"), encoding="utf-8")
        assert main([*words, "--add"]) == 0
        assert {cell.model for cell in Tuned.load(output).cells} == {"gcn+mmp"}  # mlp has changed
        assert main(["store", "export", path, "table1", "--add"]) == 2
        assert "--add is for searches" in capsys.readouterr().err

    def test_data_of_a_digest_that_was_not_known_have_none(self, tuned, store):
        """Versions up to 0.2.0 knew none of some files."""
        run = next(run for run, _ in store._runs())
        content = run.content
        assert len(run.data) == 32
        content["data"]["files"] = {"platonov/questions.npz": None}
        assert msgspec.structs.replace(run, text=msgspec.json.encode(content).decode()).data == ""
        tuned.sources[0].datasets["csbm"] = ""
        (row,) = (row for row in data_table([tuned]).rows if row[0].text == "csbm")
        assert row[1].text == "not recorded"

    @pytest.mark.parametrize(
        ("change", "words"),
        [
            ({"dataset": "texsa"}, "cell 1: there is no dataset named 'texsa'"),
            ({"source": 4}, "source is 4, and there are 1"),
            ({"space": "none"}, "there is no space 'none'"),
            ({"val": [[0.1, 0.2]]}, "not tables of one shape"),
            ({"test": [[0.1, 0.2, -1]] * 2}, "a network without a score"),
            ({"test": [[0.1, 0.2, 2]] * 2}, "not a file of results of a search"),
            ({"rungs": [[[9], [0.5], 1, 1, 1.0]]}, "a setting is not one of the 4"),
            ({"rungs": [[[0, 1], [0.5], 1, 1, 1.0]]}, "not one score for each setting"),
        ],
    )
    def test_files_that_no_export_wrote(self, tuned, tmp_path, change, words):
        raw = msgspec.json.decode(msgspec.json.encode(tuned))
        raw["cells"][0] |= change
        (tmp_path / "search.json").write_bytes(msgspec.json.encode(raw))
        with pytest.raises(DataError, match=words):
            Tuned.load(tmp_path / "search.json")

    def test_the_command_writes_them(self, tuned, search_file, tmp_path, capsys):
        output, path = tmp_path / "out.json", tmp_path / "runs.sqlite"
        assert main(["store", "export", str(path), str(search_file), "--output", str(output)]) == 0
        assert "7 cells, for which 112 networks were trained" in capsys.readouterr().out
        assert Tuned.load(output) == tuned


def test_a_dry_run_counts(search_file, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert main(["run", str(search_file), "--dry-run", "--only", "homophily=0.8"]) == 0
    assert "48" in capsys.readouterr().out  # three cells with 16 networks
    assert not list(tmp_path.glob("*.sqlite"))
