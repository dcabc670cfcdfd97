"""The experiments of the package are those of the paper."""

from collections import Counter

import pytest

from memohop.data.datasets.fetch import without_digest
from memohop.data.datasets.registry import datasets, describe
from memohop.jobs.space import Range
from memohop.networks.registry import entry, models
from study.paper.printed import printed_table1
from study.runs.experiment import Experiment

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


@pytest.fixture(scope="module")
def fair():
    return Experiment("fair")


@pytest.fixture(scope="module")
def fair_cells():
    experiment = Experiment("fair")
    experiment.datasets = ["texas", "cora"]
    return list(experiment.cells())


def test_fair_has_the_models_on_every_published_graph(fair):
    assert set(fair.models) <= set(models())  # a new model may join it later
    assert len(set(fair.models)) >= 43
    unchecked = {name for name in datasets() if without_digest(describe(name).files)}
    assert set(fair.datasets) == set(datasets()) - {"digits"} - unchecked


def test_fair_asks_the_same_of_every_model(fair):
    for dataset in ("texas", "minesweeper", "csbm"):
        rows = {model: fair.row("fair", model, dataset)[0] for model in fair.models}
        shared = {(s.epochs, s.patience, s.features, s.rules, s.split) for s in rows.values()}
        assert len(shared) == 1
        assert next(iter(shared))[2] == "scaled"
    assert not rows["mlp"].rules.leaks


def test_fair_gives_every_model_a_space_of_comparable_size(fair):
    for model in fair.models:
        space = fair.space("fair", model, "texas")
        numbers = {name for name, values in space.items() if isinstance(values, Range)}
        assert numbers >= {"lr", "weight_decay", "input_dropout"}
        assert len(space) - len(numbers) >= 2  # choices of structure
        knows_direction = "direction" in entry(model).options()
        if model.startswith("dir-gcn"):
            assert space["alpha"] == [0.5, 0.0, 1.0]
        else:
            assert ("direction" in space) == knows_direction
        assert "direction" not in fair.space("fair", model, "cora")


def test_fair_has_the_memory_with_labels_and_with_rows(fair_cells):
    cells = [c for c in fair_cells if c.dataset == "texas" and c.model.endswith("+mmp")]
    axes = Counter(tuple(sorted(cell.axes.items())) for cell in cells)
    assert len(axes) == 3
    assert set(axes.values()) == {7}
    assert {cell.settings.options.get("labels") for cell in cells} == {None, "memory"}
    first = cells[0]
    assert (len(first.runs), sum(first.halving.trainings(10))) == (64, 86)
    assert len({run.split for run in first.runs}) == 2


def test_plug_ins_are_tried_with_the_numbers_of_their_backbones(fair_cells):
    drawn = {c.model: c.drawn for c in fair_cells if c.dataset == "cora" and len(c.axes) == 1}
    for model in ("gcn+jk", "gcn+de", "gcn+mmp"):
        for name in ("lr", "weight_decay", "dropout", "norm", "hidden_channels"):
            assert [s[name] for s in drawn[model]] == [s[name] for s in drawn["gcn"]]


def test_data_with_a_flaw_are_told_so():
    assert all(describe(name).note for name in datasets() if describe(name).flawed)
