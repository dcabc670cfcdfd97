"""``memohop fit`` against what else one might do with two tables, at equal seconds, in one run.

    python benchmarks/tables.py ../shared/tables --seconds 300 -o outputs

Each folder of tables has ``nodes.csv.gz``, ``edges.csv.gz``, with the label column empty for some
nodes, and ``truth.csv`` with the labels of those. Everyone gets the same files and seconds, chooses
on labelled nodes alone, and is scored once on the hidden labels:

lightgbm   gradient-boosted trees on the columns, the means of the neighbours' columns over one and
           two hops, the degree, and the shares of each class among the labelled neighbours
linear     logistic (or ridge) regression on the same and on the rows of the adjacency matrix
sage       GraphSAGE of stock PyG layers, a small grid

A rival tries settings at random, each on a quarter of the labelled nodes, until half of its seconds
are over, and fits the best to all labels.

With ``--draws 1,2,3``, a fifth of the known labels, drawn by each number, is hidden instead: the
labels of ``truth.csv`` stay unseen, and several draws say more than one; 0 is ``truth.csv``. How
leads are judged on each graph and over all of them is told in ``lead.py``.
"""

from __future__ import annotations

import argparse
import csv
import gzip
import json
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import lightgbm
import numpy as np
import pyarrow as pa
import pyarrow.csv
import torch
import torch.nn.functional as F
from scipy import sparse
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.metrics import accuracy_score, r2_score, roc_auc_score
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import MaxAbsScaler
from torch_geometric.nn import SAGEConv

from lead import Lead, average, is_judged, lead

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


def read(folder: Path) -> Case:
    """A folder of tables, its columns as plainly as one would take them."""
    nodes = pyarrow.csv.read_csv(folder / "nodes.csv.gz")
    edges = pyarrow.csv.read_csv(folder / "edges.csv.gz")
    hidden = pyarrow.csv.read_csv(folder / "truth.csv")
    ids = [str(one) for one in nodes["id"].to_pylist()]
    index = {name: row for row, name in enumerate(ids)}
    label = nodes.column_names[1]
    values = nodes[label].to_pylist()
    is_number = pa.types.is_floating(nodes[label].type)
    known = np.array([row for row, one in enumerate(values) if one not in (None, "")])
    rows = np.array([index[str(one)] for one in hidden["id"].to_pylist()])
    found = hidden["truth"].to_pylist()
    classes = [] if is_number else sorted({str(values[row]) for row in known})
    number = {name: code for code, name in enumerate(classes)}
    y = np.full(len(ids), np.nan) if is_number else np.full(len(ids), -1)
    y[known] = [values[row] if is_number else number[str(values[row])] for row in known]
    truth = np.array([one if is_number else number[str(one)] for one in found])
    ends = [
        np.array([index[str(one)] for one in edges[name].to_pylist()])
        for name in edges.column_names[:2]
    ]
    arcs = np.hstack([ends, ends[::-1]])
    size = (len(ids), len(ids))
    adjacency = sparse.csr_array((np.ones(arcs.shape[1]), tuple(arcs)), shape=size)
    adjacency.data[:] = 1
    blocks = [_features(nodes[name]) for name in nodes.column_names[2:]]
    x = sparse.csr_array(sparse.hstack([one for one in blocks if one is not None]))
    return Case(folder.name, label, x, adjacency, y, known, rows, truth, classes, ids)


