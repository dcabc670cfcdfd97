"""A search climbs its ladder by validation alone, stores each rung, and trains nothing twice."""

import itertools
from dataclasses import replace

import msgspec
import numpy as np
import pytest
import torch

import memohop
from memohop.errors import DataError
from memohop.jobs.named import NamedGraph
from study.cli import main
from study.pages.page import data_table
from study.pages.terminal import plan_rows
from study.runs.cell import RUNG, Halving, Rung, best_places
from study.runs.experiment import Experiment
from study.runs.export import export_tuned
from study.runs.runner import Attempt, Resources, run_cells
from study.runs.store import Store
from study.runs.tuned import Tuned
from tiny_search import SEARCH
from tiny_search import search_file as search_file
from tiny_search import tiny_search as tiny_search

FAIR = Halving(8, (Rung(32, 2, 0.2), Rung(4, 4), Rung(1, 10)))


@pytest.fixture
def climb(quick):
    def climb(cells, store, executor=quick, **more):
        return run_cells(list(cells), store, resources=Resources(), executor=executor, **more)

    return climb


def counting(quick, trained):
    def engine(work, jobs, inner):
        for job, attempt in quick(work, jobs, inner):
            trained.extend(run.id for run in job.runs)
            yield job, attempt

    return engine


def test_the_budget_of_the_fair_table():
    assert Experiment("fair").halving("fair") == FAIR
    assert FAIR.trainings(10) == [64, 16, 6]
    assert FAIR.epochs(10, 300) == 64 * 60 + 22 * 300
    assert FAIR.trainings(3) == [64, 12, 0]  # fewer splits than asked for


def test_a_network_that_two_rungs_share_counts_once():
    long = Halving(4, (Rung(8, 3, 0.5), Rung(4, 10, 0.5), Rung(2, 10), Rung(1, 10, seeds=3)))
    assert long.trainings(10) == [24, 4 * 7, 20, 20]


@pytest.mark.parametrize(
    ("structures", "counts", "words"),
    [(3, (4, 1), "cannot be divided"), (1, (4, 2), "down to 1"), (1, (2, 4, 1), "down to 1")],
)
def test_ladders_that_make_no_sense(structures, counts, words):
    with pytest.raises(ValueError, match=words):
        Halving(structures, tuple(Rung(count, 1) for count in counts))


def test_the_first_rung_has_every_variant(tiny_search):
    cells = list(tiny_search.cells())
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
    assert with_labels.data.options["homophily"] == 0.1
    assert {run.epochs for run in cells[0].runs} == {3}
    assert [row["networks"] for row in plan_rows(cells)] == [8 + 2 + 6] * 7


def test_a_direction_is_drawn_on_directed_graphs_alone(tiny_search, search_file):
    undirected = next(cell for cell in tiny_search.cells() if cell.model == "gcn+mmp")
    assert "direction" not in undirected.drawn[0]
    text = SEARCH.replace('"gcn+mmp" = ["digits"]', 'mlp = ["csbm"]', 1)
    search_file.write_text(text, encoding="utf-8")
    directed = [cell for cell in Experiment(str(search_file)).cells() if cell.dataset == "digits"]
    assert {one["direction"] for one in directed[1].drawn} == {"undirected", "out"}
    assert [one["lr"] for one in directed[1].drawn] == [one["lr"] for one in undirected.drawn]


def test_each_rung_keeps_the_best_by_validation(tiny_search, store, climb):
    cells = list(tiny_search.cells())
    tally = climb(cells, store)
    assert (tally.cells, tally.done, tally.failed) == (21, 21, [])
    for first in cells:
        rungs = [first, first.after(store), first.after(store).after(store)]
        assert rungs[2].after(store) is None
        for rung, after in itertools.pairwise(rungs):
            vals = {}
            for run in rung.runs:
                place = first.drawn.index(run.setting)
                vals.setdefault(place, []).append(store.run(run.id)[0].val)
            means = {place: np.mean(scores) for place, scores in vals.items()}
            best = sorted(means, key=means.get, reverse=True)
            assert after.tried == tuple(best[: len(after.tried)])
        assert {(run.member.split, run.member.seed) for run in rungs[2].runs} == {
            (split, seed) for split in range(3) for seed in range(2)
        }


def test_nothing_is_trained_twice_and_a_search_goes_on_where_it_stopped(
    tiny_search, store, climb, quick, tmp_path
):
    trained = []
    for limit in (1, 7, 2):
        climb(tiny_search.cells(), store, counting(quick, trained), limit=limit)
    climb(tiny_search.cells(), store, counting(quick, trained))
    assert len(trained) == len(set(trained)) == 7 * 16
    again = climb(tiny_search.cells(), store, counting(quick, trained))
    assert (again.there, again.done, len(trained)) == (21, 0, 7 * 16)
    whole = Store(tmp_path / "whole.sqlite")
    climb(tiny_search.cells(), whole)
    assert cells_of(store) == cells_of(whole)
    whole.close()


