"""The fair table's numbers against a slow second computation."""

import pytest
from msgspec.structs import replace

from made_up_search import HOMOPHILIES
from made_up_search import tuned as tuned
from memohop.data.datasets.registry import datasets, describe
from memohop.networks.registry import models
from study.statistics.effects import PLUG_INS, effects
from study.statistics.leaderboard import BACKBONES, KINDS, Leaderboard, family_of, kind_of


@pytest.fixture(scope="module")
def board(tuned):
    return Leaderboard(tuned)


@pytest.fixture(scope="module")
def all_effects(board):
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


def test_a_model_with_a_gap_has_no_rank_and_costs_no_dataset(tuned):
    cells = tuple(c for c in tuned.cells if (c.model, c.dataset) != ("h2gcn", "texas"))
    board = Leaderboard(replace(tuned, cells=cells))
    assert "texas" in board.ranked
    assert "h2gcn" not in board.ranks
    assert board.mean("h2gcn") is None
    assert board.rows[-1] == "h2gcn"


def test_what_was_put_in_is_found(all_effects):
    """Memory is worth eight points on one graph, on every backbone."""
    for effect in all_effects:
        if effect.plug_in == "+mmp" and effect.gains:
            by_column = {gain.column: gain for gain in effect.gains}
            assert by_column[f"csbm homophily={HOMOPHILIES[0]}"].verdict == 1
            assert by_column[f"csbm homophily={HOMOPHILIES[0]}"].homophily == HOMOPHILIES[0]
            assert effect.posterior.worse < 0.6


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
