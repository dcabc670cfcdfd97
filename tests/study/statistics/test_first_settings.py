"""The first settings suit every kind of graph, and never come from the graph they are for."""

import msgspec
import numpy as np
import pytest

from made_up_search import SOURCE
from memohop.fit.candidates import spaces
from memohop.fit.candidates._network import NetworkFamily
from memohop.fit.candidates.spaces import NUMBERS, SPACES, FirstSettings
from memohop.jobs.space import near_numbers, near_options
from memohop.networks import build
from memohop.training import Member
from study.cli import main
from study.runs.tuned import Drawn, Tried, Tuned, TunedCell
from study.statistics.first_settings import first_settings

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


def numbers(found):
    return [one.numbers["lr"] for one in found]


# Setting 1 is second everywhere, 0 and 3 are each the best of two graphs, and 2 is never good.
CELLS = (
    cell("texas", (0.9, 0.8, 0.1, 0.1)),
    cell("actor", (0.9, 0.8, 0.1, 0.1)),
    cell("cora", (0.1, 0.8, 0.1, 0.9)),
    cell("pubmed", (0.1, 0.8, 0.1, 0.9)),
)


def test_together_they_suit_every_graph():
    found = first_settings(results(*CELLS), ["gcn+mmp", "mlp"], count=3).every
    assert list(found) == ["gcn+mmp"]
    # The first one suits all of them, the others are the best of two each; then nothing is left.
    assert numbers(found["gcn+mmp"]) == [0.02, 0.01, 0.04]


def test_numbers_and_options_are_told_apart_and_the_direction_is_kept():
    (first, *_) = first_settings(results(*CELLS), ["gcn+mmp"]).every["gcn+mmp"]
    assert first.numbers == {"lr": 0.02, "dropout": 0.2, "lam": 0.0}
    assert first.options == {"hidden_channels": 64, "direction": "in"}


def test_a_graph_is_not_judged_by_what_it_taught():
    found = first_settings(results(*CELLS), ["gcn+mmp"])
    assert set(found.without) == {"texas", "actor", "cora", "pubmed"}
    changed = (cell("texas", (0.1, 0.1, 0.99, 0.1)), *CELLS[1:])
    other = first_settings(results(*changed), ["gcn+mmp"])
    assert other.without["texas"] == found.without["texas"]
    assert other.without["cora"] != found.without["cora"]


def test_data_with_a_flaw_teach_nothing():
    more = (*CELLS, cell("squirrel", (0.1, 0.1, 0.99, 0.1)))
    one, other = (first_settings(results(*cells), ["gcn+mmp"]) for cells in (CELLS, more))
    assert one == other


def test_the_variants_of_a_model_are_options_of_it():
    with_labels = cell("minesweeper", (0.1, 0.2, 0.99, 0.3), labels="memory")
    plain = cell("minesweeper", (0.1, 0.2, 0.15, 0.3))
    found = first_settings(results(*CELLS, plain, with_labels), ["gcn+mmp"]).every["gcn+mmp"]
    (one,) = [one for one in found if "labels" in one.options]
    assert one.options == {"hidden_channels": 128, "labels": "memory"}
    assert one.numbers["lr"] == 0.03


def test_a_setting_that_diverged_somewhere_counts_there_as_the_worst():
    cells = (cell("texas", (-1.0, 0.8, 0.7, 0.1)), cell("cora", (0.8, 0.7, 0.1, 0.1)))
    assert numbers(first_settings(results(*cells), ["gcn+mmp"], count=1).every["gcn+mmp"]) == [0.02]


def test_the_command_writes_what_fit_reads(tmp_path, capsys, monkeypatch):
    results(*CELLS).save(tmp_path / "fair.json")
    output = tmp_path / "first.json"
    words = ["bench", "first-settings", "--results", str(tmp_path / "fair.json"), "-o", str(output)]
    assert main(words) == 0
    read = msgspec.json.decode(output.read_bytes(), type=FirstSettings)
    assert read == first_settings(results(*CELLS), SPACES)
    monkeypatch.setattr(spaces, "packaged", lambda: read)
    family = NetworkFamily("gcn+mmp")
    problem = type(
        "P", (), {"neighbourhood": type("N", (), {"directed": False}), "has_columns": True}
    )
    first, own = family.first(problem), SPACES["gcn+mmp"].own
    openers = SPACES["gcn+mmp"].openers
    same = [
        one for i, one in enumerate(own) if one.undirected not in [o.undirected for o in own[:i]]
    ]
    assert [one.options for one in first[:openers]] == [
        one.undirected.options for one in same[:openers]
    ]
    assert first[openers].numbers == {"lr": 0.02, "dropout": 0.2, "lam": 0.0}
    assert first[openers].options == {"hidden_channels": 64, "direction": "undirected"}
    assert len(first) == len(same) + len(read.every["gcn+mmp"])
    assert main([*words, "--count", "0"]) == 2


def test_those_of_the_package_are_those_that_its_table_teaches():
    assert spaces.packaged() == first_settings(Tuned.load("fair"), SPACES)


@pytest.mark.parametrize("model", spaces.packaged().every)
def test_a_dataset_is_judged_by_what_the_others_have_taught(model):
    found = spaces.packaged()
    judged = {}
    for dataset, of_others in found.without.items():
        with spaces.unseen(dataset):
            judged[dataset] = [one.numbers for one in found.of(model)]
        assert judged[dataset] == [one.numbers for one in of_others[model]]
    seen = [one.numbers for one in found.of(model)]
    assert any(numbers != seen for numbers in judged.values())


@pytest.mark.parametrize("directed", [True, False])
@pytest.mark.parametrize("model", SPACES)
def test_those_of_the_package_make_networks_and_can_be_varied(model, directed):
    generator = np.random.default_rng(0)
    for first in spaces.packaged().of(model):
        options = first.options if directed else first.undirected.options
        changed = near_options(SPACES[model].choices, options, generator)
        for one in (options, changed):
            assert build(model, 3, 2, num_nodes=5, **one) is not None
        Member(**near_numbers(NUMBERS, first.numbers, generator))
