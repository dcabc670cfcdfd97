"""Experiment files say what they mean, and mistakes in them are named."""

import re
from itertools import islice, product

import pytest
from hypothesis import given
from hypothesis import strategies as st

import memohop
from memohop.errors import MemohopError
from memohop.jobs.named import Settings
from memohop.networks import build
from memohop.training import Job, Rules
from study import EXPERIMENTS
from study.runs.cell import Cell
from study.runs.experiment import Experiment, experiments


def cell_of(experiment, **wanted):
    (cell,) = [
        cell
        for cell in experiment.cells([wanted.pop("protocol", "paper")])
        if all(getattr(cell, name) == value for name, value in wanted.items())
    ]
    return cell


def assert_refused(path, old, new, words):
    text = path.read_text(encoding="utf-8")
    assert old in text
    path.write_text(text.replace(old, new, 1), encoding="utf-8")
    with pytest.raises(memohop.DataError, match=words):
        list(Experiment(str(path)).cells())


def test_a_row_is_put_together_from_its_parts(tiny):
    settings, search, _ = tiny.row("paper", "gcn+mmp", "csbm")
    assert settings.lr == 0.03  # of the group, over that of the row it is like
    assert settings.weight_decay == 0  # of the dataset
    assert settings.options == {"hidden_channels": 8}
    assert settings.epochs == 6  # of every row
    assert search == {"lam": [0, 0.5], "num_layers": [1, 2]}
    assert tiny.row("paper", "gcn", "digits")[0].lr == 0.04  # the dataset counts over its group


def test_a_protocol_like_another_differs_where_it_says_so(tiny):
    settings, search, _ = tiny.row("official", "gcn+mmp", "csbm")
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
    settings = [(*run.setting.values(), run.member.seed, run.member.split) for run in cell.runs]
    assert set(settings) == wanted
    assert len(settings) == len(wanted)
    assert {run.member.lam for run in cell.runs} == {0.0, 0.5}
    assert {run.options["num_layers"] for run in cell.runs} == {1, 2}
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
    assert second.drawn == ({"num_layers": 3},)  # what is an axis is not chosen
    assert second.settings.lr == 0.03  # groups come along
    assert second.settings.epochs == 6  # and so does what goes for every row


def test_runs_are_known_by_their_content(tiny):
    cell = cell_of(tiny, model="gcn", axes={"noise": 50})
    run, settings = cell.runs[0], cell.settings.having(cell.runs[0].setting)
    same = settings.having({}).job("csbm", "gcn")
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
    others = [settings.having(change).job("csbm", "gcn") for change in changes]
    others += [run.at(1, 0), run.at(0, 1)]
    assert len({run.id, *(other.id for other in others)}) == 1 + len(others)


def test_what_makes_no_difference_makes_no_other_run(tiny):
    settings = cell_of(tiny, model="gcn", axes={"noise": 0}).settings
    ids = {
        settings.having(values).job("csbm", "gcn").id
        for values in ({}, {"draw": 3}, {"dropout": 0.5}, {"num_layers": 2}, {"weight_decay": 0})
    }
    assert len(ids) == 1


def test_an_option_that_came_later_leaves_the_runs_without_it_as_they_were(tiny):
    settings = cell_of(tiny, model="gcn", axes={"noise": 0}).settings
    plain = settings.job("csbm", "gcn+mmp")
    assert not {"labels", "label_rate", "address"} & plain.content["options"].keys()
    assert settings.having({"labels": "none"}).job("csbm", "gcn+mmp").id == plain.id
    labelled = settings.having({"labels": "memory"}).job("csbm", "gcn+mmp")
    assert labelled.content["options"] == plain.content["options"] | {"labels": "memory"}
    assert labelled.id != settings.having({"address": "rows"}).job("csbm", "gcn+mmp").id


