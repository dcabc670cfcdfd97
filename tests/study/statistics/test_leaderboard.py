"""The fair table's numbers against a slow second computation."""

from statistics import mean, stdev

import numpy as np
import pytest
from msgspec.structs import replace

from made_up_search import HOMOPHILIES, SEEDS, SPLITS
from made_up_search import tuned as tuned
from memohop.data.datasets.registry import datasets, describe
from memohop.networks.registry import models
from study.statistics.comparison import corrected_t_test, holm
from study.statistics.effects import ALL, PLUG_INS, effects
from study.statistics.leaderboard import BACKBONES, KINDS, Leaderboard, family_of, kind_of


@pytest.fixture(scope="module")
def board(tuned):
    return Leaderboard(tuned)


@pytest.fixture(scope="module")
def found(board):
    return effects(board)


def test_data_with_a_flaw_stand_apart(tuned, board):
    flawed = Leaderboard(tuned, flawed=True)
    assert flawed.columns == ("squirrel", "cornell-legacy")
    assert not set(flawed.columns) & set(board.columns)
    assert len(board.cells) + len(flawed.cells) == len(tuned.cells)
    assert flawed.comparison is None
    assert [name for name in datasets() if describe(name).flawed] == [
        "cornell-legacy", "chameleon", "squirrel",
    ]  # fmt: skip


def test_a_score_is_the_mean_over_splits_of_the_mean_over_seeds(tuned, board):
    for key, cell in board.cells.items():
        per_split = [
            100 * mean(cell.test[seed][split] for seed in range(SEEDS)) for split in range(SPLITS)
        ]
        assert board.measured[key].mean == pytest.approx(mean(per_split))
        assert board.measured[key].std == pytest.approx(stdev(per_split))


def test_ranks_count_who_is_better(board):
    for row, rank in board.ranks.items():
        places = []
        for column in board.columns:
            own = board.measured[row, column].mean
            others = [board.measured[other, column].mean for other in board.rows]
            places.append(1 + sum(one > own for one in others))
        assert rank == pytest.approx(mean(places))
    assert list(board.rows) == sorted(board.rows, key=board.ranks.get)


def test_a_model_with_a_gap_has_no_rank_and_costs_no_dataset(tuned):
    cells = tuple(c for c in tuned.cells if (c.model, c.dataset) != ("h2gcn", "texas"))
    board = Leaderboard(replace(tuned, cells=cells))
    assert "texas" in board.ranked
    assert "h2gcn" not in board.ranks
    assert board.mean("h2gcn") is None
    assert board.rows[-1] == "h2gcn"


def test_bold_needs_significance(board):
    for column in board.columns:
        best = max(board.rows, key=lambda row: board.measured[row, column].mean)
        ratio = describe(board.of_column[column].dataset).test_to_train
        others = [row for row in board.rows if row != best]
        raw = [
            corrected_t_test(
                np.subtract(board.scores[column][best], board.scores[column][row]).tolist(),
                test_to_train=ratio,
            )
            for row in others
        ]
        worse = {row for row, p in zip(others, holm(raw), strict=True) if p < 0.05}
        assert {row for row in board.rows if not board.among_the_best(row, column)} == worse
        alone = worse == set(others)
        assert [row for row in board.rows if board.is_best(row, column)] == [best] * alone


def test_the_best_with_memory_is_chosen_by_validation(board):
    for side, own in {
        "with memory": [row for row in board.rows if "+mmp" in row],
        "plain memory": [row for row in board.rows if row.endswith("+mmp")],
        "without": [row for row in board.rows if "+mmp" not in row],
    }.items():
        assert sorted(board.models(side)) == sorted(own)
        vals = {row: board.measured[row, "texas"].val for row in own}
        assert board.best("texas", side).model == max(vals, key=vals.get)


def test_costs_are_sums(board):
    cells = [cell for (row, _), cell in board.cells.items() if row == "gcn+mmp labels=memory"]
    assert board.networks("gcn+mmp labels=memory") == len(cells) * 56
    assert board.seconds("gcn+mmp labels=memory") == pytest.approx(sum(c.seconds for c in cells))


def test_gains_are_differences_on_the_same_splits(board, found):
    (effect,) = [one for one in found if (one.backbone, one.plug_in) == ("gat", "+mmp")]
    assert [gain.column for gain in effect.gains] == list(board.columns)
    for gain in effect.gains:
        pairs = zip(
            board.scores[gain.column]["gat+mmp"], board.scores[gain.column]["gat"], strict=True
        )
        differences = [a - b for a, b in pairs]
        assert gain.points == pytest.approx(mean(differences))
        assert 100 * gain.interval.low < gain.points < 100 * gain.interval.high
    assert effect.count(1) + effect.count(0) + effect.count(-1) == len(board.columns)


def test_what_was_put_in_is_found(found):
    """Memory is worth eight points on one graph, on every backbone."""
    for effect in found:
        if effect.plug_in == "+mmp" and effect.gains:
            by_column = {gain.column: gain for gain in effect.gains}
            assert by_column[f"csbm homophily={HOMOPHILIES[0]}"].verdict == 1
            assert by_column[f"csbm homophily={HOMOPHILIES[0]}"].homophily == HOMOPHILIES[0]
            assert effect.posterior.worse < 0.6


def test_the_mean_over_backbones(found):
    own = [one for one in found if one.plug_in == "+mmp" and one.gains]
    (whole,) = [one for one in found if one.plug_in == "+mmp" and one.backbone == ALL]
    assert len(own) == 7
    gains = [[*one.points.values()] for one in own]
    np.testing.assert_allclose([*whole.points.values()], np.mean(gains, axis=0))
    assert not any(one.plug_in == "+jk" and one.backbone == ALL for one in found)  # on one only


def test_every_model_has_a_kind_and_every_plug_in_is_there():
    kinds = {model: kind_of(model) for model in models()}
    assert set(kinds.values()) == set(KINDS)
    assert kinds["gcn+de"] == "plug-in"
    assert kinds["linkx"] == kinds["gcn-res"] == "rival"
    for backbone in BACKBONES:
        assert kinds[backbone] == "backbone"
        names = {(backbone + beside + plug_in).split()[0] for plug_in, beside in PLUG_INS.items()}
        assert names <= set(models())
    assert all(family_of(name) for name in datasets())


def test_results_of_one_dataset_are_no_comparison(tuned):
    cells = tuple(cell for cell in tuned.cells if cell.dataset == "texas")
    alone = Leaderboard(replace(tuned, cells=cells))
    assert (alone.comparison, alone.ranks) == (None, {})
    assert len(alone.flat()) == len(alone.rows)
