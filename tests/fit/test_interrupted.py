"""Ctrl-C after the search keeps the fit, at every stage; a second one leaves the older model."""

import signal
from pkgutil import resolve_name

import pytest

import memohop
from commands import write_tables
from memohop.cli import main
from saved_models import tables

pytestmark = pytest.mark.usefixtures("interruptible")

STAGES = {
    "the end of a fit of the search": "fit._candidate.Search.update",
    "the splits of the search": "fit._candidate.Search.decide",
    "the choice": "fit.estimator.choose",
    "the record": "fit.estimator.make_record",
    "the costs for later nodes": "fit._verdict.measure_later",
    "the final fits": "fit.estimator.fit_to_all",
    "a final fit": "fit._ensemble.interrupts_raised",
    "a look at a final fit": "fit._ensemble._is_as_good",
    "the last steps of the fit": "fit._ensemble.Ensemble",
    "saving": "fit.estimator.keep.save",
    "a file": "folders.Layout._publish",
}


@pytest.fixture(scope="module")
def words(tmp_path_factory):
    options = write_tables(tmp_path_factory.mktemp("tables"), *tables())
    few = ["--models", "linear", "--trials", "1", "--splits", "2", "--time", "60"]
    return ["fit", *options, "--label", "kind", *few]


def interrupts(monkeypatch, name, times=1):
    """Have Ctrl-C come so many times as the function begins, the first time that it is called."""
    real, left = resolve_name(f"memohop.{name}"), [times]

    def with_ctrl_c(*arguments, **options):
        while left[0]:
            left[0] -= 1
            signal.raise_signal(signal.SIGINT)
        return real(*arguments, **options)

    monkeypatch.setattr(f"memohop.{name}", with_ctrl_c)
    return left


@pytest.mark.parametrize("stage", STAGES)
def test_the_best_so_far_is_kept(words, tmp_path, capsys, monkeypatch, stage):
    left = interrupts(monkeypatch, STAGES[stage])
    assert main([*words, "-o", str(tmp_path / "model")]) == 130
    assert left == [0]
    out, err = capsys.readouterr()
    assert "Kept: linear" in out
    assert "wrote" in err
    model = memohop.load_model(tmp_path / "model")
    assert set(model.predict()) == {"ham", "spam"}
    is_saved_first = stage in ("saving", "a file")
    assert (model.report_.stopped == "interrupted") is not is_saved_first


@pytest.mark.parametrize("stage", ["the record", "a file"])
def test_a_second_one_ends_it_at_once_and_leaves_the_older_model(
    words, tmp_path, capsys, monkeypatch, stage
):
    model = tmp_path / "model"
    assert main([*words, "-o", str(model)]) == 0
    before = {file.name: file.read_bytes() for file in model.iterdir()}
    interrupts(monkeypatch, STAGES[stage], times=2)
    assert main([*words, "--seed", "1", "-o", str(model)]) == 130
    assert {file.name: file.read_bytes() for file in model.iterdir()} == before
