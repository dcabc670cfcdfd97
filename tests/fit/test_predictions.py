"""The table of predictions: whole or not at all, and nothing in it for a spreadsheet to run."""

import csv
import errno
import os
from types import SimpleNamespace

import numpy as np
import pyarrow.parquet
import pytest

from memohop import DataError
from memohop.fit import _predictions as predictions
from memohop.fit._predictions import table_of, write_predictions

IDS = np.array(
    ["=HYPERLINK(1)", "+1-2", "-x", "@SUM(A1)", "\tcmd", "\rcmd", "＝1", "-12.5", "+3e-4", "a=1"]  # noqa: RUF001
)
CLASSES = np.array(["-1", "=2+3"])
SHARES = np.array([[0.75, 0.25]] * 9 + [[0.25, 0.75]], dtype=np.float32)


def written(path, ids=IDS, classes=CLASSES, **how):
    """How many cells got an apostrophe."""
    model = SimpleNamespace(report_=SimpleNamespace(residual=None), classes_=classes)
    return write_predictions(path, table_of(model, ids, SHARES), **how)


def rows(path):
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def test_what_a_spreadsheet_would_run_begins_with_an_apostrophe(tmp_path):
    path = tmp_path / "out.csv"
    assert written(path) == 8
    table = rows(path)
    assert [row["id"] for row in table] == [f"'{name}" for name in IDS[:7]] + IDS[7:].tolist()
    assert [row["predicted"] for row in table] == ["-1"] * 9 + ["'=2+3"]
    assert table[0]["probability of =2+3"] == "0.25"


def test_raw_and_parquet_are_as_they_are(tmp_path):
    assert written(tmp_path / "out.csv", raw=True) == 0
    assert [row["id"] for row in rows(tmp_path / "out.csv")] == IDS.tolist()
    assert written(tmp_path / "out.parquet") == 0
    table = pyarrow.parquet.read_table(tmp_path / "out.parquet")
    assert table["id"].to_pylist() == IDS.tolist()


def test_whole_numbers_stay_numbers(tmp_path):
    assert written(tmp_path / "o.csv", np.arange(10) - 5, np.array([-1, 2])) == 0
    assert [row["id"] for row in rows(tmp_path / "o.csv")][:2] == ["-5", "-4"]


@pytest.mark.parametrize("name", ["out.csv", "out.parquet"])
def test_a_full_disk_leaves_the_older_file(tmp_path, monkeypatch, name):
    path = tmp_path / name
    path.write_text("older")

    def fail(*given, **how):
        (half,) = [file for file in given if hasattr(file, "name")]  # a file, or its path
        tmp_path.joinpath(half.name).write_text("half")
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(predictions.csv, "writer", fail)
    monkeypatch.setattr(pyarrow.parquet, "write_table", fail)
    with pytest.raises(DataError, match=r"No space left.*as it was"):
        written(path)
    assert path.read_text() == "older"
    assert os.listdir(tmp_path) == [name]
