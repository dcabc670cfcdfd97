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
    """One dataset, with the counts of the graph that :func:`memohop.load` returns by default."""

    id: str  # on the command line and in tables
    description: str  # one line for a listing
    family: Family  # which reader reads its files
    nodes: int
    arcs: int  # columns of edge_index; an undirected edge counts twice
    features: int
    classes: int
    # The share of the arcs, self-loops included, between nodes of the same class, to three digits;
    # to two where it is as published.
    homophily: float
    source: str  # where it was published, and which version this is
    stem: str = ""  # what its files are called; empty if it is made on the spot
    neighbours: str = ""  # file of those in a hyperbolic space, if Geom-GCN's authors made one
    note: str = ""  # what to know before trusting a score on it
    splits: int = 10  # how many were published, or are the default of a synthetic graph
    directed: bool = True  # if not, each edge is there both ways
    metric: str = "accuracy"  # one of memohop.training.metrics.METRICS
    flawed: bool = False  # a score misleads, because the file is faulty or test nodes leak
    test_to_train: float = 20 / 48  # test nodes for each training node of its splits

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
