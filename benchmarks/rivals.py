"""What else one might do with two tables: boosted trees, a linear model, stock GraphSAGE."""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import lightgbm
import numpy as np
import torch
import torch.nn.functional as F
from scipy import sparse
from sklearn.decomposition import TruncatedSVD
from sklearn.ensemble import ExtraTreesClassifier, ExtraTreesRegressor
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.model_selection import KFold
from sklearn.neighbors import KNeighborsClassifier, KNeighborsRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MaxAbsScaler, StandardScaler, TargetEncoder
from torch_geometric.nn import SAGEConv

from table_case import Case, split

_FEW_CLASSES = 10  # up to which each has a mean of each category
_WIDE, _NARROW = 3000, 256  # columns from which GraphSAGE has these many directions of them


def seen_targets(case: Case, seen: np.ndarray) -> np.ndarray:
    """Indicators of the classes, or the number, 0 where not seen; at last, whether it is."""
    targets = np.zeros((len(case.y), max(len(case.classes), 1) + 1))
    targets[seen, -1] = 1
    targets[seen, case.y[seen] if case.classes else 0] = 1 if case.classes else case.y[seen]
    return targets


def with_neighbours(case: Case, seen: np.ndarray, *, rows: bool) -> sparse.csr_array:
    """Columns and words, their means over one and two hops, degree, labels of the neighbours."""
    degree = case.adjacency.sum(axis=1)
    mean = sparse.diags_array(1 / np.maximum(degree, 1)) @ case.adjacency
    one_hop = mean @ case.x
    targets = seen_targets(case, seen)
    near = case.adjacency @ targets
    far = case.adjacency @ near - degree[:, None] * targets  # not a node's own
    shares = [sums[:, :-1] / np.maximum(sums[:, -1:], 1) for sums in (near, far)]
    parts = [case.x, one_hop, mean @ one_hop, degree[:, None], *shares]
    return sparse.csr_array(sparse.hstack(parts + [case.adjacency] * rows, format="csr"))


def joined(case: Case, seen: np.ndarray, edges: str) -> np.ndarray:
    """Columns with the edges joined, as one would for trees, NaN where nothing is known.

    Numbers, codes, and the mean target of each value of a category, out of fold for nodes that are
    seen. Then, for all edges merged (``edges="merged"``) or for each way, too (``"ways"``): how
    many edges there are, their means, and those of the neighbours' numbers and seen labels; merged,
    also of the indicators of their categories.
    """
    columns = case.columns
    parts = [columns.numbers, columns.codes, _target_means(case, seen)]
    numbers, targets = np.nan_to_num(columns.numbers), seen_targets(case, seen)
    ways = {"none": [], "merged": case.ways[:1], "ways": case.ways}[edges]
    for way in ways:
        sums = way.counts @ targets
        with np.errstate(invalid="ignore"):
            shares = sums[:, :-1] / sums[:, -1:]
        parts += [way.degree[:, None], way.edges, way.mean(numbers), shares]
    if ways:
        parts.append(ways[0].mean(columns.indicators()).toarray())
    return np.hstack(parts).astype(np.float32)


def _target_means(case: Case, seen: np.ndarray) -> np.ndarray:
    """Of categories with values that come again; with many classes, this would be too wide."""
    again = [len(names) < len(case.ids) / 2 for names in case.columns.names]
    if not any(again) or len(case.classes) > _FEW_CLASSES:
        return np.zeros((len(case.ids), 0))
    codes = case.columns.codes[:, again]
    kinds = {0: "continuous", 2: "binary"}
    kind = kinds.get(len(np.unique(case.y[seen])) if case.classes else 0, "multiclass")
    folds = KFold(5, shuffle=True, random_state=0)
    encoder = TargetEncoder(target_type=kind, cv=folds)
    out_of_fold = encoder.fit_transform(codes[seen], case.y[seen])
    means = encoder.transform(codes)
    means[seen] = out_of_fold
    return means


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
        best, tried = self.choose(case, seconds / 2)
        return self.fit(case, best, case.known), tried

    def choose(self, case: Case, seconds: float) -> tuple[dict[str, Any], int]:
        """The best of the settings tried in random order, and how many these are."""
        begin = time.monotonic()
        seen, held = split(case, case.known, 0.25, 0)
        settings = [
            dict(zip(self.choices, values, strict=True))
            for values in itertools.product(*self.choices.values())
        ]
        np.random.default_rng(0).shuffle(settings)
        scores: list[float] = []
        for setting in settings:
            outputs = self.fit(case, setting, seen)
            scores.append(case.score(outputs[held], case.y[held]))
            if time.monotonic() - begin > seconds:
                break
        return settings[int(np.argmax(scores))], len(scores)


def _outputs(case: Case, model: Any, x: Any) -> np.ndarray:
    """Numbers, or probabilities of all classes, also of those that no node seen has."""
    if not case.classes:
        return model.predict(x)
    outputs = np.zeros((len(case.y), len(case.classes)))
    outputs[:, model.classes_] = model.predict_proba(x)
    return outputs


