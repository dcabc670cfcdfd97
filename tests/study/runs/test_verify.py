"""Runs of a store are trained again from their contents alone, and any difference is seen."""

from dataclasses import replace

import msgspec
import pytest

from memohop.errors import UsageError
from memohop.jobs.executor import here
from memohop.version import __version__
from study.cli import main
from study.runs.experiment import Experiment
from study.runs.runner import Attempt, Resources, run_cells
from study.runs.store import Store
from study.runs.verify import run_of, stored_runs, verify


@pytest.fixture(scope="module")
def filled(tiny_text, tmp_path_factory):
    """The path of a store with a few cells that were really trained."""
    folder = tmp_path_factory.mktemp("verify")
    (folder / "tiny.toml").write_text(tiny_text, encoding="utf-8")
    path = folder / "runs.sqlite"
    store = Store(path)
    tiny = Experiment(str(folder / "tiny.toml"))
    cells = [cell for cell in tiny.cells(["official"]) if cell.axes["noise"]]
    run_cells(cells, store, resources=Resources())
    store.close()
    return path


def test_a_content_is_its_run(tiny):
    for experiment in (tiny, Experiment("lambda")):
        cells = list(experiment.cells())
        for cell in (cells[0], cells[-1]):
            for run in cell.runs:
                assert run_of(run.content).id == run.id


def test_the_same_is_the_same_to_the_bit(filled, capsys):
    assert main(["store", "verify", str(filled), "--sample", "6"]) == 0
    assert "6 of 6 runs are the same to the bit" in capsys.readouterr().out


@pytest.mark.parametrize("version", [__version__, "0.0.1"])
def test_a_difference_is_named_and_another_version_that_made_it(filled, version, monkeypatch):
    store = Store(filled, read_only=True)
    made = [
        (key, msgspec.structs.replace(one, versions=one.versions | {"memohop": version}))
        for key, one in store.sources_of_runs()
    ]
    monkeypatch.setattr(store, "sources_of_runs", lambda: made)

    def other(work, jobs, inner):
        for job, attempt in here(work, jobs, inner):
            changed = (replace(one, test=0.123, best_epoch=0) for one in attempt.results)
            yield job, Attempt(tuple(changed), attempt.source)

    verdict = verify(stored_runs(store), 2, resources=Resources(), executor=other)
    assert (verdict.same, len(verdict.different)) == (0, 2)
    for key, text in verdict.different.items():
        before, _ = store.run(key)
        assert f"test {before.test} -> 0.123" in text
        assert f"split={before.content['split']} seed=0" in text
        assert ("made by version 0.0.1" in text) == (version == "0.0.1")
    store.close()


def test_a_run_is_trained_in_the_company_that_it_had(filled):
    store, companies = Store(filled, read_only=True), []

    def engine(work, jobs, inner):
        for job in jobs:
            companies.append({run.id for run in job.runs})
            yield job, Attempt(failure="Traceback\nValueError: no")

    verdict = verify(stored_runs(store), 3, resources=Resources(), executor=engine)
    together = store.trained_together()
    assert len(verdict.lost) == 3
    for key in verdict.lost:
        (company,) = [one for one in companies if key in one]
        content = store.run(key)[0].content
        apart = ("split", "seed", "lr", "weight_decay", "lam", "dropout", "input_dropout")
        same = {
            other
            for other in together[key]
            if all(
                value == content[name]
                for name, value in store.run(other)[0].content.items()
                if name not in apart
            )
        }
        assert company == same
    store.close()


def test_runs_that_two_cells_share_belong_to_the_first(filled):
    store = Store(filled, read_only=True)
    groups = set(store.trained_together().values())
    runs = [run for group in groups for run in group]
    assert len(runs) == len(set(runs)) == len(list(store.sources_of_runs()))
    store.close()


def test_what_fails_now_is_told(filled):
    def failing(work, jobs, inner):
        for job in jobs:
            yield job, Attempt(failure="Traceback\nValueError: no")

    store = Store(filled, read_only=True)
    verdict = verify(stored_runs(store), 2, resources=Resources(), executor=failing)
    assert set(verdict.lost.values()) == {"ValueError: no"}
    store.close()


def test_what_would_be_trained_otherwise_now_is_told(filled, monkeypatch):
    from study.runs import verify as module

    def longer(content):
        return run_of(content | {"epochs": content["epochs"] + 1})

    monkeypatch.setattr(module, "run_of", longer)
    store = Store(filled, read_only=True)
    verdict = verify(stored_runs(store), 2, resources=Resources())
    assert [*verdict.lost.values()] == 2 * ["this version of memohop would train something else"]
    store.close()


def test_only_runs_of_this_kind_of_device_are_taken(filled):
    from study.runs import verify as module

    store = Store(filled, read_only=True)
    with pytest.MonkeyPatch.context() as patch:
        here = module.source("cpu")
        patch.setattr(module, "source", lambda device: here.__class__({}, "Another"))
        with pytest.raises(UsageError, match="made on this kind of device"):
            verify(stored_runs(store), 2, resources=Resources())
    store.close()


@pytest.mark.parametrize("flag", ["--sample", "--jobs"])
def test_numbers_that_make_no_sense(flag, filled, capsys):
    assert main(["store", "verify", str(filled), flag, "0"]) == 2
    assert f"{flag} 0: give at least 1" in capsys.readouterr().err


def test_runs_of_an_interrupted_cell_wait_until_it_is_complete(tiny, tmp_path):
    """Some networks round differently in another population than their own."""

    def interrupted(work, jobs, inner):
        yield next(here(work, jobs, inner))
        raise KeyboardInterrupt

    (cell,) = [one for one in tiny.cells(["official"]) if one.name.endswith("mlp noise=0")]
    store = Store(tmp_path / "runs.sqlite")
    with pytest.raises(KeyboardInterrupt):
        run_cells([cell], store, resources=Resources(), executor=interrupted)
    assert len(store.missing(cell.runs)) == 2
    with pytest.raises(UsageError, match=r"no complete cell of .* was made on this kind of device"):
        verify(stored_runs(store), 4, resources=Resources())
    run_cells([cell], store, resources=Resources())
    assert verify(stored_runs(store), 4, resources=Resources()).same == 4
    store.close()
