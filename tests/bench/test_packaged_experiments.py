"""The experiments of the package are those of the paper."""

from collections import Counter

import pytest

from memohop.bench.experiment import Experiment
from memohop.paper.printed import printed_table1

LAMBDAS = [0, 0.1, 0.2, 0.4, 0.6, 0.8, 1]


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
            assert {run.split for run in cell.runs} == set(range(10))
            assert cell.settings.features == "row"


def test_gcn_mmp_is_as_the_text_says(table1):
    settings, search = table1.row("paper", "gcn+mmp", "squirrel")
    assert (settings.lr, settings.weight_decay, settings.epochs) == (0.05, 5e-4, 500)
    assert (settings.dropout, settings.options["hidden_channels"]) == (0.5, 64)
    assert (settings.options["direction"], settings.options["decoupling"]) == (
        "undirected",
        "paper",
    )
    assert search == {"lam": LAMBDAS}


@pytest.mark.parametrize(
    ("dataset", "direction", "self_loops", "weight_decay", "regularised"),
    [
        ("texas", "out", "remove", 5e-4, True),
        ("actor", "out", "remove", 5e-4, True),
        ("cornell-legacy", "out", "remove", 5e-4, True),
        ("squirrel", "out", "remove", 5e-5, False),
        ("chameleon", "out", "remove", 5e-4, False),
        ("cora", "undirected", "add", 5e-4, False),
    ],
)
@pytest.mark.parametrize("model", ["gcn+mmp", "gat+mmp"])
def test_gcn_mmp_is_as_the_released_code_does(
    model, dataset, direction, self_loops, weight_decay, regularised, table1
):
    settings, search = table1.row("official", model, dataset)
    assert settings.options["direction"] == direction
    assert settings.options["self_loops"] == self_loops
    assert settings.options["norm"] == "row"
    assert settings.options["decoupling"] == "official"
    assert settings.weight_decay == weight_decay
    assert (settings.epochs, settings.rules.keep, settings.lam) == (1000, "first", 0)
    assert search == ({"lam": LAMBDAS} if regularised else {})


def test_no_row_but_one_lets_the_test_score_in(table1):
    leaking = {
        (protocol, model)
        for protocol in table1.protocols
        for model in table1.models
        if table1.row(protocol, model, "texas")[0].rules.leaks
    }
    assert leaking == {("official", "mixhop")}


def test_the_searches_of_the_authors_are_part_of_their_rows(table1):
    counts = dict.fromkeys(table1.models, 1)
    counts |= {"mlp": 4, "gcn": 3, "gcn+jk": 3, "gcn+mmp": 7, "gat+mmp": 7, "h2gcn": 8}
    counts |= {"mixhop": 2, "geom-gcn": 2, "gcn+de": 3, "gat+de": 3}
    found = {
        cell.model: len(cell.runs) // 10
        for cell in table1.cells(["paper"])
        if cell.dataset == "wisconsin"
    }
    assert found == counts


def test_noise_has_the_levels_of_the_paper_on_both_kinds_of_split():
    noise = Experiment("noise")
    assert noise.datasets == ["cora", "citeseer"]
    levels = [0, 25, 50, 75, 100, 200, 300, 400, 500]
    for protocol, policy, splits in (("paper", "undirected", 10), ("official", "directed", 1)):
        cells = list(noise.cells([protocol]))
        assert sorted({cell.axes["noise"] for cell in cells}) == levels
        assert {cell.settings.noise_policy for cell in cells} == {policy}
        assert {len({run.split for run in cell.runs}) for cell in cells} == {splits}
        lams = {cell.model: {run.setting.get("lam") for run in cell.runs} for cell in cells}
        assert lams["gcn+mmp"] == lams["gat+mmp"] == {0, 0.2, 1}
        settings = {cell.model: len(cell.runs) // splits // len(cell.seeds) for cell in cells}
        assert settings == {"mlp": 4, "gcn+mmp": 3, "gat+mmp": 3} | dict.fromkeys(
            ("gcn", "gat", "gcn+jk", "gcn+de"), 1
        )


def test_without_noise_every_draw_is_the_same_run():
    first, second, third = (
        cell
        for cell in Experiment("noise").cells(["paper"])
        if (cell.dataset, cell.model, cell.axes["noise"]) == ("cora", "gcn", 0)
    )
    assert first.content == second.content == third.content
    assert first.id != second.id


def test_noise_is_nothing_to_a_model_without_a_graph():
    contents = {
        (cell.dataset, cell.content)
        for cell in Experiment("noise").cells(["paper"])
        if cell.model == "mlp"
    }
    assert len(contents) == 2


def test_lambda_is_an_axis_and_shares_runs_with_table1(table1):
    cells = list(Experiment("lambda").cells())
    assert len(cells) == 2 * 6 * 7
    assert all("lam" not in cell.search for cell in cells)
    ours = {run.id for cell in cells for run in cell.runs}
    theirs = {
        run.id
        for cell in table1.cells()
        if (cell.model, cell.dataset) == ("gcn+mmp", "texas")
        for run in cell.runs
    }
    assert theirs < ours
