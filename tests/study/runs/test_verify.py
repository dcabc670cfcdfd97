"""Recorded runs are trained again from their contents alone, and any difference is seen."""

from contextlib import closing
from dataclasses import replace

import msgspec
import pytest

from memohop.errors import UsageError
from memohop.jobs.executor import here
from memohop.version import __version__
from study.cli import main
from study.runs import verify as module
from study.runs.experiment import Experiment
from study.runs.export import export_tuned
from study.runs.runner import run_cells
from study.runs.store import Store
from study.runs.tuned import Tuned
from study.runs.verify import published_runs, run_of, stored_runs, verify
from tiny_experiment import altered, failing, noted
from tiny_search import SEARCH


@pytest.fixture(scope="module")
def path(tiny_text, tmp_path_factory):
    """A store with a few cells that were really trained."""
    folder = tmp_path_factory.mktemp("verify")
    (folder / "tiny.toml").write_text(tiny_text, encoding="utf-8")
    tiny = Experiment(str(folder / "tiny.toml"))
    with closing(Store(folder / "runs.sqlite")) as store:
        cells = [cell for cell in tiny.cells(["official"]) if cell.axes["noise"]]
        run_cells(cells, store)
    return folder / "runs.sqlite"


@pytest.fixture(scope="module")
def search(tmp_path_factory):
    """A search that was really made: its experiment, its results, and its populations."""
    folder = tmp_path_factory.mktemp("published")
    (folder / "search.toml").write_text(SEARCH, encoding="utf-8")
    experiment, trained = Experiment(str(folder / "search.toml")), []
    with closing(Store(folder / "runs.sqlite")) as store:
        run_cells([*experiment.cells()], store, executor=noted(here, trained))
        tuned, missing = export_tuned(store, experiment)
    assert not missing
    return experiment, tuned, trained


def test_a_content_is_its_run(tiny):
    for experiment in (tiny, Experiment("lambda")):
        cells = list(experiment.cells())
        for run in cells[0].runs + cells[-1].runs:
            assert run_of(run.content).id == run.id


class TestStores:
    @pytest.fixture
    def filled(self, path):
        with closing(Store(path, read_only=True)) as store:
            yield store

    def test_the_same_is_the_same_to_the_bit(self, path, capsys):
        assert main(["store", "verify", str(path), "--sample", "6"]) == 0
        assert "6 of 6 runs are the same to the bit" in capsys.readouterr().out

    @pytest.mark.parametrize("version", [__version__, "0.0.1"])
    def test_a_difference_is_named_and_another_version_that_made_it(self, filled, version):
        record = stored_runs(filled)
        sources = {
            key: msgspec.structs.replace(made, versions=made.versions | {"memohop": version})
            for key, made in record.sources.items()
        }
        other = altered(here, lambda job, result: replace(result, test=0.123, best_epoch=0))
        verdict = verify(replace(record, sources=sources), 2, executor=other)
        assert (verdict.same, len(verdict.different)) == (0, 2)
        for key, text in verdict.different.items():
            before, _ = filled.run(key)
            assert f"test {before.test} -> 0.123" in text
            assert f"split={before.content['split']} seed=0" in text
            assert ("made by version 0.0.1" in text) == (version == "0.0.1")

    def test_a_run_is_trained_in_the_company_that_it_had(self, filled):
        companies = []
        engine = noted(failing("Traceback\nValueError: no"), companies)
        verdict = verify(stored_runs(filled), 3, executor=engine)
        assert [*verdict.lost.values()] == ["ValueError: no"] * 3
        together = {key: company for key, (company, _) in filled.companies().items()}
        apart = ("split", "seed", "lr", "weight_decay", "lam", "dropout", "input_dropout")
        for key in verdict.lost:
            (company,) = [company for company in companies if key in company]
            content = filled.run(key)[0].content
            same = {
                other
                for other in together[key]
                if all(
                    value == content[name]
                    for name, value in filled.run(other)[0].content.items()
                    if name not in apart
                )
            }
            assert company == same

    def test_runs_that_two_cells_share_belong_to_the_first(self, filled):
        companies = {company for company, _ in filled.companies().values()}
        runs = [run for company in companies for run in company]
        (count,) = filled.db.execute("SELECT count(*) FROM runs").fetchone()
        assert len(runs) == len(set(runs)) == count

    def test_what_would_be_trained_otherwise_now_is_told(self, filled, monkeypatch):
        def longer(content):
            return run_of(content | {"epochs": content["epochs"] + 1})

        monkeypatch.setattr(module, "run_of", longer)
        verdict = verify(stored_runs(filled), 2)
        assert [*verdict.lost.values()] == [
            "this version of memohop would train something else"
        ] * 2

    def test_only_runs_of_this_kind_of_device_are_taken(self, filled, monkeypatch):
        other = msgspec.structs.replace(module.source("cpu"), device="Another")
        monkeypatch.setattr(module, "source", lambda device: other)
        with pytest.raises(UsageError, match="made on this kind of device"):
            verify(stored_runs(filled), 2)

    @pytest.mark.parametrize("flag", ["--sample", "--jobs"])
    def test_numbers_that_make_no_sense(self, flag, path, capsys):
        assert main(["store", "verify", str(path), flag, "0"]) == 2
        assert f"{flag} 0: give at least 1" in capsys.readouterr().err

    def test_runs_of_an_interrupted_cell_wait_until_it_is_complete(self, tiny, store):
        """Some networks round differently in another population than their own."""

        def interrupted(work, jobs):
            yield next(here(work, jobs))
            raise KeyboardInterrupt

        (cell,) = [c for c in tiny.cells(["official"]) if c.name.endswith("mlp noise=0")]
        with pytest.raises(KeyboardInterrupt):
            run_cells([cell], store, executor=interrupted)
        assert len(store.missing(cell.runs)) == 2
        with pytest.raises(UsageError, match=r"no complete cell of .* was made on this kind of"):
            verify(stored_runs(store), 4)
        run_cells([cell], store)
        assert verify(stored_runs(store), 4).same == 4


