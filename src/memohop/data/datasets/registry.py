"""All datasets, with the facts that need neither their files nor PyTorch."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Literal

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
        homophily: Share of the arcs, self-loops included, between nodes of the same class; to two
            digits, as published, if the SHA-256 of the files is not known, and else to three.
        source: Where it was published, and which version this is.
        files: The files it needs, as paths below the data folder.
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
    files: tuple[str, ...] = ()
    note: str = ""
    splits: int = 10
    directed: bool = True
    metric: str = "accuracy"
    flawed: bool = False
    test_to_train: float = 20 / 48


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
_NO_DIGEST = (
    "no SHA-256 of its file is known: the file is taken from a local folder, and its counts and "
    "homophily are compared with those published"
)


def _dataset(
    id: str, counts: tuple[int, int, int, int], homophily: float, **rest: Any
) -> DatasetInfo:
    """A dataset with its numbers of nodes, arcs, features and classes."""
    numbers: Any = dict(zip(("nodes", "arcs", "features", "classes"), counts, strict=True))
    return DatasetInfo(id=id, homophily=homophily, **numbers, **rest)


_webkb = partial(
    _dataset,
    description="web pages of a university, linked; five kinds of page",
    family="geom-gcn",
    source=_GEOM_GCN,
)
_platonov = partial(_dataset, family="platonov", source=_PLATONOV)
# Half of the nodes train.
_halves = partial(_platonov, directed=False, test_to_train=25 / 50)
_citations = partial(_dataset, family="planetoid", source=_PLANETOID, directed=False)

_ALL = (
    _webkb(
        "texas",
        (183, 325, 1703, 5),
        0.108,
        files=_geom_gcn("new_data/texas"),
        note="class 1 has a single node; one test node is worth 2.7 points",
    ),
    _webkb(
        "wisconsin",
        (251, 515, 1703, 5),
        0.196,
        files=_geom_gcn("new_data/wisconsin"),
        note="one test node is worth 2.0 points",
    ),
    _webkb(
        "cornell",
        (183, 298, 1703, 5),
        0.131,
        files=_geom_gcn("new_data/cornell"),
        note="not the Cornell of papers before mid-2022, which is cornell-legacy",
    ),
    _webkb(
        "cornell-legacy",
        (183, 298, 1703, 5),
        0.305,
        description="Cornell as papers before mid-2022 had it, the paper's Table 1 included",
        source="Geom-GCN (Pei et al. 2020), files before July 2022",
        files=_geom_gcn("legacy/cornell"),
        note="a mistake kept for comparison: its features and labels are those of Texas, "
        "on Cornell's links",
        flawed=True,
    ),
    _webkb(
        "actor",
        (7600, 30019, 932, 5),
        0.219,
        description="actors named on the same Wikipedia page; five groups of words",
        files=_geom_gcn("new_data/film"),
    ),
    _platonov(
        "chameleon",
        (2277, 36101, 2325, 5),
        0.235,
        description="Wikipedia articles on chameleons, linked; five levels of traffic",
        source=_WIKIPEDIA,
        files=("platonov/chameleon_directed.npz",),
        note="leaks: 67 % of the test nodes of split 0 have a twin in train (same links); "
        "see chameleon-filtered",
        flawed=True,
    ),
    _platonov(
        "squirrel",
        (5201, 217073, 2089, 5),
        0.224,
        description="Wikipedia articles on squirrels, linked; five levels of traffic",
        source=_WIKIPEDIA,
        files=("platonov/squirrel_directed.npz",),
        note="leaks: 63 % of the test nodes of split 0 have a twin in train (same links); "
        "see squirrel-filtered",
        flawed=True,
    ),
    _citations(
        "cora",
        (2708, 10556, 1433, 7),
        0.810,
        description="papers on machine learning, citing; seven topics",
        files=_planetoid("cora"),
        note="223 nodes are in no set of the published splits",
    ),
    _citations(
        "citeseer",
        (3327, 9104, 3703, 6),
        0.736,
        description="papers on computer science, citing; six topics",
        files=_planetoid("citeseer"),
        note="15 nodes have neither features nor a label: they count as class 0, as in Geom-GCN; "
        "in splits 4 and 5, as published, 1207 nodes are in no set",
    ),
    _citations(
        "pubmed",
        (19717, 88648, 500, 3),
        0.802,
        description="papers on diabetes, citing; three types",
        files=_planetoid("pubmed"),
    ),
    _platonov(
        "chameleon-filtered",
        (890, 13584, 2325, 5),
        0.247,
        description="chameleon without its duplicate nodes",
        files=("platonov/chameleon_filtered_directed.npz",),
        note="the sizes of the sets differ from split to split",
    ),
    _platonov(
        "squirrel-filtered",
        (2223, 65718, 2089, 5),
        0.217,
        description="squirrel without its duplicate nodes",
        files=("platonov/squirrel_filtered_directed.npz",),
        note="the sizes of the sets differ from split to split",
    ),
    _halves(
        "minesweeper",
        (10000, 78804, 7, 2),
        0.683,
        description="cells of a 100 x 100 minefield; which ones hold a mine",
        files=("platonov/minesweeper.npz",),
        metric="roc_auc",
    ),
    _halves(
        "tolokers",
        (11758, 1038000, 10, 2),
        0.595,
        description="workers of a crowd platform on the same task; which ones were banned",
        files=("platonov/tolokers.npz",),
        metric="roc_auc",
    ),
    _halves(
        "roman-empire",
        (22662, 65854, 300, 18),
        0.05,
        description="words of Wikipedia's article on the Roman Empire, linked if one follows or "
        "depends on the other; 18 syntactic roles",
        files=("platonov/roman_empire.npz",),
        note=_NO_DIGEST,
    ),
    _halves(
        "amazon-ratings",
        (24492, 186100, 300, 5),
        0.38,
        description="products often bought together; five levels of mean rating",
        files=("platonov/amazon_ratings.npz",),
        note=_NO_DIGEST,
    ),
    _halves(
        "questions",
        (48921, 307080, 301, 2),
        0.84,
        description="users of a question-answering site, linked by answers; which ones "
        "stayed active",
        files=("platonov/questions.npz",),
        note=_NO_DIGEST,
        metric="roc_auc",
    ),
    _dataset(
        "csbm",
        (1000, 10000, 64, 5),
        0.2,
        description="contextual stochastic block model with the homophily asked for",
        family="synthetic",
        source="made on the spot",
        directed=False,
    ),
    _dataset(
        "digits",
        (1797, 17970, 64, 10),
        0.965,
        description="scikit-learn's handwritten digits, each with arcs to its ten nearest",
        family="synthetic",
        source="made on the spot from the digits that come with scikit-learn",
    ),
)
_TABLE = {info.id: info for info in _ALL}
