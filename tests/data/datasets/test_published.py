"""The published files, against the numbers that were measured on them by other means."""

from functools import cache

import pytest
import torch

from memohop.data.check import MASKS, MissingClassWarning, check
from memohop.data.datasets.load import load
from memohop.data.datasets.registry import datasets, describe

# Nodes, arcs, self-loops, pairs (undirected and without self-loops), features, classes, sizes of
# the sets, homophily of arcs and of pairs.
KNOWN = {
    "texas": (183, 325, 16, 279, 1703, 5, (87, 59, 37), 0.108, 0.061),
    "wisconsin": (251, 515, 16, 450, 1703, 5, (120, 80, 51), 0.196, 0.178),
    "cornell": (183, 298, 3, 277, 1703, 5, (87, 59, 37), 0.131, 0.123),
    "cornell-legacy": (183, 298, 3, 277, 1703, 5, (87, 59, 37), 0.305, 0.296),
    "actor": (7600, 30019, 93, 26659, 932, 5, (3648, 2432, 1520), 0.219, 0.217),
    "chameleon": (2277, 36101, 50, 31371, 2325, 5, (1092, 729, 456), 0.235, 0.230),
    "squirrel": (5201, 217073, 140, 198353, 2089, 5, (2496, 1664, 1041), 0.224, 0.222),
    "cora": (2708, 10556, 0, 5278, 1433, 7, (1192, 796, 497), 0.810, 0.810),
    "citeseer": (3327, 9104, 0, 4552, 3703, 6, (1596, 1065, 666), 0.736, 0.736),
    "pubmed": (19717, 88648, 0, 44324, 500, 3, (9463, 6310, 3944), 0.802, 0.802),
    "chameleon-filtered": (890, 13584, 50, 8854, 2325, 5, (409, 287, 194), 0.247, 0.236),
    "squirrel-filtered": (2223, 65718, 140, 46998, 2089, 5, (1053, 718, 452), 0.217, 0.207),
    "minesweeper": (10000, 78804, 0, 39402, 7, 2, (5000, 2500, 2500), 0.683, 0.683),
    "tolokers": (11758, 1038000, 0, 519000, 10, 2, (5879, 2939, 2940), 0.595, 0.595),
}
UNDIRECTED = {"cora", "citeseer", "pubmed", "minesweeper", "tolokers"}
ODD = {("citeseer", 4), ("citeseer", 5)}
cached_load = cache(load)


def test_every_dataset_with_files_that_were_at_hand_is_in_the_table():
    measured = [name for name in datasets() if "not measured" not in describe(name).note]
    assert [name for name in measured if describe(name).files] == list(KNOWN)


@pytest.mark.parametrize("name", KNOWN)
def test_counts(name, data_root):
    data = cached_load(name, root=data_root)
    nodes, arcs, loops, joined, features, classes, sizes, homophily, of_pairs = KNOWN[name]
    source, target = data.edge_index
    apart = source != target
    low, high = torch.minimum(source, target), torch.maximum(source, target)
    pairs = (low * data.num_nodes + high)[apart].unique()
    same = data.y[source] == data.y[target]
    same_pairs = data.y[pairs // data.num_nodes] == data.y[pairs % data.num_nodes]
    assert data.x.shape == (nodes, features)
    assert data.edge_index.shape == (2, arcs)
    assert len((source * data.num_nodes + target).unique()) == arcs
    assert int((~apart).sum()) == loops
    assert len(pairs) == joined
    assert data.y.unique().tolist() == list(range(classes))
    assert tuple(int(data[mask][:, 0].sum()) for mask in MASKS) == sizes
    assert same.double().mean().item() == pytest.approx(homophily, abs=5.01e-4)
    assert same_pairs.double().mean().item() == pytest.approx(of_pairs, abs=5.01e-4)
    assert data.is_undirected() == (name in UNDIRECTED)
    info = describe(name)
    told = (info.nodes, info.arcs, info.features, info.classes, info.homophily, info.splits)
    assert told == (nodes, arcs, features, classes, homophily, 10)
    assert info.directed == (name not in UNDIRECTED)
    assert info.metric == ("roc_auc" if name in {"minesweeper", "tolokers"} else "accuracy")
    assert (data.name, data.metric) == (name, info.metric)


@pytest.mark.parametrize("name", KNOWN)
def test_types_shapes_and_soundness(name, data_root):
    data = cached_load(name, root=data_root)
    types = (data.x.dtype, data.y.dtype, data.edge_index.dtype)
    assert types == (torch.float32, torch.int64, torch.int64)
    for mask in MASKS:
        assert (data[mask].shape, data[mask].dtype) == ((data.num_nodes, 10), torch.bool)
    if name in {"texas", "cornell-legacy"}:
        with pytest.warns(MissingClassWarning, match=r"of class 1 in \d of the 10"):
            check(data)
    else:
        check(data)


@pytest.mark.parametrize("name", [name for name in KNOWN if not name.endswith("-filtered")])
def test_all_ten_splits_are_equal_in_size_and_different(name, data_root):
    data = cached_load(name, root=data_root)
    regular = [split for split in range(10) if (name, split) not in ODD]
    for mask, size in zip(MASKS, KNOWN[name][6], strict=True):
        assert data[mask].sum(dim=0)[regular].tolist() == [size] * len(regular)
    assert data.test_mask.unique(dim=1).shape[1] == 10


def test_old_cornell_has_the_features_and_labels_of_texas_on_other_arcs(data_root):
    legacy, texas, cornell = (
        cached_load(name, root=data_root) for name in ("cornell-legacy", "texas", "cornell")
    )
    assert torch.equal(legacy.x, texas.x)
    assert torch.equal(legacy.y, texas.y)
    assert legacy.num_edges != texas.num_edges
    assert torch.equal(legacy.test_mask, cornell.test_mask)
    assert texas.y.bincount().tolist() == [33, 1, 18, 101, 30]
    assert cornell.y.bincount().tolist() == [38, 16, 30, 82, 17]


def test_nodes_of_cora_and_citeseer_in_no_set_or_without_features(data_root):
    cora, citeseer = (cached_load(name, root=data_root) for name in ("cora", "citeseer"))
    unused = [(~(d.train_mask | d.val_mask | d.test_mask)).sum(dim=0) for d in (cora, citeseer)]
    assert unused[0].tolist() == [223] * 10
    assert unused[1].tolist() == [0, 0, 0, 0, 1207, 1207, 0, 0, 0, 0]
    for split in (4, 5):
        assert [int(citeseer[mask][:, split].sum()) for mask in MASKS] == [1017, 679, 424]
    assert citeseer.y[citeseer.x.sum(dim=1) == 0].tolist() == [0] * 15  # not described


@pytest.mark.parametrize(
    ("name", "train", "classes"), [("cora", 140, 7), ("citeseer", 120, 6), ("pubmed", 60, 3)]
)
def test_public_split(name, train, classes, data_root):
    data = load(name, root=data_root, split="public")
    assert [data[mask].sum(dim=0).tolist() for mask in MASKS] == [[train], [500], [1000]]
    assert data.y[data.train_mask[:, 0]].bincount().tolist() == [20] * classes
    assert not (data.val_mask & data.test_mask).any()
