"""What else one might do with two tables: boosted trees, a linear model, stock GraphSAGE."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import lightgbm
import numpy as np
import torch
import torch.nn.functional as F
from scipy import sparse
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import MaxAbsScaler, StandardScaler
from torch_geometric.nn import SAGEConv

from table_case import Case


def with_neighbours(case: Case, seen: np.ndarray, *, rows: bool) -> sparse.csr_array:
    """Columns, their means over one and two hops, degree, and labels of the neighbours."""
    degree = case.adjacency.sum(axis=1)
    mean = sparse.diags_array(1 / np.maximum(degree, 1)) @ case.adjacency
    one_hop = mean @ case.x
    targets = np.zeros((len(case.y), max(len(case.classes), 1) + 1))
    targets[seen, -1] = 1
    if case.classes:
        targets[seen, case.y[seen]] = 1
    else:
        targets[seen, 0] = case.y[seen]
    near = case.adjacency @ targets
    far = case.adjacency @ near - degree[:, None] * targets
    shares = [sums[:, :-1] / np.maximum(sums[:, -1:], 1) for sums in (near, far)]
    parts = [case.x, one_hop, mean @ one_hop, degree[:, None], *shares]
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
    """On standardised columns; stop where a tenth of the nodes that are learned from say so."""
    torch.manual_seed(0)
    x = torch.from_numpy(StandardScaler().fit_transform(case.x.toarray())).float()
    edge_index = torch.from_numpy(np.stack(case.adjacency.nonzero())).long()
    stratify = case.y[seen] if case.classes else None
    train, stop = train_test_split(seen, test_size=0.1, random_state=0, stratify=stratify)
    y = torch.from_numpy(case.y)
    model = Sage(x.shape[1], setting["width"], max(len(case.classes), 1), setting["dropout"])
    optimiser = torch.optim.Adam(
        model.parameters(), lr=setting["lr"], weight_decay=setting["weight_decay"]
    )
    best, kept, waited = -np.inf, np.zeros(0), 0
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
        if score > best or not len(kept):  # NaN if a class has too few nodes
            best, kept, waited = score, outputs, 0
        if waited > 50:
            break
    return kept


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
