"""The experiments of the package are those of the paper."""

from collections import Counter

import pytest

from memohop.data.datasets.registry import datasets
from memohop.networks.registry import models
from memohop.training.job import digest
from study.paper.table1 import printed_table1
from study.runs.experiment import Experiment, experiments

CONTENTS = {  # all of what the cells of an experiment train
    "classic": "b0d414eb415f1dc4cb66eb3166214d68",
    "fair": "c3e421db0d646ee50452d97ddb76fafb",
    "lambda": "4ac527191aad83dbb3e83d94e1389569",
    "noise": "86998219de785972989adb6d22b894a2",
    "table1": "4f43ed510614e601a7d641200d7f263a",
}


@pytest.mark.parametrize("name", experiments())
def test_stored_runs_are_still_those_of_their_experiments(name):
    """Every option, search and draw is in the digests: with others, all would be trained again."""
    cells = [
        [cell.id, cell.content, cell.protocol, cell.dataset, cell.model, cell.axes]
        for cell in Experiment(name).cells()
    ]
    assert digest(cells) == CONTENTS[name]


@pytest.fixture(scope="module")
def table1():
    return Experiment("table1")


def test_table1_has_every_cell_of_the_print(table1):
    for protocol in ("paper", "official"):
        cells = list(table1.cells([protocol]))
        assert len(cells) == 126
        assert {(cell.model, cell.dataset) for cell in cells} == printed_table1().keys()
        for cell in cells:
            per_setting = Counter(tuple(run.setting.items()) for run in cell.runs)
            assert set(per_setting.values()) == {10}
            assert {run.member.split for run in cell.runs} == set(range(10))
            assert cell.settings.features == "row"


def test_no_row_but_one_lets_the_test_score_in(table1):
    leaking = {
        (protocol, model)
        for protocol in table1.protocols
        for model in table1.models
        if table1.row(protocol, model, "texas")[0].rules.leaks
    }
    assert leaking == {("official", "mixhop")}


def test_lambda_is_an_axis_and_shares_runs_with_table1(table1):
    cells = list(Experiment("lambda").cells())
    assert len(cells) == 2 * 6 * 7
    assert not any("lam" in setting for cell in cells for setting in cell.drawn)
    ours = {run.id for cell in cells for run in cell.runs}
    theirs = {
        run.id
        for cell in table1.cells()
        if (cell.model, cell.dataset) == ("gcn+mmp", "texas")
        for run in cell.runs
    }
    assert theirs < ours


@pytest.fixture(scope="module")
def fair():
    return Experiment("fair")


def test_fair_has_the_models_on_every_published_graph(fair):
    assert set(fair.models) <= set(models())  # a new model may join it later
    assert len(set(fair.models)) >= 43
    absent = {"digits", "roman-empire", "amazon-ratings", "questions"}
    assert set(fair.datasets) == set(datasets()) - absent


def test_fair_asks_the_same_of_every_model(fair):
    for dataset in ("texas", "minesweeper", "csbm"):
        rows = {model: fair.row("fair", model, dataset)[0] for model in fair.models}
        shared = {(s.epochs, s.patience, s.features, s.rules, s.split) for s in rows.values()}
        assert len(shared) == 1
        assert next(iter(shared))[2] == "scaled"
    assert not rows["mlp"].rules.leaks