def test_a_search_is_finished_before_the_next_begins(tiny_search, store, climb, quick):
    trained = []

    def engine(work, jobs, inner):
        for job, attempt in quick(work, jobs, inner):
            axes = {name: value for name, value in job.cell.axes.items() if name != RUNG}
            trained.append((job.cell.dataset, job.cell.model, *axes.items(), job.cell.axes[RUNG]))
            yield job, attempt

    shares = []
    climb(
        tiny_search.cells(),
        store,
        engine,
        costly_first=True,
        watcher=lambda tally, cell, share: shares.append(share),
    )
    rungs = [rung for rung, _ in itertools.groupby(trained)]  # of one or more populations each
    assert [rung[-1] for rung in rungs] == [1, 2, 3] * 7
    firsts = [cell.dataset for cell in tiny_search.cells()]
    assert [rung[0] for rung in rungs[::3]] == firsts  # whole datasets, in the order of the file
    assert shares == sorted(shares)
    assert shares[-1] == pytest.approx(1.0)


def test_several_at_once_take_the_next_search_while_a_rung_is_on(tiny_search, store, climb, quick):
    order = []

    def two_at_once(work, jobs, inner):
        running = []
        while True:
            running += itertools.islice(jobs, 2 - len(running))
            if not running:
                return
            job = running.pop(0)
            order.append(job.cell)
            yield from quick(work, iter([job]), inner)

    tally = climb(tiny_search.cells(), store, two_at_once)
    assert (tally.cells, tally.done) == (21, 21)
    begun = {cell.id: cell.axes[RUNG] for cell in order}
    assert list(begun.values())[:6] == [1, 1, 2, 2, 3, 3]
    last = order[-1]
    assert (last.dataset, last.model, last.axes[RUNG]) == ("digits", "mlp", 3)


def cells_of(store):
    return {key: (cell.axes, cell.content) for key, cell in store.cells().items()}


def test_merged_halves_are_the_whole(tiny_search, tmp_path, climb):
    cells = list(tiny_search.cells())
    stores = [Store(tmp_path / f"{name}.sqlite") for name in "abc"]
    climb(cells[:3], stores[0])
    climb(cells[3:], stores[1])
    climb(cells, stores[2])
    stores[0].merge(tmp_path / "b.sqlite")
    assert cells_of(stores[0]) == cells_of(stores[2])
    found = [export_tuned(store, tiny_search)[0].cells for store in (stores[0], stores[2])]
    assert found[0] == found[1]
    for store in stores:
        store.close()


def test_the_test_scores_decide_nothing(tiny_search, tmp_path, climb, quick):
    """Whatever they are, the same settings are tried and the same one is chosen."""

    def other_tests(work, jobs, inner):
        rng = np.random.default_rng(0)
        for job, attempt in quick(work, jobs, inner):
            results = tuple(replace(one, test=rng.random()) for one in attempt.results)
            yield job, Attempt(results, attempt.source)

    found = []
    for name, engine in (("true", quick), ("false", other_tests)):
        store = Store(tmp_path / f"{name}.sqlite")
        climb(tiny_search.cells(), store, engine)
        found.append(export_tuned(store, tiny_search)[0].cells)
        store.close()
    for one, other in zip(*found, strict=True):
        assert (one.rungs, one.val) == (other.rungs, other.val)
        assert one.test != other.test


def test_scrambled_test_labels_change_no_choice(tiny_search, tmp_path, monkeypatch):
    """With real trainings; test nodes are the same in every split, and get other labels."""
    cells = [cell for cell in tiny_search.cells() if cell.axes.get("labels")][:1]
    found = []
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
        store = Store(tmp_path / f"{scrambled}.sqlite")
        run_cells(cells, store, resources=Resources())
        tuned, _ = export_tuned(store, tiny_search)
        found.append(tuned.cells[0])
        store.close()
    one, other = found
    assert [rung.settings for rung in one.rungs] == [rung.settings for rung in other.rungs]
    assert [rung.val for rung in one.rungs] == [rung.val for rung in other.rungs]
    assert (one.val, one.chosen) == (other.val, other.chosen)
    assert one.test != other.test
    assert torch.tensor(one.test).mean() > torch.tensor(other.test).mean()


