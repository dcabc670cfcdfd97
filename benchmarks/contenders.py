"""Contenders that are commands: ``memohop``, and AutoGluon in an environment of its own."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute
import pyarrow.csv
import pyarrow.parquet

from rivals import QUICK, joined
from table_case import Case

_LEARNS = 0.85  # share of the seconds after which AutoGluon must predict


def run_fit(python: str, case: Case, folder: Path, seconds: float, threads: int) -> np.ndarray:
    """``memohop fit`` and ``memohop predict`` as one types them: outputs for the hidden nodes."""
    with tempfile.TemporaryDirectory() as home:
        model, said = Path(home) / "model", Path(home) / "said.csv"
        tables = ["--nodes", folder / "nodes.csv.gz", "--edges", folder / "edges.csv.gz"]
        wanted = ["--label", case.label, "--drop-unknown", "--metric", case.metric]
        memohop = [python, "-m", "memohop"]
        _run([*memohop, "fit", *tables, *wanted, "--time", seconds, "-o", model], threads)
        _run([*memohop, "predict", model, "-o", said], threads)
        as_written = pyarrow.csv.ConvertOptions(column_types={"id": pa.string()})
        table = pyarrow.csv.read_csv(said, convert_options=as_written)
    hidden = pa.array([case.ids[row] for row in case.hidden])
    rows = pa.compute.index_in(hidden, table["id"].combine_chunks())
    return _outputs(table.take(rows), [f"probability of {name}" for name in case.classes])


def run_autogluon(python: str, case: Case, seconds: float, threads: int) -> np.ndarray:
    """``automl.py`` on columns and joined edges, and on the values of the categories as strings.

    Which edges to join is what suits a few extra trees best, in a tenth of the seconds.

    Returns:
        Outputs for the hidden nodes.
    """
    begin = time.monotonic()
    setting, _ = QUICK.choose(case, seconds / 10)
    numbers = joined(case, case.known, setting["edges"])
    table = {f"number {place}": values for place, values in enumerate(numbers.T)}
    for place, (codes, names) in enumerate(
        zip(case.columns.codes.T, case.columns.names, strict=True)
    ):
        table[f"category {place}"] = pa.array(np.append(names, None)[codes], pa.string())
    rows = pa.table(table)
    train = rows.take(pa.array(case.known))
    train = train.append_column("target", pa.array(case.y[case.known]))
    with tempfile.TemporaryDirectory() as home:
        pyarrow.parquet.write_table(train, f"{home}/train.parquet")
        hidden = rows.take(pa.array(case.hidden))
        pyarrow.parquet.write_table(hidden, f"{home}/hidden.parquet")
        left = _LEARNS * seconds - (time.monotonic() - begin)
        script = Path(__file__).with_name("automl.py")
        _run([python, script, home, case.metric, left, threads], threads)
        said = pyarrow.parquet.read_table(f"{home}/outputs.parquet")
    return _outputs(said, [str(code) for code in range(len(case.classes))])


def _run(words: list[object], threads: int) -> None:
    """One command; what it prints goes to standard error."""
    environment = os.environ | {"OMP_NUM_THREADS": f"{threads}"}
    subprocess.run([*map(str, words)], check=True, stdout=sys.stderr, env=environment)


def _outputs(said: pa.Table, classes: list[str]) -> np.ndarray:
    """Numbers, or a column for each class, 0 for one that was left out."""
    if not classes:
        return said["predicted"].to_numpy()
    none = np.zeros(len(said))
    columns = [said[name].to_numpy() if name in said.column_names else none for name in classes]
    return np.stack(columns, axis=1)