def fit_trees(case: Case, setting: dict[str, Any], seen: np.ndarray) -> np.ndarray:
    """LightGBM on columns and neighbours."""
    kind = lightgbm.LGBMClassifier if case.classes else lightgbm.LGBMRegressor
    x = sparse.csr_matrix(with_neighbours(case, seen, rows=False))  # LightGBM warns of arrays
    model = kind(**setting, verbosity=-1, n_jobs=torch.get_num_threads())
    model.fit(x[seen], case.y[seen])
    return _outputs(case, model, x)


def fit_linear(case: Case, setting: dict[str, Any], seen: np.ndarray) -> np.ndarray:
    """Logistic or ridge regression on columns, neighbours and rows of the adjacency matrix."""
    x = MaxAbsScaler().fit_transform(with_neighbours(case, seen, rows=True))
    if not case.classes:
        model = Ridge(alpha=1 / setting["C"])
    else:
        model = LogisticRegression(C=setting["C"], max_iter=500)
    return _outputs(case, model.fit(x[seen], case.y[seen]), x)


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
    wide = case.x.shape[1] > _WIDE
    columns = (
        TruncatedSVD(_NARROW, random_state=0).fit_transform(case.x) if wide else case.x.toarray()
    )
    x = torch.from_numpy(StandardScaler().fit_transform(columns)).float()
    edge_index = torch.from_numpy(np.stack(case.adjacency.nonzero())).long()
    train, stop = split(case, seen, 0.1, 0)
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


def fit_ten_lightgbm(case: Case, setting: dict[str, Any], seen: np.ndarray) -> np.ndarray:
    """LightGBM with careful defaults; a fifth of the nodes seen say how many trees are enough."""
    x = joined(case, seen, setting["edges"])
    first = case.columns.numbers.shape[1]
    few = [first + place for place, names in enumerate(case.columns.names) if len(names) <= 50]
    kind = lightgbm.LGBMClassifier if case.classes else lightgbm.LGBMRegressor
    words = {
        "learning_rate": 0.05,
        "min_child_samples": 10,
        "subsample": 0.8,
        "subsample_freq": 1,
        "colsample_bytree": 0.5,
        "random_state": 0,
        "verbosity": -1,
        "n_jobs": torch.get_num_threads(),
    }
    train, stop = split(case, seen, 0.2, 1)
    if case.classes:
        stop = stop[np.isin(case.y[stop], case.y[train])]
    model = kind(n_estimators=1000, **words)
    patience = lightgbm.early_stopping(50, verbose=False)
    model.fit(
        x[train], case.y[train], eval_X=x[stop], eval_y=case.y[stop], callbacks=[patience],
        categorical_feature=few,
    )  # fmt: skip
    model = kind(n_estimators=model.best_iteration_, **words)
    return _outputs(case, model.fit(x[seen], case.y[seen], categorical_feature=few), x)


def fit_extra_trees(case: Case, setting: dict[str, Any], seen: np.ndarray) -> np.ndarray:
    """scikit-learn's extra trees; a split sees the root of the number of columns, or more."""
    x = joined(case, seen, setting["edges"])
    kind = ExtraTreesClassifier if case.classes else ExtraTreesRegressor
    words = {"random_state": 0, "n_jobs": torch.get_num_threads()}
    drawn = min(round(setting["roots"] * x.shape[1] ** 0.5), x.shape[1])
    model = kind(setting["trees"], max_features=drawn, **words)
    return _outputs(case, model.fit(x[seen], case.y[seen]), x)


def fit_nearest(case: Case, setting: dict[str, Any], seen: np.ndarray) -> np.ndarray:
    """Nearest neighbours in the space of the numbers, which have one spread."""
    numbers = case.columns.numbers
    if setting["edges"] == "merged":
        numbers = np.hstack([numbers, case.ways[0].degree[:, None], case.ways[0].mean(numbers)])
    kind = KNeighborsClassifier if case.classes else KNeighborsRegressor
    model = make_pipeline(
        SimpleImputer(keep_empty_features=True),
        StandardScaler(),
        kind(setting["k"], weights="distance", n_jobs=torch.get_num_threads()),
    )
    return _outputs(case, model.fit(numbers[seen], case.y[seen]), numbers)


_EDGES = ["none", "merged", "ways"]
QUICK = Rival("quick", {"edges": _EDGES, "roots": [1], "trees": [100]}, fit_extra_trees)
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
    Rival("ten-lightgbm", {"edges": _EDGES}, fit_ten_lightgbm),
    Rival(
        "ten-trees",
        {"edges": _EDGES, "roots": [1, 4], "trees": [300]},
        fit_extra_trees,
    ),
    Rival("ten-nearest", {"edges": _EDGES[:2], "k": [1, 5, 15, 40]}, fit_nearest),
)