def test_settings_that_diverge_are_left_behind(tiny_search, store, climb, quick):
    def unlucky(work, jobs, inner):
        for job, attempt in quick(work, jobs, inner):
            lrs = [run.member.lr for run in job.runs]
            results = tuple(
                replace(one, val=float("nan"), test=float("nan"), diverged=True)
                if lr == max(lrs)
                else one
                for lr, one in zip(lrs, attempt.results, strict=True)
            )
            yield job, Attempt(results, attempt.source)

    (cell, *_) = tiny_search.cells()
    climb([cell], store, unlucky)
    after = cell.after(store)
    highest = max(one["lr"] for one in cell.drawn)
    assert all(cell.drawn[place]["lr"] < highest for place in after.tried)
    assert export_tuned(store, tiny_search)[0].cells == ()  # the last one always diverges


def test_of_equals_the_first_is_better_and_what_has_no_score_is_worst():
    assert best_places({3: 0.5, 1: 0.7, 2: float("nan"), 0: 0.7}, 3) == (1, 0, 3)


def test_a_failed_rung_has_none_after_it(tiny_search, store, climb):
    def failing(work, jobs, inner):
        for job in jobs:
            yield job, Attempt(failure="Traceback\nValueError: no")

    tally = climb(tiny_search.cells(), store, failing)
    assert (tally.cells, len(tally.failed)) == (7, 7)


class TestResults:
    @pytest.fixture
    def tuned(self, tiny_search, store, climb):
        climb(tiny_search.cells(), store)
        found, missing = export_tuned(store, tiny_search)
        assert missing == []
        return found

    def test_they_are_what_the_store_has(self, tuned, tiny_search, store):
        first = list(tiny_search.cells())[3]
        (cell,) = [one for one in tuned.cells if one.axes == {"homophily": 0.1, "labels": "memory"}]
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

    def test_only_datasets_that_are_whole(self, tuned, tiny_search, tmp_path, climb):
        cells = list(tiny_search.cells())
        store = Store(tmp_path / "part.sqlite")
        climb(cells[:5], store)
        climb(cells[6:], store)
        climb(cells[5:6], store, limit=2)  # the last rung is not there
        part, missing = export_tuned(store, tiny_search)
        assert (len(part.cells), part.unfinished, len(missing)) == (6, (), 1)
        part, missing = export_tuned(store, tiny_search, whole=True)
        assert part.unfinished == ("csbm",)
        assert [cell.dataset for cell in part.cells] == ["digits"]
        assert part.cells[0] == next(cell for cell in tuned.cells if cell.dataset == "digits")
        assert set(part.drawn) == {part.cells[0].space}
        store.close()

    def test_what_another_sitting_has_measured_is_kept(
        self, tuned, tiny_search, search_file, tmp_path, climb, capsys
    ):
        cells, output = list(tiny_search.cells()), tmp_path / "out.json"
        for number, part in enumerate((cells[:3], cells[2:])):
            path = tmp_path / f"{number}.sqlite"
            store = Store(path)
            climb(part, store)
            store.close()
            words = ["store", "export", str(path), str(search_file), "--output", str(output)]
            assert main([*words, *(["--add"] if number else [])]) == 0
        assert Tuned.load(output) == tuned
        search_file.write_text(SEARCH.replace("[4, 8]", "[4, 16]"), encoding="utf-8")
        assert main([*words, "--add"]) == 0
        assert {cell.model for cell in Tuned.load(output).cells} == {"gcn+mmp"}  # mlp has changed
        assert main(["store", "export", str(path), "table1", "--add"]) == 2
        assert "--add is for searches" in capsys.readouterr().err

    def test_data_of_no_known_digest_have_none(self, search_file, tmp_path, store, climb):
        text = SEARCH.replace("on.digits.data = { splits = 3 }", "").replace("digits", "questions")
        search_file.write_text(text, encoding="utf-8")
        search = Experiment(str(search_file))
        climb(search.cells(), store)
        found, _ = export_tuned(store, search)
        (source,) = found.sources
        assert source.datasets["questions"] == ""
        assert len(source.datasets["csbm"]) == 32
        found.save(tmp_path / "search.json")
        assert Tuned.load(tmp_path / "search.json") == found
        (row,) = (row for row in data_table([found]).rows if row[0].text == "questions")
        assert row[1].text == "not recorded"

    def test_a_file_gives_back_what_was_saved(self, tuned, tmp_path):
        tuned.save(tmp_path / "search.json")
        assert Tuned.load(tmp_path / "search.json") == tuned

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
        output = tmp_path / "out.json"
        path = tmp_path / "runs.sqlite"
        assert main(["store", "export", str(path), str(search_file), "--output", str(output)]) == 0
        assert "7 cells, for which 112 networks were trained" in capsys.readouterr().out
        assert Tuned.load(output) == tuned


def test_a_dry_run_counts(search_file, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert main(["run", str(search_file), "--dry-run", "--only", "homophily=0.8"]) == 0
    assert "48" in capsys.readouterr().out  # three cells with 16 networks
    assert not list(tmp_path.glob("*.sqlite"))
