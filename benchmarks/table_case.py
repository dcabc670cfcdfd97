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
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.metrics import accuracy_score, r2_score, roc_auc_score
from sklearn.model_selection import train_test_split

_RARE = 0.1  # share of the rarer of two classes below which ranking counts, not accuracy
_CODES = 100  # distinct strings of a column up to which each has a feature


@dataclass
class Case:
    """One graph: features ``[nodes, features]``, adjacency matrix, targets and what is hidden."""

    name: str
    label: str
    x: sparse.csr_array
    adjacency: sparse.csr_array
    y: np.ndarray
    known: np.ndarray
    hidden: np.ndarray
    truth: np.ndarray
    classes: list[str]
    ids: list[str]

    @property
    def metric(self) -> str:
        """What everyone is scored by."""
        if not self.classes:
            return "r2"
        shares = np.bincount(self.y[self.known]) / len(self.known)
        return "roc_auc" if len(shares) == 2 and shares.min() < _RARE else "accuracy"

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


def read(folder: Path) -> Case:
    """A folder of tables, its columns as plainly as one would take them."""
    nodes = pyarrow.csv.read_csv(folder / "nodes.csv.gz")
    edges = pyarrow.csv.read_csv(folder / "edges.csv.gz")
    hidden = pyarrow.csv.read_csv(folder / "truth.csv")
    ids = [str(name) for name in nodes["id"].to_pylist()]
    index = {name: row for row, name in enumerate(ids)}
    label = nodes.column_names[1]
    values = nodes[label].to_pylist()
    is_number = pa.types.is_floating(nodes[label].type)
    known = np.array([row for row, value in enumerate(values) if value not in (None, "")])
    rows = np.array([index[str(name)] for name in hidden["id"].to_pylist()])
    answers = hidden["truth"].to_pylist()
    classes = [] if is_number else sorted({str(values[row]) for row in known})
    number = {name: code for code, name in enumerate(classes)}
    y = np.full(len(ids), np.nan) if is_number else np.full(len(ids), -1)
    y[known] = [values[row] if is_number else number[str(values[row])] for row in known]
    # a class of which no label is known is nobody's answer
    truth = np.array([answer if is_number else number.get(str(answer), -1) for answer in answers])
    ends = np.array(
        [
            [index.get(str(end), -1) for end in edges[name].to_pylist()]
            for name in edges.column_names[:2]
        ]
    )
    ends = ends[:, (ends >= 0).all(axis=0)]  # an edge may name a node that has no row
    arcs = np.hstack([ends, ends[::-1]])
    size = (len(ids), len(ids))
    adjacency = sparse.csr_array((np.ones(arcs.shape[1]), tuple(arcs)), shape=size)
    adjacency.data[:] = 1
    blocks = [_features(nodes[name]) for name in nodes.column_names[2:]]
    x = sparse.csr_array(sparse.hstack([block for block in blocks if block is not None]))
    return Case(folder.name, label, x, adjacency, y, known, rows, truth, classes, ids)


def hide_others(folder: Path, number: int, into: Path) -> Path:
    """The same graph with a fifth of its known labels hidden, drawn by a number; 0 for as it is.

    Everything else stays as it is written: an id such as 01127 is no number.
    """
    if not number:
        return folder
    case = read(folder)
    labels = case.y[case.known]
    stratify = (
        labels if case.classes and np.unique(labels, return_counts=True)[1].min() > 1 else None
    )
    _, hidden = train_test_split(case.known, test_size=0.2, random_state=number, stratify=stratify)
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


def _features(column: pa.ChunkedArray) -> sparse.csr_array | None:
    """Numbers as they are, 0 where missing; strings as categories, or as words if they are many."""
    values = column.to_pylist()
    try:
        numbers = [
            np.nan if value is None else float(str(value).replace(",", "")) for value in values
        ]
        filled = np.nan_to_num(np.array(numbers))[:, None]
        return sparse.csr_array(filled / (filled.std() or 1))
    except ValueError:
        names, codes = np.unique([str(value) for value in values], return_inverse=True)
        if len(names) > _CODES:
            return _words(["" if value is None else str(value) for value in values])
        return sparse.csr_array((np.ones(len(codes)), (np.arange(len(codes)), codes)))


def _words(texts: list[str]) -> sparse.csr_array | None:
    """1 for each word that a text has, of those in two texts or more; None if there is none."""
    counted = CountVectorizer(binary=True, token_pattern=r"\w+").fit_transform(texts)
    often = np.flatnonzero(counted.sum(axis=0).A1 > 1)
    return sparse.csr_array(counted[:, often], dtype=float) if len(often) else None
