"""From members to the cells of a table, and to curves."""

from __future__ import annotations

import numpy as np
import pytest

from made_up_results import results_of, row
from memohop.errors import UsageError
from study.paper.curves import curves
from study.paper.table1 import difference, tables_of
from study.runs.results import measured


def one_table(*rows):
    (table,) = tables_of(measured(results_of(*rows)))
    return table


def column(dataset, **scores):
    """Rows of several models, whose test scores are given split by split."""
    return [
        row(test, dataset=dataset, model=model, split=split)
        for model, tests in scores.items()
        for split, test in enumerate(tests)
    ]


def test_validation_chooses_and_seeds_are_averaged_before_the_spread_is_taken():
    rows = [
        row(0.9, val=0.5, split=split, setting={"lam": 0.0}) for split in range(2)
    ] + [
        row(test, val=0.6, split=split, seed=seed, setting={"lam": 0.2})
        for (split, seed), test in {(0, 0): 0.5, (0, 1): 0.7, (1, 0): 0.8, (1, 1): 0.8}.items()
    ]  # fmt: skip
    (cell,) = measured(results_of(*rows))
    assert cell.setting == {"lam": 0.2}
    assert cell.scores == pytest.approx({0: 60, 1: 80})
    assert cell.mean == pytest.approx(70)
    assert cell.std == pytest.approx(np.std([60, 80], ddof=1))
    assert (cell.seeds, cell.runs, cell.seconds) == (2, 6, 1.5)
    assert cell.val == pytest.approx(60)


def test_one_split_has_no_standard_deviation():
    (cell,) = measured(results_of(row(0.5)))
    assert cell.std is None


def test_measured_beside_printed():
    table = one_table(*(row(test, model="gcn+mmp", split=i) for i, test in enumerate((0.8, 0.9))))
    points, stds = difference(table.measured["gcn+mmp", "texas"])
    assert points == pytest.approx(85 - 85.39)
    assert stds == pytest.approx((85 - 85.39) / 3.58)
    (flat,) = table.flat()
    assert flat["printed_mean"] == 85.39
    assert flat["printed_std"] == 3.58
    assert flat["printed_source"] == "ours"
    assert (flat["mean"], flat["splits"], flat["protocol"]) == (85.0, 2, "paper")
    assert flat["std"] == pytest.approx(7.0711)
    assert not any(isinstance(value, (dict, list)) for value in flat.values())


def test_cornells_column_is_of_the_faulty_file():
    table = one_table(
        *(row(0.8, model="gcn+mmp", dataset=d) for d in ("cornell", "cornell-legacy"))
    )
    assert difference(table.measured["gcn+mmp", "cornell"]) == (None, None)
    assert difference(table.measured["gcn+mmp", "cornell-legacy"])[0] == pytest.approx(80 - 82.89)
    assert table.columns == ("cornell-legacy", "cornell")


def test_no_difference_in_deviations_where_none_is_printed():
    table = one_table(row(0.7, model="geom-gcn"))
    points, stds = difference(table.measured["geom-gcn", "texas"])
    assert points == pytest.approx(70 - 67.57)
    assert stds is None


def test_the_best_is_never_alone_where_the_difference_is_noise():
    rng = np.random.default_rng(0)
    best = rng.normal(0.8, 0.04, 10)
    near = (best - 0.005 + rng.normal(0, 0.02, 10)).round(6)  # as files have scores
    far = (best - 0.2 + rng.normal(0, 0.02, 10)).round(6)
    table = one_table(*column("texas", gcn=best, gat=near, mlp=far))
    marked = {model: table.among_the_best(model, "texas") for model in table.rows}
    assert marked == {"gcn": True, "gat": True, "mlp": False}
    leads = table.leads("gat", "texas")
    assert set(leads) == {"gcn", "mlp"}
    assert leads["mlp"][0] == pytest.approx(100 * (near.mean() - far.mean()))
    assert leads["mlp"][1] < 0.05 < leads["gcn"][1]


def test_nothing_is_marked_where_models_do_not_share_their_splits():
    rows = [*column("texas", gcn=(0.5, 0.6)), row(0.9, model="gat", split=7)]
    table = one_table(*rows)
    assert not any(table.among_the_best(*key) for key in table.measured)
    assert table.leads("gcn", "texas") == {}


def test_ranks_are_over_the_datasets_that_every_model_has():
    rows = []
    for dataset, order in {"texas": "abc", "cora": "bca", "pubmed": "ab"}.items():
        scores = {name: (0.9 - i / 10, 0.8 - i / 10) for i, name in enumerate(order)}
        rows += column(
            dataset, **{{"a": "gcn", "b": "gat", "c": "mlp"}[k]: v for k, v in scores.items()}
        )
    rows += column("csbm", gcn=(0.1, 0.1), gat=(0.2, 0.2), mlp=(0.3, 0.3))
    table = one_table(*rows)
    assert table.rows == ["mlp", "gat", "gcn"]  # the order of the print
    assert table.ranked == ["texas", "cora"]
    assert table.ranks == {"gat": 1.5, "gcn": 2.0, "mlp": 2.5}
    assert ("mlp", "pubmed") not in table.measured


def test_two_models_are_not_ranked():
    table = one_table(*column("texas", gcn=(0.5, 0.6), gat=(0.6, 0.7)))
    assert table.comparison is None
    assert table.ranks == {}


def test_protocols_are_kept_apart():
    rows = [row(0.5), row(0.7, protocol="official")]
    both = tables_of(measured(results_of(*rows)))
    assert [table.protocol for table in both] == ["paper", "official"]
    (official,) = tables_of(measured(results_of(*rows)), protocol="official")
    assert official.measured["gcn", "texas"].mean == pytest.approx(70)
    with pytest.raises(UsageError, match=r"protocol 'fair' has no results; .* paper, official"):
        tables_of(measured(results_of(*rows)), protocol="fair")


class TestCurves:
    def test_draws_are_pooled_and_the_other_axes_kept_apart(self):
        rows = [
            row(0.5 + noise / 1000 + draw / 10, axes={"noise": noise, "draw": draw, "split": kind})
            for kind in ("public", "published")
            for noise in (25, 0)
            for draw in (0, 1)
        ]
        first, second = curves(measured(results_of(*rows)), "noise")
        assert (first.axes, second.axes) == ({"split": "public"}, {"split": "published"})
        assert [point.x for point in first.points] == [0, 25]
        assert first.points[0].scores == pytest.approx({(0, 0): 50, (1, 0): 60})
        assert first.points[1].mean == pytest.approx(57.5)
        assert first.points[1].std == pytest.approx(np.std([50, 60], ddof=1))

    def test_changes_against_the_first_point_are_paired(self):
        rng = np.random.default_rng(0)
        hard = rng.normal(0.5, 0.1, 10)
        rows = [
            row(hard[split] + step + rng.normal(0, 0.002), axes={"lam": lam}, split=split)
            for lam, step in ((0.0, 0), (0.5, 0.0), (1.0, 0.02))
            for split in range(10)
        ]
        (curve,) = curves(measured(results_of(*rows)), "lam")
        (small, p_small), (large, p_large) = curve.against(curve.points[0].x).values()
        assert (small, large) == pytest.approx((0, 2), abs=0.3)
        assert p_large < 0.001 < 0.05 < p_small