def hide_others(folder: Path, number: int, into: Path) -> Path:
    """The same graph with a fifth of its known labels hidden, drawn by a number.

    Everything else stays as it is written: an id such as 01127 is no number.
    """
    case = read(folder)
    stratify = case.y[case.known] if case.classes else None
    _, hidden = train_test_split(case.known, test_size=0.2, random_state=number, stratify=stratify)
    with gzip.open(folder / "nodes.csv.gz", "rt", encoding="utf-8", newline="") as file:
        header, *nodes = csv.reader(file)
    truth = [["id", "truth"]]
    for row in sorted(hidden):
        truth.append([nodes[row][0], nodes[row][1]])
        nodes[row][1] = ""
    found = into / f"{folder.name}~{number}"
    found.mkdir()
    shutil.copy(folder / "edges.csv.gz", found)
    with gzip.open(found / "nodes.csv.gz", "wt", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows([header, *nodes])
    with (found / "truth.csv").open("w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows(truth)
    return found


def _features(column: pa.ChunkedArray) -> sparse.csr_array | None:
    """Numbers as they are, 0 where missing; strings with few values as categories."""
    values = column.to_pylist()
    try:
        numbers = [np.nan if one is None else float(str(one).replace(",", "")) for one in values]
        found = np.nan_to_num(np.array(numbers))[:, None]
        return sparse.csr_array(found / (found.std() or 1))
    except ValueError:
        names, codes = np.unique([str(one) for one in values], return_inverse=True)
        if len(names) > _CODES:
            return None
        return sparse.csr_array((np.ones(len(codes)), (np.arange(len(codes)), codes)))


def with_neighbours(case: Case, seen: np.ndarray, *, rows: bool) -> sparse.csr_array:
    """Columns, their means over one and two hops, degree, and labels of the neighbours."""
    degree = case.adjacency.sum(axis=1)
    mean = sparse.diags_array(1 / np.maximum(degree, 1)) @ case.adjacency
    one = mean @ case.x
    targets = np.zeros((len(case.y), max(len(case.classes), 1) + 1))
    targets[seen, -1] = 1
    if case.classes:
        targets[seen, case.y[seen]] = 1
    else:
        targets[seen, 0] = case.y[seen]
    near = case.adjacency @ targets
    far = case.adjacency @ near - degree[:, None] * targets
    shares = [found[:, :-1] / np.maximum(found[:, -1:], 1) for found in (near, far)]
    parts = [case.x, one, mean @ one, degree[:, None], *shares]
    return sparse.csr_array(sparse.hstack(parts + [case.adjacency] * rows, format="csr"))


@dataclass(frozen=True)
class Rival:
    """What else one might do: numbers to draw from, and a fit to some nodes.

    ``fit(case, setting, seen)`` gives probabilities ``[nodes, classes]`` or numbers ``[nodes]``.
    """

    name: str
    choices: dict[str, list[Any]]
    fit: Callable[[Case, dict[str, Any], np.ndarray], np.ndarray]

    def run(self, case: Case, seconds: float) -> tuple[np.ndarray, int]:
        """The outputs of the best setting, fitted to all labels, and how many were tried."""
        begin, draw = time.monotonic(), np.random.default_rng(0)
        stratify = case.y[case.known] if case.classes else None
        seen, held = train_test_split(case.known, test_size=0.25, random_state=0, stratify=stratify)
        tried: dict[str, tuple[float, dict[str, Any]]] = {}
        total = int(np.prod([len(values) for values in self.choices.values()]))
        while len(tried) < total and time.monotonic() - begin < seconds / 2:
            setting = {name: draw.choice(values).item() for name, values in self.choices.items()}
            key = json.dumps(setting)
            if key not in tried:
                outputs = self.fit(case, setting, seen)
                tried[key] = (case.score(outputs[held], case.y[held]), setting)
        _, best = max(tried.values(), key=lambda pair: pair[0])
        return self.fit(case, best, case.known), len(tried)


def fit_trees(case: Case, setting: dict[str, Any], seen: np.ndarray) -> np.ndarray:
    """LightGBM on columns and neighbours."""
    kind = lightgbm.LGBMClassifier if case.classes else lightgbm.LGBMRegressor
    x = sparse.csr_matrix(with_neighbours(case, seen, rows=False))  # LightGBM warns of arrays
    model = kind(**setting, verbosity=-1, n_jobs=torch.get_num_threads())
    model.fit(x[seen], case.y[seen])
    return model.predict_proba(x) if case.classes else model.predict(x)


def fit_linear(case: Case, setting: dict[str, Any], seen: np.ndarray) -> np.ndarray:
    """Logistic or ridge regression on columns, neighbours and rows of the adjacency matrix."""
    x = MaxAbsScaler().fit_transform(with_neighbours(case, seen, rows=True))
    if not case.classes:
        return Ridge(alpha=1 / setting["C"]).fit(x[seen], case.y[seen]).predict(x)
    model = LogisticRegression(C=setting["C"], max_iter=500).fit(x[seen], case.y[seen])
    return model.predict_proba(x)


class Sage(torch.nn.Module):
    """Stock GraphSAGE of two layers."""

    def __init__(self, features: int, width: int, outputs: int, dropout: float) -> None:
        super().__init__()
        self.first, self.second = SAGEConv(features, width), SAGEConv(width, outputs)
        self.dropout = dropout

    def forward(self, x: torch.Tensor, edge_index: torch.Tensor) -> torch.Tensor:
        """Logits, or numbers."""
        hidden = F.relu(self.first(F.dropout(x, self.dropout, self.training), edge_index))
        return self.second(F.dropout(hidden, self.dropout, self.training), edge_index)


def fit_sage(case: Case, setting: dict[str, Any], seen: np.ndarray) -> np.ndarray:
    """Stop where a tenth of the nodes that are learned from say so."""
    torch.manual_seed(0)
    x = torch.from_numpy(case.x.toarray()).float()
    edge_index = torch.from_numpy(np.stack(case.adjacency.nonzero())).long()
    stop, train = np.split(np.random.default_rng(0).permutation(seen), [len(seen) // 10])
    y = torch.from_numpy(case.y)
    model = Sage(x.shape[1], setting["width"], max(len(case.classes), 1), setting["dropout"])
    optimiser = torch.optim.Adam(
        model.parameters(), lr=setting["lr"], weight_decay=setting["weight_decay"]
    )
    best, found, waited = -np.inf, np.zeros(0), 0
    for _ in range(300):
        model.train()
        out = model(x, edge_index)[train]
        loss = (
            F.cross_entropy(out, y[train])
            if case.classes
            else F.mse_loss(out[:, 0], y[train].float())
        )
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        with torch.no_grad():
            out = model.eval()(x, edge_index)
        outputs = out.softmax(-1).numpy() if case.classes else out[:, 0].numpy()
        score = case.score(outputs[stop], case.y[stop])
        waited += 1
        if score > best or not len(found):  # NaN with nodes of one class
            best, found, waited = score, outputs, 0
        if waited > 50:
            break
    return found


RIVALS = (
    Rival(
        "lightgbm",
        {
            "learning_rate": [0.02, 0.05, 0.1],
            "num_leaves": [7, 15, 31, 63],
            "n_estimators": [100, 200, 400],
            "min_child_samples": [5, 10, 20],
            "colsample_bytree": [0.3, 0.6, 1.0],
        },
        fit_trees,
    ),
    Rival("linear", {"C": [0.001, 0.01, 0.1, 1.0, 10.0, 100.0]}, fit_linear),
    Rival(
        "sage",
        {
            "width": [64, 128],
            "lr": [0.003, 0.01],
            "weight_decay": [0.0, 5e-4],
            "dropout": [0.2, 0.5],
        },
        fit_sage,
    ),
)


def run_fit(case: Case, folder: Path, seconds: float) -> tuple[np.ndarray, list[str]]:
    """``memohop fit`` and ``memohop predict`` as one types them.

    Returns:
        Outputs for all nodes, and the kinds of model that the report shows to be significantly
        better than what was kept, which should be none.
    """
    with tempfile.TemporaryDirectory() as home:
        model, said = Path(home) / "model", Path(home) / "said.csv"
        nodes, edges = folder / "nodes.csv.gz", folder / "edges.csv.gz"
        fit = ["fit", "--nodes", nodes, "--edges", edges, "--label", case.label]
        fit += ["--time", f"{seconds}", "--metric", case.metric, "-o", model, "--json"]
        report = json.loads(_memohop(fit))
        _memohop(["predict", model, "-o", said])
        table = pyarrow.csv.read_csv(said)
    better = [row["model"] for row in report if row.get("high") is not None and row["high"] < 0]
    order = {str(one): row for row, one in enumerate(table["id"].to_pylist())}
    rows = [order[name] for name in case.ids]
    if not case.classes:
        return table["predicted"].to_numpy()[rows], better
    shares = [table[f"probability of {name}"].to_numpy()[rows] for name in case.classes]
    return np.stack(shares, axis=1), better


def _memohop(words: list[Any]) -> str:
    """What a command prints; its messages go to standard error."""
    command = [sys.executable, "-m", "memohop", *map(str, words)]
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout


def main() -> None:
    """Run everyone on every graph, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path, help="with a folder for each graph")
    parser.add_argument("--seconds", type=float, default=300)
    parser.add_argument("--graphs", help="names of some of them, with commas between")
    parser.add_argument("--only", help="fit, lightgbm, linear or sage; all of them by default")
    parser.add_argument("--draws", default="0", help="numbers of draws, 0 for truth.csv")
    parser.add_argument(
        "-o", "--output", type=Path, required=True, help="folder; what is there is not run again"
    )
    arguments = parser.parse_args()
    names = arguments.graphs.split(",") if arguments.graphs else None
    arguments.output.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as home:
        folders = sorted(path.parent for path in arguments.folder.glob("*/truth.csv"))
        folders = [folder for folder in folders if names is None or folder.name in names]
        draws = [int(one) for one in arguments.draws.split(",")]
        drawn = {
            folder.name: [hide_others(folder, one, Path(home)) if one else folder for one in draws]
            for folder in folders
        }
        compare(drawn, arguments.only, arguments.seconds, arguments.output)


def compare(drawn: dict[str, list[Path]], only: str | None, seconds: float, output: Path) -> None:
    """Run what has not been run yet, and print a line for each contender, and the means."""
    print(f"{'graph':16} {'metric':9} {'model':9} {'score':>7} {'fit ahead by':>30} {'s':>5} tried")
    leads = {name: [ahead(one, only, seconds, output) for one in of] for name, of in drawn.items()}
    judged = {name: [one for one in of if one is not None] for name, of in leads.items()}
    for line in average({name: of for name, of in judged.items() if of}):
        print(line)


def ahead(folder: Path, only: str | None, seconds: float, output: Path) -> Lead | None:
    """Everyone on one graph; how far ``fit`` is ahead of the best, None if that is not judged."""
    case, fitted = read(folder), None
    leads: list[Lead] = []
    for name in ("fit", *(rival.name for rival in RIVALS)):
        if only not in (None, name):
            continue
        path = output / f"{case.name}.{name}.npz"
        if not path.exists():
            run(case, folder, name, seconds, path)
        with np.load(path) as found:
            outputs, took, tried = found["outputs"], found["seconds"], found["tried"]
            better = found["better"]
        if name == "fit":
            fitted = outputs
        elif fitted is not None:
            leads.append(lead(case.score, case.truth, fitted, outputs))
        gap = leads[-1].text(is_judged(case.truth)) if name != "fit" and leads else ""
        score = 100 * case.score(outputs, case.truth)
        line = f"{case.name:16} {case.metric:9} {name:9} {score:7.2f} {gap:>30} {took:5.0f}"
        print(line, tried or "", flush=True)
        if len(better):
            print(f"  {', '.join(better)} significantly better than what fit kept", flush=True)
    if len(leads) < len(RIVALS) or not is_judged(case.truth):
        return None
    return min(leads, key=lambda one: one.percent)


def run(case: Case, folder: Path, name: str, seconds: float, path: Path) -> None:
    """One contender on one graph; its outputs for the hidden nodes go to a file."""
    begin, tried, better = time.monotonic(), 0, []
    if name == "fit":
        outputs, better = run_fit(case, folder, seconds)
    else:
        rival = next(one for one in RIVALS if one.name == name)
        outputs, tried = rival.run(case, seconds)
    took = time.monotonic() - begin
    np.savez(path, outputs=outputs[case.hidden], seconds=took, tried=tried, better=better)


if __name__ == "__main__":
    main()
