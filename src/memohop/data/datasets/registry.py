"""What is known of every dataset before a single file is opened. Needs no PyTorch."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Literal

from memohop.errors import unknown_name

Family = Literal["geom-gcn", "planetoid", "platonov", "synthetic"]


@dataclass(frozen=True)
class DatasetInfo:
    """One dataset. The counts are those of the graph that `load` returns by default.

    Attributes:
        id: What one types, and what tables print.
        description: One line for a listing.
        family: Which reader knows its files.
        nodes: Number of nodes.
        arcs: Number of columns of `edge_index`; an undirected edge counts twice.
        features: Number of feature columns.
        classes: Number of classes.
        splits: Number of published (or, for a synthetic graph, default) splits.
        directed: Whether the arcs have a direction. If not, each edge is there both ways.
        metric: How it is scored, one of `memohop.training.metrics.METRICS`.
        homophily: Share of the arcs, self-loops included, whose two ends have the same class.
        source: Where it was published, and which version this is.
        files: What it needs, as paths below the data folder.
        note: What one should know before trusting a score on it; empty if nothing.
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
    files: tuple[str, ...] = ()
    note: str = ""
    splits: int = 10
    directed: bool = True
    metric: str = "accuracy"


def datasets() -> list[str]:
    """The ids of all datasets, in the order of the tables."""
    return list(_TABLE)


def describe(name: str) -> DatasetInfo:
    """What is known of the dataset `name`; an unknown name is a `UsageError`."""
    if not isinstance(name, str) or name not in _TABLE:
        raise unknown_name("dataset", name, _TABLE)
    return _TABLE[name]


def _geom_gcn_splits(stem: str) -> tuple[str, ...]:
    return tuple(f"geom-gcn/splits/{stem}_split_0.6_0.2_{split}.npz" for split in range(10))


def _geom_gcn(folder: str) -> tuple[str, ...]:
    """Edges, nodes and the ten splits; Cornell's two versions share their splits."""
    graph = (
        f"geom-gcn/{folder}/out1_graph_edges.txt",
        f"geom-gcn/{folder}/out1_node_feature_label.txt",
    )
    return graph + _geom_gcn_splits(folder.rpartition("/")[2])


def _planetoid(stem: str) -> tuple[str, ...]:
    parts = ("allx", "ally", "tx", "ty", "y", "graph", "test.index")
    graph = tuple(f"planetoid/ind.{stem}.{part}" for part in parts)
    return graph + _geom_gcn_splits(stem)


_GEOM_GCN = "Geom-GCN (Pei et al. 2020), files as corrected in July 2022"
_PLANETOID = "Planetoid (Yang et al. 2016), splits of Geom-GCN (Pei et al. 2020)"
_WIKIPEDIA = "Geom-GCN (Pei et al. 2020), in the files of Platonov et al. 2023"
_PLATONOV = "Platonov et al. 2023, heterophilous-graphs"

_webkb = partial(
    DatasetInfo,
    description="web pages of a university, linked; five kinds of page",
    family="geom-gcn",
    nodes=183,
    features=1703,
    classes=5,
    source=_GEOM_GCN,
)
_platonov = partial(DatasetInfo, family="platonov", classes=5, source=_PLATONOV)
_citations = partial(DatasetInfo, family="planetoid", source=_PLANETOID, directed=False)

