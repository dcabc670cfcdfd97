"""A graph as two tables, with hidden labels: written, and read as plainly as one might."""

from __future__ import annotations

import csv
import gzip
import shutil
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute
import pyarrow.csv
from scipy import sparse
from sklearn.metrics import accuracy_score, r2_score, roc_auc_score
from sklearn.model_selection import train_test_split

from analyst import Columns, Way, read_columns, read_ways

_RARE = 0.1  # share of the rarer of two classes below which ranking counts, not accuracy


@dataclass
class Case:
    """One graph: columns and ways of ``analyst.py``, targets, and what is hidden.

    ``x`` is columns with words ``[nodes, features]``, ``adjacency`` who is joined by an edge. If
    ``ranked``, one of two classes is to be found, however many nodes it has.
    """

    name: str
    label: str
    columns: Columns
    ways: list[Way]
    x: sparse.csr_array
    adjacency: sparse.csr_array
    y: np.ndarray
    known: np.ndarray
    hidden: np.ndarray
    truth: np.ndarray
    classes: list[str]
    ids: list[str]
    ranked: bool = False

    @property
    def metric(self) -> str:
        """What everyone is scored by."""
        if not self.classes:
            return "r2"
        shares = np.bincount(self.y[self.known]) / len(self.known)
        rare = len(shares) == 2 and shares.min() < _RARE
        return "roc_auc" if rare or self.ranked else "accuracy"

    def score(self, outputs: np.ndarray, truth: np.ndarray) -> float:
        """Of probabilities ``[rows, classes]`` or numbers ``[rows]``."""
        if self.metric == "r2":
            return float(r2_score(truth, outputs))
        if self.metric == "roc_auc":
            return float(roc_auc_score(truth, outputs[:, 1]))
        return float(accuracy_score(truth, outputs.argmax(axis=1)))


def write(folder: Path, nodes: pa.Table, edges: pa.Table) -> None:
    """Write both tables, with a fifth of the known labels hidden in ``truth.csv``.

    Args:
        folder: The folder, which is made.
        nodes: First the ids, then the labels, empty where unknown.
        edges: First the sources, then the targets.
    """
    folder.mkdir(parents=True, exist_ok=True)
    labels = nodes[1].combine_chunks()
    known = np.flatnonzero(labels.is_valid())
    is_number = pa.types.is_floating(labels.type)
    stratify = None if is_number else labels.take(pa.array(known)).to_pylist()
    _, hidden = train_test_split(known, test_size=0.2, random_state=0, stratify=stratify)
    is_hidden = pa.array(np.isin(np.arange(len(labels)), hidden))
    shown = pa.compute.if_else(is_hidden, pa.scalar(None, labels.type), labels)
    truth = pa.table({"id": nodes[0], "truth": labels}).filter(is_hidden)
    tables = {"nodes": nodes.set_column(1, nodes.column_names[1], shown), "edges": edges}
    for name, table in tables.items():
        with gzip.open(folder / f"{name}.csv.gz", "wb", compresslevel=3) as file:
            pyarrow.csv.write_csv(table, file)
    pyarrow.csv.write_csv(truth, folder / "truth.csv")


def read(folder: Path, *, ranked: bool = False) -> Case:
    """A folder of tables."""
    nodes, edges, hidden = (
        _strings(folder / name) for name in ("nodes.csv.gz", "edges.csv.gz", "truth.csv")
    )
    ids, label = nodes[0].combine_chunks(), nodes[1].combine_chunks()
    known = np.flatnonzero(label.is_valid())
    is_number = _is_number(label)
    classes = [] if is_number else sorted(pa.compute.unique(label.drop_null()).to_pylist())
    target, truth = (
        values.cast(pa.float64()).to_numpy(zero_copy_only=False)
        if is_number
        # a class of which no label is known is nobody's answer
        else _places(values, pa.array(classes))
        for values in (label, hidden["truth"].combine_chunks())
    )
    rows = _places(hidden["id"].combine_chunks(), ids)
    ends = np.stack([_places(edges[side].combine_chunks(), ids) for side in (0, 1)])
    exist = (ends >= 0).all(axis=0)  # an edge may name a node that has no row
    columns = read_columns(nodes.select(range(2, nodes.num_columns)))
    others = edges.select(range(2, edges.num_columns)).filter(pa.array(exist))
    ways = read_ways(ends[:, exist], others, len(ids))
    adjacency = (ways[0].counts > 0).astype(float)
    return Case(
        folder.name, nodes.column_names[1], columns, ways, columns.sparse(), adjacency, target,
        known, rows, truth, classes, ids.to_pylist(), ranked,
    )  # fmt: skip


def hide_others(folder: Path, number: int, into: Path) -> Path:
    """The same graph with a fifth of its known labels hidden, drawn by a number; 0 for as it is.

    Everything else stays as it is written: an id such as 01127 is no number.
    """
    if not number:
        return folder
    case = read(folder)
    _, hidden = split(case, case.known, 0.2, number)
    with gzip.open(folder / "nodes.csv.gz", "rt", encoding="utf-8", newline="") as file:
        header, *nodes = csv.reader(file)
    truth = [["id", "truth"]]
    for row in sorted(hidden):
        truth.append([nodes[row][0], nodes[row][1]])
        nodes[row][1] = ""
    drawn = into / f"{folder.name}~{number}"
    drawn.mkdir()
    shutil.copy(folder / "edges.csv.gz", drawn)
    with gzip.open(drawn / "nodes.csv.gz", "wt", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows([header, *nodes])
    with (drawn / "truth.csv").open("w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows(truth)
    return drawn


def split(case: Case, rows: np.ndarray, share: float, seed: int) -> list[np.ndarray]:
    """Rows in two, the second a share of them, with the shares of the classes if they allow it."""
    labels = case.y[rows]
    even = len(case.classes) > 0 and np.unique(labels, return_counts=True)[1].min() > 1
    even = even and len(case.classes) <= share * len(rows)
    stratify = labels if even else None
    return train_test_split(rows, test_size=share, random_state=seed, stratify=stratify)


def _strings(path: Path) -> pa.Table:
    """A table whose columns are strings, null where nothing is written."""
    with pyarrow.csv.open_csv(path) as reader:
        names = reader.schema.names
    types = dict.fromkeys(names, pa.string())
    options = pyarrow.csv.ConvertOptions(column_types=types, strings_can_be_null=True)
    return pyarrow.csv.read_csv(path, convert_options=options)


def _is_number(label: pa.Array) -> bool:
    """Whether these are numbers that are not all whole."""
    try:
        return bool(np.any(label.drop_null().cast(pa.float64()).to_numpy() % 1))
    except pa.ArrowInvalid:
        return False


def _places(values: pa.Array, of: pa.Array) -> np.ndarray:
    """Where each value is in another array, -1 if nowhere."""
    places = pa.compute.fill_null(pa.compute.index_in(values, of), -1)
    return places.to_numpy(zero_copy_only=False).astype(int)