def test_data_is_known_by_its_files():
    settings = Settings()
    assert settings.job("texas", "mlp").id != settings.job("cornell", "mlp").id
    files = settings.job("texas", "mlp").recipe["data"]["files"]
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
        ("noise = [0, 50]", "noise = [0, 50, 0.0]", "tiny.toml: axes.noise has 0.0 twice; leave"),
        ("noise = [0, 50]", "noise = []", "tiny.toml: axes.noise is empty; give one value"),
        ('["csbm"]', '["csbm", "csbm"]', "tiny.toml: datasets has csbm twice"),
        ('["csbm"]', "[]", "tiny.toml: datasets is empty"),
        ('"mlp", "gcn"', '"mlp", "mlp"', "tiny.toml: models has mlp twice"),
        ('"mlp", "gcn", "gcn+mmp"', "", "tiny.toml: models is empty"),
        ("seeds = [0, 1]", "seeds = [1, 1]", "tiny.toml: seeds has 1 twice"),
        ("seeds = [0, 1]", "seeds = []", "tiny.toml: seeds is empty"),
        ("seeds = [0, 1]", "seeds = [-1]", "tiny.toml: seeds: seed=-1 is too small"),
        ("seeds = [0]\n", "seeds = []\n", "tiny.toml: protocols.official.seeds is empty"),
        ("search.lam = [0, 0.5]", "search.lam = [0, 0]", r"rows.gcn\+mmp: search.lam has 0 twice"),
        ("lr = 0.02", "lr = nan", "tiny.toml: Out of range float values .* without dates and inf"),
        ("lr = 0.02", "lr = 2020-02-02", "tiny.toml: Object of type date is not .* without dates"),
        ("on.made.lr = 0.03", "on.made.lr = -1", "rows.gcn: lr=-1.0 is out of range"),
        ("epochs = 6", "epochs = 0", r"rows.mlp: Expected `int` >= 1 - at `\$.epochs`"),
        ("epochs = 6", f"epochs = {10**30}", r"rows.mlp: .*\$.epochs"),
        ("epochs = 6", f"epochs = {'9' * 5000}", "tiny.toml: Exceeds"),
        ("noise = [0, 50]", "noise = [-5]", r"axes: Expected `float` >= 0.0 - at `\$.noise`"),
        ("splits = 2", "splits = 0", "tiny.toml: data.splits=0 is too small; give a whole number"),
        ("splits = 2", 'splits = "two"', "tiny.toml: data.splits='two' is not a whole number"),
        ("splits = 2", f"splits = {10**9}", "mlp on csbm would be 8,000,000,000 networks"),
        ("hidden_channels = 8", "hidden_channels = 1.5", "rows.gcn: hidden_channels = 1.5: Expect"),
        ("hidden_channels = [4, 8]", 'hidden_channels = ["a"]', "hidden_channels = 'a': Expected"),
        ("hidden_channels = 8", f"hidden_channels = {10**9}", "give a number from 0 to 100000"),
        ('like = "gcn"', "like = [1]", r"gcn\+mmp: Expected `str`, got `int` - at `\$.like"),
        ("on.digits.lr = 0.04", "on.digits = 4", r"rows.gcn: Expected `object`.* at `\$.on"),
        ("[groups]", "base = 'tiny.toml'\n[groups]", "tiny.toml: base: tiny.toml builds on itself"),
        ("[groups]", "base = 'none'\n[groups]", "tiny.toml: base: there is no experiment named"),
        ("[groups]", 'base = "a\\u0000.toml"\n[groups]', "tiny.toml: base: cannot read the exper"),
    ],
)
def test_a_mistake_is_named_with_its_place(old, new, words, tiny_file, monkeypatch):
    monkeypatch.chdir(tiny_file.parent)
    assert_refused(tiny_file, old, new, words)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"title = '\xff'", "odd.toml: 'utf-8' codec can't decode .* give TOML in UTF-8"),
        (b"title = " + b"[" * 5000, "odd.toml: .*recursion"),
    ],
)
def test_files_that_are_no_experiment(content, words, tmp_path):
    path = tmp_path / "odd.toml"
    path.write_bytes(content)
    with pytest.raises(memohop.DataError, match=words):
        Experiment(str(path))


def test_a_circle_of_bases_is_seen(tiny_file, tmp_path):
    other = tmp_path / "other.toml"
    text = tiny_file.read_text(encoding="utf-8")
    other.write_text(f"base = '{tiny_file}'\n{text}", encoding="utf-8")
    tiny_file.write_text(f"base = '{other}'\n{text}", encoding="utf-8")
    with pytest.raises(memohop.DataError, match=f"other.toml: base: {tiny_file} builds on itself"):
        Experiment(str(tiny_file))