_ALL = (
    _webkb(
        id="texas",
        arcs=325,
        homophily=0.108,
        files=_geom_gcn("new_data/texas"),
        note="class 1 has a single node; one test node is worth 2.7 points",
    ),
    _webkb(
        id="wisconsin",
        nodes=251,
        arcs=515,
        homophily=0.196,
        files=_geom_gcn("new_data/wisconsin"),
        note="one test node is worth 2.0 points",
    ),
    _webkb(
        id="cornell",
        arcs=298,
        homophily=0.131,
        files=_geom_gcn("new_data/cornell"),
        note="not the Cornell of papers before mid-2022, which is cornell-legacy",
    ),
    _webkb(
        id="cornell-legacy",
        description="Cornell as papers before mid-2022 had it, the paper's Table 1 included",
        arcs=298,
        homophily=0.305,
        source="Geom-GCN (Pei et al. 2020), files before July 2022",
        files=_geom_gcn("legacy/cornell"),
        note="a mistake kept for comparison: its features and labels are those of Texas, "
        "on Cornell's links",
    ),
    DatasetInfo(
        id="actor",
        description="actors named on the same Wikipedia page; five groups of words",
        family="geom-gcn",
        nodes=7600,
        arcs=30019,
        features=932,
        classes=5,
        homophily=0.219,
        source=_GEOM_GCN,
        files=_geom_gcn("new_data/film"),
    ),
    _platonov(
        id="chameleon",
        description="Wikipedia articles on chameleons, linked; five levels of traffic",
        nodes=2277,
        arcs=36101,
        features=2325,
        homophily=0.235,
        source=_WIKIPEDIA,
        files=("platonov/chameleon_directed.npz",),
        note="leaks: 67 % of the test nodes of split 0 have a twin in train (same links); "
        "see chameleon-filtered",
    ),
    _platonov(
        id="squirrel",
        description="Wikipedia articles on squirrels, linked; five levels of traffic",
        nodes=5201,
        arcs=217073,
        features=2089,
        homophily=0.224,
        source=_WIKIPEDIA,
        files=("platonov/squirrel_directed.npz",),
        note="leaks: 63 % of the test nodes of split 0 have a twin in train (same links); "
        "see squirrel-filtered",
    ),
    _citations(
        id="cora",
        description="papers on machine learning, citing; seven topics",
        nodes=2708,
        arcs=10556,
        features=1433,
        classes=7,
        homophily=0.810,
        files=_planetoid("cora"),
        note="223 nodes are in no set of the published splits",
    ),
    _citations(
        id="citeseer",
        description="papers on computer science, citing; six topics",
        nodes=3327,
        arcs=9104,
        features=3703,
        classes=6,
        homophily=0.736,
        files=_planetoid("citeseer"),
        note="15 nodes have neither features nor a label: they count as class 0, as in Geom-GCN; "
        "in splits 4 and 5, as published, 1207 nodes are in no set",
    ),
    _citations(
        id="pubmed",
        description="papers on diabetes, citing; three types",
        nodes=19717,
        arcs=88648,
        features=500,
        classes=3,
        homophily=0.802,
        files=_planetoid("pubmed"),
    ),
    _platonov(
        id="chameleon-filtered",
        description="chameleon without its duplicate nodes",
        nodes=890,
        arcs=13584,
        features=2325,
        homophily=0.247,
        files=("platonov/chameleon_filtered_directed.npz",),
        note="the sizes of the sets differ from split to split",
    ),
    _platonov(
        id="squirrel-filtered",
        description="squirrel without its duplicate nodes",
        nodes=2223,
        arcs=65718,
        features=2089,
        homophily=0.217,
        files=("platonov/squirrel_filtered_directed.npz",),
        note="the sizes of the sets differ from split to split",
    ),
    _platonov(
        id="minesweeper",
        description="cells of a 100 x 100 minefield; which ones hold a mine",
        nodes=10000,
        arcs=78804,
        features=7,
        classes=2,
        homophily=0.683,
        files=("platonov/minesweeper.npz",),
        directed=False,
        metric="roc_auc",
    ),
    _platonov(
        id="tolokers",
        description="workers of a crowd platform on the same task; which ones were banned",
        nodes=11758,
        arcs=1038000,
        features=10,
        classes=2,
        homophily=0.595,
        files=("platonov/tolokers.npz",),
        directed=False,
        metric="roc_auc",
    ),
    DatasetInfo(
        id="csbm",
        description="contextual stochastic block model with the homophily asked for",
        family="synthetic",
        nodes=1000,
        arcs=10000,
        features=64,
        classes=5,
        homophily=0.2,
        source="made on the spot",
        directed=False,
    ),
    DatasetInfo(
        id="digits",
        description="scikit-learn's handwritten digits, each with arcs to its ten nearest",
        family="synthetic",
        nodes=1797,
        arcs=17970,
        features=64,
        classes=10,
        homophily=0.965,
        source="made on the spot from the digits that come with scikit-learn",
    ),
)
_TABLE = {info.id: info for info in _ALL}
