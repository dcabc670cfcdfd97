"""The first settings suit every kind of graph, and never come from the graph they are for."""

import msgspec
import pytest

from made_up_search import SOURCE
from memohop.fit import Setting
from memohop.fit.candidates import spaces
from memohop.fit.candidates._network import NetworkFamily
from memohop.fit.candidates.spaces import listed
from study import RESULTS
from study.cli import main
from study.runs.tuned import Drawn, Tried, Tuned, TunedCell
from study.statistics.first_settings import FirstSettings, first_settings
from tiny_problem import tiny_problem

DIRECTED = Drawn(
    ("lr", "dropout", "hidden_channels", "direction"),
    (
        (0.01, 0.1, 64, "out"),
        (0.02, 0.2, 64, "in"),
        (0.03, 0.3, 128, "out"),
        (0.04, 0.4, 128, "in"),
    ),
)
UNDIRECTED = Drawn(DIRECTED.names[:3], tuple(row[:3] for row in DIRECTED.rows))


def cell(dataset, vals, model="gcn+mmp", **axes):
    space = "d" if dataset in ("texas", "actor", "squirrel") else "u"
    first = Tried(tuple(range(4)), tuple(vals), 4, 4, 1.0)
    last = Tried((vals.index(max(vals)),), (max(vals),), 1, 1, 1.0)
    scores = ((max(vals),) * 2,)
    return TunedCell(dataset, model, axes, space, (first, last), scores, scores, 0)


def results(*cells):
    return Tuned("fair", "fair", (SOURCE,), {"d": DIRECTED, "u": UNDIRECTED}, cells)


def numbers(settings):
    return [setting.numbers["lr"] for setting in settings]


# Setting 1 is second everywhere, 0 and 3 are each the best of two graphs, and 2 is never good.
CELLS = (
    cell("texas", (0.9, 0.8, 0.1, 0.1)),
    cell("actor", (0.9, 0.8, 0.1, 0.1)),
    cell("cora", (0.1, 0.8, 0.1, 0.9)),
    cell("pubmed", (0.1, 0.8, 0.1, 0.9)),
)


def test_together_they_suit_every_graph():
    learned = first_settings(results(*CELLS), ["gcn+mmp", "mlp"], count=3).every
    assert {setting.family for setting in learned} == {"gcn+mmp"}
    # The first one suits all of them, the others are the best of two each; then nothing is left.
    assert numbers(learned) == [0.02, 0.01, 0.04]


def test_numbers_and_options_are_told_apart_and_the_direction_is_kept():
    (first, *_) = first_settings(results(*CELLS), ["gcn+mmp"]).every
    assert first.numbers == {"lr": 0.02, "dropout": 0.2, "lam": 0.0}
    assert first.options == {"hidden_channels": 64, "direction": "in"}


def test_a_graph_is_not_judged_by_what_it_taught():
    learned = first_settings(results(*CELLS), ["gcn+mmp"])
    assert set(learned.without) == {"texas", "actor", "cora", "pubmed"}
    changed = (cell("texas", (0.1, 0.1, 0.99, 0.1)), *CELLS[1:])
    other = first_settings(results(*changed), ["gcn+mmp"])
    assert other.without["texas"] == learned.without["texas"]
    assert other.without["cora"] != learned.without["cora"]


def test_data_with_a_flaw_teach_nothing():
    more = (*CELLS, cell("squirrel", (0.1, 0.1, 0.99, 0.1)))
    sound, flawed = (first_settings(results(*cells), ["gcn+mmp"]) for cells in (CELLS, more))
    assert sound == flawed


def test_the_variants_of_a_model_are_options_of_it():
    with_labels = cell("minesweeper", (0.1, 0.2, 0.99, 0.3), labels="memory")
    plain = cell("minesweeper", (0.1, 0.2, 0.15, 0.3))
    learned = first_settings(results(*CELLS, plain, with_labels), ["gcn+mmp"]).every
    (setting,) = [setting for setting in learned if "labels" in setting.options]
    assert setting.options == {"hidden_channels": 128, "labels": "memory"}
    assert setting.numbers["lr"] == 0.03


def test_a_setting_that_diverged_somewhere_counts_there_as_the_worst():
    cells = (cell("texas", (-1.0, 0.8, 0.7, 0.1)), cell("cora", (0.8, 0.7, 0.1, 0.1)))
    assert numbers(first_settings(results(*cells), ["gcn+mmp"], count=1).every) == [0.02]


@pytest.fixture
def written(tmp_path, capsys):
    """The files that the command makes: for the study, and for fit."""
    results(*CELLS).save(tmp_path / "fair.json")
    files = tmp_path / "all.json", tmp_path / "fit.json"
    words = ["bench", "first-settings", "--results", str(tmp_path / "fair.json")]
    words += ["--output", str(files[0]), "--of-fit", str(files[1])]
    assert main(words) == 0
    assert main([*words, "--count", "0"]) == 2
    return files


def test_the_command_writes_what_fit_begins_with(written, monkeypatch):
    read = msgspec.json.decode(written[0].read_bytes(), type=FirstSettings)
    assert read == first_settings(results(*CELLS), listed().networks)
    taught = msgspec.json.decode(written[1].read_bytes(), type=list[Setting])
    assert taught == read.every
    monkeypatch.setattr(spaces, "taught", lambda: taught)
    first, openers = (
        NetworkFamily("gcn+mmp").first(tiny_problem()),
        listed().networks["gcn+mmp"].openers,
    )
    assert all(setting.options["direction"] == "undirected" for setting in first)
    assert first[openers].numbers == {"lr": 0.02, "dropout": 0.2, "lam": 0.0}
    options = {"hidden_channels": 64, "direction": "undirected", "extras": "none"}
    assert first[openers].options == options
    monkeypatch.setattr(spaces, "taught", list)
    own = NetworkFamily("gcn+mmp").first(tiny_problem())
    assert first[:openers] + first[openers + len(taught) :] == own


def test_those_that_are_committed_are_those_that_the_table_teaches():
    learned = first_settings(Tuned.load("fair"), listed().networks)
    path = RESULTS / "first-settings.json"
    assert msgspec.json.decode(path.read_bytes(), type=FirstSettings) == learned
    assert learned.every == spaces.taught()
    assert all(of_others != learned.every for of_others in learned.without.values())
