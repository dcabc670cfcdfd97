"""All datasets, with the facts that need neither their files nor PyTorch."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from memohop.errors import unknown_name

Family = Literal["geom-gcn", "planetoid", "platonov", "synthetic"]


@dataclass(frozen=True)
class DatasetInfo:
    """One dataset, with the counts of the graph that :func:`memohop.load` returns by default.

    Attributes:
        id: The name on the command line and in tables.
        description: One line for a listing.
        family: Which reader reads its files.
        nodes: Number of nodes.
        arcs: Number of columns of ``edge_index``; an undirected edge counts twice.
        features: Number of feature columns.
        classes: Number of classes.
        homophily: Share of the arcs, self-loops included, between nodes of the same class, to three
            digits; to two where it is as published.
        source: Where it was published, and which version this is.
        stem: What its files are called; empty if it is made on the spot.
        neighbours: The file with the neighbours in a hyperbolic space that Geom-GCN's authors
            published; empty if there is none.
        note: What to know before trusting a score on it; empty if nothing.
        splits: Number of published (or, for a synthetic graph, default) splits.
        directed: Whether the arcs have a direction. If not, each edge is there both ways.
        metric: How it is scored, one of :data:`memohop.training.metrics.METRICS`.
        flawed: Whether a score on it misleads, because the file is faulty or test nodes leak.
        test_to_train: Test nodes for each training node of its splits.
    """

    id: str
    description: str
    family: Family
    nodes: int
    arcs: int
    features: int
    classes: int
    homophily: float
    source: str
    stem: str = ""
    neighbours: str = ""
    note: str = ""
    splits: int = 10
    directed: bool = True
    metric: str = "accuracy"
    flawed: bool = False
    test_to_train: float = 20 / 48

    @property
    def files(self) -> tuple[str, ...]:
        """The files it needs, as paths below the data folder; those of the graph come first."""
        if self.family == "synthetic":
            return ()
        if self.family == "platonov":
            return (f"platonov/{self.stem}.npz",)
        if self.family == "planetoid":
            pattern = f"planetoid/ind.{self.stem}.{{}}"
            parts = ["allx", "ally", "tx", "ty", "y", "graph", "test.index"]
        else:
            pattern = f"geom-gcn/{self.stem}/{{}}.txt"
            parts = ["out1_graph_edges", "out1_node_feature_label"]
        name = Path(self.stem).name  # Cornell's two versions share their splits
        splits = [f"geom-gcn/splits/{name}_split_0.6_0.2_{split}.npz" for split in range(10)]
        return (*map(pattern.format, parts), *splits)


def datasets() -> list[str]:
    """The ids of all datasets, in the order of the tables.

    Example:
        >>> import memohop
        >>> "texas" in memohop.datasets()
        True
    """
    return list(_TABLE)


def is_folder(name: str) -> bool:
    """Whether this is the path of a folder, and not the id of a dataset."""
    return name not in _TABLE and Path(name).is_dir()


def describe(name: str) -> DatasetInfo:
    """The facts on a dataset; an unknown name is a :class:`UsageError`."""
    if not isinstance(name, str) or name not in _TABLE:
        raise unknown_name("dataset", name, _TABLE)
    return _TABLE[name]


_TABLE = {
    id: DatasetInfo(id, **facts)
    for id, facts in tomllib.loads(
        Path(__file__).with_name("datasets.toml").read_text(encoding="utf-8")
    ).items()
}
