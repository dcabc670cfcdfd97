"""Runs behind the results of a search are found again, in the populations that they were in."""

import msgspec
import pytest

from memohop.errors import UsageError
from memohop.jobs.executor import here
from study.cli import main
from study.runs.experiment import Experiment
from study.runs.export import export_tuned
from study.runs.runner import Resources, run_cells
from study.runs.store import Store
from study.runs.tuned import Tuned
from study.runs.verify import published_runs, verify
from tiny_search import SEARCH


@pytest.fixture(scope="module")
def search(tmp_path_factory):
    """A search that was really made: its experiment, its results, and its populations."""
    folder = tmp_path_factory.mktemp("published")
    (folder / "search.toml").write_text(SEARCH, encoding="utf-8")
    experiment, store = Experiment(str(folder / "search.toml")), Store(folder / "runs.sqlite")
    trained = []

    def engine(work, jobs, inner):
        for job, attempt in here(work, jobs, inner):
            trained.append({run.id for run in job.runs})
            yield job, attempt

    run_cells(list(experiment.cells()), store, resources=Resources(), executor=engine)
    tuned, missing = export_tuned(store, experiment)
    store.close()
    assert not missing
    return experiment, tuned, trained


def test_all_scores_of_the_table_are_the_same_to_the_bit(search):
    experiment, tuned, _ = search
    verdict = verify(published_runs(tuned, experiment), 1000, resources=Resources())
    scores = sum(len(row) for cell in tuned.cells for row in cell.test)
    assert (verdict.same, verdict.different, verdict.lost) == (scores, {}, {})


def test_runs_come_in_the_populations_that_they_were_trained_in(search):
    experiment, tuned, trained = search
    record = published_runs(tuned, experiment)
    ids = {key for key, _ in record.sources.items()}
    jobs = [{run.id for run in job.runs} for job in record.batches(ids)]
    assert ids <= set().union(*jobs)
    assert all(job in trained for job in jobs)
    one = min(ids)
    (alone,) = record.batches({one})
    assert one in {run.id for run in alone.runs}


@pytest.mark.parametrize("name", ["val", "test"])
def test_a_score_that_differs_is_named(search, name):
    experiment, tuned, _ = search
    first, *others = tuned.cells
    scores = [list(row) for row in getattr(first, name)]
    before, scores[1][2] = scores[1][2], 0.123456789
    altered = msgspec.structs.replace(first, **{name: scores})
    changed = msgspec.structs.replace(tuned, cells=(altered, *others))
    verdict = verify(published_runs(changed, experiment), 1000, resources=Resources())
    (text,) = verdict.different.values()
    assert f"split=2 seed=1: {name} 0.123456789 -> {before}" in text


def test_results_of_another_experiment_file_are_refused(search, tmp_path):
    _, tuned, _ = search
    path = tmp_path / "search.toml"
    path.write_text(SEARCH.replace("low = 0.001", "low = 0.002"), encoding="utf-8")
    with pytest.raises(UsageError, match=r"mlp on csbm homophily.* is not what the experiment"):
        published_runs(tuned, Experiment(str(path)))


def test_the_results_of_the_package_are_those_of_its_experiment_file():
    tuned = Tuned.load("fair")
    made = published_runs(tuned, Experiment("fair")).sources
    assert len(made) == 10 * len(tuned.cells)
    assert {source.device for source in made.values()} == {"NVIDIA H200"}


def test_the_command_takes_them(capsys):
    assert main(["store", "verify", "fair", "--sample", "1"]) == 2
    error = capsys.readouterr().err
    assert "no complete cell of the results of fair was made on this kind of device" in error