KEYS = ("lr", "like", "on", "search", "rows", "every", "seeds", "base", "axes", "data", "options")
VALUES = (
    "nan", "-inf", "-1", "0", "1e300", "9223372036854775807", "true", '""', '"gcn"', '"\\u0000"',
    "[]", "[1, 1]", "[[]]", "{}", "{ a = 1 }", "2020-01-01", "07:00:00", "'tiny.toml'",
)  # fmt: skip
WORD = re.compile(r'"[^"\n]*"|[\w.+-]+|[\[\]{}=]')


@pytest.mark.fuzz
@given(data=st.data())
def test_whatever_is_in_a_file_it_is_an_experiment_or_an_error(
    data, tiny_text, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    name = data.draw(st.sampled_from(["tiny", *experiments()]))
    text = tiny_text if name == "tiny" else (EXPERIMENTS / f"{name}.toml").read_text("utf-8")
    for _ in range(data.draw(st.integers(1, 3))):
        words = list(WORD.finditer(text))
        word = data.draw(st.sampled_from(words))
        other = st.sampled_from(VALUES + KEYS) | st.sampled_from(words).map(lambda w: w[0])
        new = data.draw(other | st.text(max_size=5))
        text = text[: word.start()] + new + text[word.end() :]
    content = text.encode("utf-8", "surrogatepass")
    if data.draw(st.integers(0, 9)) == 0:
        offset = data.draw(st.integers(0, len(content) - 1))
        content = content[:offset] + data.draw(st.binary(max_size=3)) + content[offset + 1 :]
    path = tmp_path / "tiny.toml"
    path.write_bytes(content)
    try:
        for cell in islice(Experiment(str(path)).cells(), 3):
            runs = cell.runs[:20]
            assert len({(run.id, *run.setting.items()) for run in runs}) == len(runs) > 0
            assert cell.id
    except MemohopError as error:
        assert "experiment" in str(error) or ".toml: " in str(error)  # noqa: PT017


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("homophily = 0.8", "homophily = 0.1", "variants.csbm has .* twice"),
        (
            "csbm = [{",
            "cora = [{",
            "variants or left_out: there is no model or dataset named 'cora'",
        ),
        ('labels = "memory"', 'label = "memory"', "variants: there is no .*'label'; did you mean"),
        ('"gcn+mmp" = ["digits"]', 'gcn = ["digits"]', "left_out: there is no .* named 'gcn'"),
        ("structures = 2", "structures = 3", "4 settings cannot be divided among 3 structures"),
        ("settings = 1,", "settings = 3,", "settings must fall from rung to rung, down to 1"),
        ("low = 0.001", "low = 0.2", "must be above 0 .* and below high=0.1"),
        ("low = 0.001", "lowest = 0.001", "missing required field `low`|unknown field `lowest`"),
        ("lr = { low = 0.001, high = 0.1 }", "lr = [0.1]", "does not give 4 different settings"),
        ("hidden_channels = [4, 8]", "hidden_channels = ['a']", "hidden_channels = 'a'"),
        ('like = ["all", "memory"]', 'like = ["all", "gcn+mmp"]', "goes round in a circle"),
        ("space.lam", "space.lamb", "'lamb'; did you mean lam"),
    ],
)
def test_a_mistake_in_a_search_is_named_with_its_place(old, new, words, search_file):
    assert_refused(search_file, old, new, words)


def test_experiments_that_are_not_there(tmp_path):
    with pytest.raises(memohop.UsageError, match="did you mean table1"):
        Experiment("tabel1")
    with pytest.raises(memohop.UsageError, match="cannot read the experiment"):
        Experiment(str(tmp_path / "none.toml"))


@pytest.mark.parametrize("name", experiments())
def test_every_row_of_the_package_builds_its_network(name):
    experiment = Experiment(name)
    if experiment.is_search:
        experiment.datasets = ["texas"]  # a directed graph, where every option is drawn
    jobs: dict[str, Job] = {}
    for cell in experiment.cells():
        assert isinstance(cell, Cell)
        runs = cell.runs
        if cell.halving:  # one of each structure
            runs = runs[:: len(runs) // cell.halving.structures]
        for run in runs:
            key = f"{cell.model} {run.options}"
            jobs.setdefault(key, run)
    for job in jobs.values():
        build(job.model, 5, 3, num_nodes=4, **job.options)
