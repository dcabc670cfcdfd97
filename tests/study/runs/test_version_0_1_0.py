"""What version 0.1.0 wrote is read as before.

The folder beside this file holds a small experiment, the store that ``memohop run`` of 0.1.0 made
of it (as SQL text) and the results that ``memohop store export`` of 0.1.0 wrote.
"""

import hashlib
import json
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from study.cli import main
from study.runs.experiment import Experiment
from study.runs.export import results_of
from study.runs.results import Results
from study.runs.store import Store
from tiny_experiment import noted

FOLDER = Path(__file__).parent / "version_0_1_0"
EXPERIMENT = str(FOLDER / "experiment.toml")
FIRST_KEYS = [
    "dataset", "model", "protocol", "mean", "std", "printed_mean", "printed_std", "difference",
    "difference_in_printed_stds", "val", "splits", "seeds", "ddof", "unit", "printed_source",
    "among_the_best", "p_best", "average_rank",
]  # fmt: skip
LAST_KEYS = ["runs", "seconds"]
TABLE_1 = "d10680eafd10d96451de6759297b7ec93917eb5e828b61dc493e3f22cc6e2a57"


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "runs.sqlite"
    with closing(sqlite3.connect(path)) as db:
        db.executescript((FOLDER / "store.sql").read_text(encoding="utf-8"))
    return path


@pytest.fixture
def written():
    return Results.load(FOLDER / "exported.json")


@pytest.fixture
def same_models():
    """The cells of the models that have gained no option since, which would be another content."""
    return [cell for cell in Experiment(EXPERIMENT).cells() if cell.model in ("mlp", "gcn")]


def test_every_score_is_read_as_it_was_exported(path, written):
    with closing(Store(path, read_only=True)) as store:
        assert results_of(store, "experiment", store.cells().values()) == written


def test_curves_belong_to_the_scores(path, same_models):
    with closing(Store(path, read_only=True)) as store:
        for cell in same_models:
            for run in cell.runs:
                stored, source = store.run(run.id)
                assert stored.content == json.loads(json.dumps(run.content))
                assert stored.curves[1].argmax() == stored.best_epoch
                assert stored.curves[1].max() == pytest.approx(stored.val, rel=2**-11)
                assert source.versions["memohop"] == "0.1.0"


def test_its_runs_are_done_and_not_run_again(path, same_models, run, quick):
    trained = []
    with closing(Store(path)) as store:
        tally = run(same_models, store, noted(quick, trained))
        assert (tally.cells, tally.there, tally.done, trained) == (4, 4, 0, [])
        assert store.missing(run for cell in same_models for run in cell.runs) == []


def test_its_cells_are_exported_as_it_exported_them(path, written, tmp_path, capsys):
    output = tmp_path / "out.json"
    assert main(["store", "export", str(path), EXPERIMENT, "--output", str(output)]) == 0
    # Models with new options have other runs now, and their cells count as missing.
    assert "2 cell(s) are missing, the first of them paper csbm gcn+mmp" in capsys.readouterr().err
    lines = (FOLDER / "exported.json").read_text(encoding="utf-8").splitlines()
    kept = [line.rstrip(",") for line in lines if "gcn+mmp" not in line]
    assert [line.rstrip(",") for line in output.read_text(encoding="utf-8").splitlines()] == kept


def test_the_contents_are_shown_as_before(path, capsys):
    assert main(["store", "show", str(path), "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == [
        {
            "experiment": "experiment",
            "protocol": "paper",
            "cells": 6,
            "failed": 0,
            "runs": 20,
            "finished": "2026-11-16T05:30:54+00:00",
        }
    ]


def test_table_1_of_the_package_is_the_one_that_0_1_0_prints(capsys):
    """Of the results of this package; the digest changes when these are trained anew."""
    assert main(["table", "table1", "--format", "json"]) == 0
    rows = json.loads(capsys.readouterr().out)
    for row in rows:
        keys = list(row)
        assert keys[: len(FIRST_KEYS)] == FIRST_KEYS
        assert keys[-len(LAST_KEYS) :] == LAST_KEYS
        row["p_best"] = round(row["p_best"], 6)  # an integral, which libraries round differently
    assert hashlib.sha256(json.dumps(rows).encode()).hexdigest() == TABLE_1
