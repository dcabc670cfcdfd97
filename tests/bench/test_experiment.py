"""Experiment files say what they mean, and mistakes in them are named."""

from itertools import product

import pytest

import memohop
from memohop.bench.cell import Cell, Recipe, Run
from memohop.bench.experiment import Experiment, experiments
from memohop.bench.settings import Settings
from memohop.networks import build
from memohop.training import Rules


def cell_of(experiment, **wanted):
    (found,) = [
        cell
        for cell in experiment.cells([wanted.pop("protocol", "paper")])
        if all(getattr(cell, name) == value for name, value in wanted.items())
    ]
    return found


def test_a_row_is_put_together_from_its_parts(tiny):
    settings, search = tiny.row("paper", "gcn+mmp", "csbm")
    assert settings.lr == 0.03  # of the group, over that of the row it is like
    assert settings.weight_decay == 0  # of the dataset
    assert settings.options == {"hidden_channels": 8}
    assert settings.epochs == 6  # of every row
    assert search == {"lam": [0, 0.5], "num_layers": [1, 2]}
    assert tiny.row("paper", "gcn", "digits")[0].lr == 0.04  # the dataset counts over its group


def test_a_protocol_like_another_differs_where_it_says_so(tiny):
    settings, search = tiny.row("official", "gcn+mmp", "csbm")
    assert (settings.lr, settings.rules) == (0.05, Rules(keep="latest"))
    assert search == tiny.row("paper", "gcn+mmp", "csbm")[1]
    assert tiny.row("official", "mlp", "csbm") == tiny.row("paper", "mlp", "csbm")


def test_cells_are_all_combinations(tiny):
    cells = list(tiny.cells())
    assert len({cell.id for cell in cells}) == len(cells) == 2 * 3 * 2
    assert [cell.axes for cell in cells[:2]] == [{"noise": 0}, {"noise": 50}]
    cell = cell_of(tiny, model="gcn+mmp", axes={"noise": 50})
    assert cell.settings.noise == 50
    wanted = set(product((0, 0.5), (1, 2), (0, 1), (0, 1)))
    found = [(*run.setting.values(), run.seed, run.split) for run in cell.runs]
    assert set(found) == wanted
    assert len(found) == len(wanted)
    assert {run.member.lam for run in cell.runs} == {0.0, 0.5}
    assert {run.recipe.settings.options["num_layers"] for run in cell.runs} == {1, 2}
    assert len(cell_of(tiny, protocol="official", model="mlp", axes={"noise": 0}).runs) == 2 * 2


def test_a_file_can_be_based_on_another_one(tiny_file, tmp_path):
    path = tmp_path / "lambda.toml"
    path.write_text(
        f"""title = ""
expected = ""
time = ""
base = "{tiny_file}"
datasets = ["csbm"]
models = ["gcn+mmp"]
axes.lam = [0, 1]
protocols.paper.rows."gcn+mmp".search = {{ num_layers = [3], hidden_channels = [] }}
""",
        encoding="utf-8",
    )
    first, second = Experiment(str(path)).cells()
    assert (first.settings.lam, second.settings.lam) == (0, 1)
    assert second.search == {"num_layers": [3]}  # what is an axis is not chosen
    assert second.settings.lr == 0.03  # groups come along
    assert second.settings.epochs == 6  # and so does what goes for every row


def test_runs_are_known_by_their_content(tiny):
    run = cell_of(tiny, model="gcn", axes={"noise": 50}).runs[0]
    same = Run(Recipe("csbm", "gcn", run.recipe.settings.having({})), {}, 0, 0)
    assert run.id == same.id
    changes = [
        {"lr": 0.1},
        {"epochs": 7},
        {"draw": 1},
        {"noise": 51},
        {"hidden_channels": 9},
        {"features": "row"},
        {"dropout": 0.4},
        {"rules": {"keep": "last"}},
    ]
    others = [Run(Recipe("csbm", "gcn", run.recipe.settings.having(c)), {}, 0, 0) for c in changes]
    others += [Run(run.recipe, {}, 1, 0), Run(run.recipe, {}, 0, 1)]
    assert len({run.id, *(other.id for other in others)}) == 1 + len(others)