class TestResults:
    """Runs behind the results of a search are found again, in the populations they were in."""

    def test_all_scores_of_the_table_are_the_same_to_the_bit(self, search):
        experiment, tuned, _ = search
        verdict = verify(published_runs(tuned, experiment), 1000)
        scores = sum(len(row) for cell in tuned.cells for row in cell.test)
        assert (verdict.same, verdict.different, verdict.lost) == (scores, {}, {})

    def test_runs_come_in_the_populations_that_they_were_trained_in(self, search):
        experiment, tuned, trained = search
        record = published_runs(tuned, experiment)
        ids = set(record.sources)
        batches = [{run.id for run in batch.runs} for batch in record.batches(ids)]
        assert ids <= set().union(*batches)
        assert all(batch in trained for batch in batches)
        (alone,) = record.batches({min(ids)})
        assert min(ids) in {run.id for run in alone.runs}

    @pytest.mark.parametrize("name", ["val", "test"])
    def test_a_score_that_differs_is_named(self, search, name):
        experiment, tuned, _ = search
        first, *others = tuned.cells
        scores = [list(row) for row in getattr(first, name)]
        before, scores[1][2] = scores[1][2], 0.123456789
        wrong = msgspec.structs.replace(first, **{name: scores})
        changed = msgspec.structs.replace(tuned, cells=(wrong, *others))
        verdict = verify(published_runs(changed, experiment), 1000)
        (text,) = verdict.different.values()
        assert f"rung=3 split=2 seed=1: {name} 0.123456789 -> {before}" in text

    def test_results_of_another_experiment_file_are_refused(self, search, tmp_path):
        path = tmp_path / "search.toml"
        path.write_text(SEARCH.replace("low = 0.001", "low = 0.002"), encoding="utf-8")
        with pytest.raises(UsageError, match=r"mlp on csbm homophily.* is not what the experiment"):
            published_runs(search[1], Experiment(str(path)))

    def test_those_of_the_package_are_of_its_experiment_file(self, capsys):
        tuned = Tuned.load("fair")
        made = published_runs(tuned, Experiment("fair")).sources
        assert len(made) == 10 * len(tuned.cells)
        assert {source.device for source in made.values()} == {"NVIDIA H200"}
        assert main(["store", "verify", "fair", "--sample", "1"]) == 2
        error = capsys.readouterr().err
        assert "no complete cell of the results of fair was made on this kind of device" in error
