import pytest
import torch

from memohop.data.datasets.load import load
from memohop.errors import DataError, UsageError


def test_a_folder_that_does_not_have_the_files(tmp_path):
    with pytest.raises(DataError, match=r"geom-gcn/new_data/texas/out1_graph_edges\.txt"):
        load("texas", root=tmp_path)


@pytest.mark.parametrize("name", ["chameleon", "pubmed"])
def test_rows_sum_to_one_or_stay_zero(name, data_root):
    raw, row = (load(name, root=data_root, features=features).x for features in ("raw", "row"))
    empty = (raw == 0).all(dim=1)
    assert empty.any() == (name == "chameleon")
    assert (row[empty] == 0).all()
    assert torch.allclose(row.double().sum(dim=1), (~empty).double(), rtol=1e-6)
    assert torch.equal(row > 0, raw > 0)


def test_rows_with_negative_features_stay_finite():
    row = load("csbm", features="row").x
    assert torch.allclose(row.double().abs().sum(dim=1), torch.ones(1000).double(), rtol=1e-6)


@pytest.mark.parametrize("seed", [0, 1])
def test_scaled_features_are_divided_by_one_number(seed, data_root):
    raw, scaled = (load("csbm", features=features, seed=seed).x for features in ("raw", "scaled"))
    ratio = (scaled.double() / raw.double()).flatten()
    assert torch.allclose(ratio, ratio[0].expand_as(ratio), rtol=1e-5)
    assert scaled[scaled != 0].double().square().mean().sqrt() == pytest.approx(1, rel=1e-5)
    words, same = (load("texas", root=data_root, features=form).x for form in ("raw", "scaled"))
    assert torch.equal(words, same)  # 0 or 1 each


def test_new_splits_of_a_published_graph(data_root):
    options = {"root": data_root, "split": "random", "splits": 3, "fractions": (0.6, 0.2, 0.2)}
    data, other = (load("texas", **options, seed=seed) for seed in (1, 2))
    sizes = [data[f"{part}_mask"].sum(dim=0).tolist() for part in ("train", "val", "test")]
    assert sizes == [[110] * 3, [36] * 3, [37] * 3]
    assert not torch.equal(data.train_mask, other.train_mask)
    wisconsin = load("wisconsin", root=data_root, split="class-wise")
    for label in range(5):
        assert wisconsin.train_mask[wisconsin.y == label].any(dim=0).all()


@pytest.mark.parametrize(
    ("name", "split", "complaint"),
    [
        ("texas", "class-wise", r"class 1 has 1 node.*split='random'"),
        ("texas", "public", r"public.*cora, citeseer and pubmed, not for texas"),
        ("cora", "publik", r"'publik'.*public"),
    ],
)
def test_splits_that_a_graph_cannot_have(name, split, complaint, data_root):
    with pytest.raises(UsageError, match=complaint):
        load(name, root=data_root, split=split)


@pytest.mark.parametrize(
    ("name", "options", "complaint"),
    [
        ("csbm", {"features": "rows"}, r"'rows'.*row"),
        ("texas", {"homophily": 0.5}, r"texas .*'homophily'; accepted: none"),
        ("texas", {"seed": 1}, r"'seed'; it goes with split='random' or split='class-wise'"),
        ("texas", {"split": "random", "size": 1}, r"'size'; accepted: splits, fractions, seed"),
        ("cora", {"split": "public", "splits": 2}, r"'splits'; it goes with"),
        ("digits", {"nodes": 9}, r"'nodes'; accepted: neighbours, seed, splits, fractions"),
        (
            "csbm",
            {"heterophily": 0.5},
            r"accepted: homophily, nodes, classes, degree, channels, strength, seed, splits",
        ),
    ],
)
def test_an_unknown_option_is_answered_with_the_accepted_ones(name, options, complaint, tmp_path):
    with pytest.raises(UsageError, match=complaint):
        load(name, root=tmp_path, **options)


def test_options_reach_the_synthetic_graphs():
    data = load("csbm", homophily=0.5, nodes=60, classes=3, degree=4, channels=7, splits=2, seed=3)
    assert data.x.shape == (60, 7)
    assert data.train_mask.shape == (60, 2)
    assert (data.name, data.metric) == ("csbm", "accuracy")
    assert load("digits", neighbours=2, splits=1).num_edges == 2 * 1797
    tiny = load("csbm", nodes=10, degree=2, split="random", fractions=(0.5, 0.2, 0.3))
    assert tiny.train_mask.sum(dim=0).tolist() == [5] * 10  # its classes are too small for others


@pytest.mark.parametrize(
    "options",
    [
        {"features": 0}, {"features": ["raw"]}, {"split": 3}, {"splits": 10**30}, {"seed": 1.5},
        {"fractions": "abc"}, {"nodes": 10**30}, {"nodes": "many"}, {"channels": 10**30},
        {"degree": None},
    ],
)  # fmt: skip
def test_odd_values_of_options_are_refused_by_name(options):
    with pytest.raises(UsageError, match=next(iter(options))):
        load("csbm", **options)


@pytest.mark.parametrize("name", [3, None, ["texas"], {}])
def test_a_name_that_is_none(name):
    with pytest.raises(UsageError, match="no dataset named"):
        load(name)