def test_what_makes_no_difference_makes_no_other_run(tiny):
    settings = cell_of(tiny, model="gcn", axes={"noise": 0}).settings
    ids = {
        Recipe("csbm", "gcn", settings.having(values)).id
        for values in ({}, {"draw": 3}, {"dropout": 0.5}, {"num_layers": 2}, {"weight_decay": 0})
    }
    assert len(ids) == 1


def test_data_is_known_by_its_files():
    settings = Settings()
    assert Recipe("texas", "mlp", settings).id != Recipe("cornell", "mlp", settings).id
    files = settings.data_key("texas")["files"]
    assert len(files) == 12
    assert all(len(digest) == 64 for digest in files.values())


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("lr = 0.02", "lrr = 0.02", "tiny.toml: protocols.paper.rows.gcn: .*unknown field `lrr`"),
        ("lr = 0.03", 'lr = "fast"', r"rows.gcn: Expected `float`, got `str` - at `\$.lr`"),
        ("options.hidden", "options.hiden", "option of gcn named 'hiden_channels'; did you mean"),
        (
            "search.num_layers",
            "search.layers",
            r"gcn\+mmp: there is no setting, or option of gcn\+mmp, named",
        ),
        ("search.lam = [0, 0.5]", 'search.lam = [0, "a"]', r"Expected `float`, .* at `\$.lam` of"),
        ("noise = [0, 50]", 'noise = [0, "x"]', r"axes: Expected `float`, .* at `\$.noise` of"),
        ('keep = "latest"', 'keep = "later"', "Invalid enum value 'later' - at `\\$.rules.keep`"),
        ("on.digits", "on.digit", "rows.gcn: there is no dataset named 'digit'; did you mean"),
        ('like = "gcn"', 'like = "gcnn"', "no row named 'gcnn'; did you mean gcn"),
        ('like = "gcn"', 'like = "gcn+mmp"', r"like goes round in a circle: gcn\+mmp -> gcn\+mmp"),
        ('like = "paper"', 'like = "papers"', "protocols.official.like: there is no protocol"),
        ('["csbm"]', '["cbsm"]', "tiny.toml: datasets or groups: there is no dataset named 'cbsm'"),
        ('"mlp", "gcn"', '"mlp", "gat"', "rows.gat: there is no row named 'gat'"),
        ('title = "A tiny experiment"', "", "tiny.toml: Object missing required field `title`"),
        ("[groups]", "[groups", "tiny.toml: "),
        ("noise = [0, 50]", "nois = [0, 50]", "tiny.toml: axes: .*'nois'; did you mean noise"),
    ],
)
def test_a_mistake_is_named_with_its_place(old, new, words, tiny_file):
    text = tiny_file.read_text(encoding="utf-8")
    assert old in text
    tiny_file.write_text(text.replace(old, new, 1), encoding="utf-8")
    with pytest.raises(memohop.DataError, match=words):
        list(Experiment(str(tiny_file)).cells())


def test_experiments_that_are_not_there(tmp_path):
    with pytest.raises(memohop.UsageError, match="did you mean table1"):
        Experiment("tabel1")
    with pytest.raises(memohop.UsageError, match="cannot read the experiment"):
        Experiment(str(tmp_path / "none.toml"))


@pytest.mark.parametrize("name", experiments())
def test_every_row_of_the_package_builds_its_network(name):
    experiment = Experiment(name)
    recipes: dict[str, Recipe] = {}
    for cell in experiment.cells():
        assert isinstance(cell, Cell)
        for run in cell.runs:
            key = f"{cell.model} {run.recipe.settings.options}"
            recipes.setdefault(key, run.recipe)
    for recipe in recipes.values():
        build(recipe.model, 5, 3, **recipe.settings.options)
