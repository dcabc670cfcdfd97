"""A small search by successive halving, for the tests of ladders, exports and commands."""

import pytest

from study.runs.experiment import Experiment

SEARCH = """
title = "A tiny search"
expected = "nothing"
time = "a second"
datasets = ["csbm", "digits"]
models = ["mlp", "gcn+mmp"]

[variants]
csbm = [{ homophily = 0.1 }, { homophily = 0.8 }]
"gcn+mmp" = [{}, { labels = "memory" }]

[left_out]
"gcn+mmp" = ["digits"]

[protocols.fair.halving]
structures = 2
rungs = [
    { settings = 4, splits = 2, epochs = 0.5 },
    { settings = 2, splits = 3, epochs = 0.5 },
    { settings = 1, splits = 3, seeds = 2 },
]

[protocols.fair.rows.all]
epochs = 6
on.csbm.data = { nodes = 60, splits = 3, channels = 8 }
on.digits.data = { splits = 3 }
[protocols.fair.rows.all.space]
lr = { low = 0.001, high = 0.1 }
hidden_channels = [4, 8]

[protocols.fair.rows.memory]
space.lam = [0.0, 0.2]

[protocols.fair.rows.mlp]
like = "all"

[protocols.fair.rows."gcn+mmp"]
like = ["all", "memory"]
space.direction = ["undirected", "out"]
space.hidden_channels = [8, 16]
"""


@pytest.fixture
def search_file(tmp_path):
    path = tmp_path / "search.toml"
    path.write_text(SEARCH, encoding="utf-8")
    return path


@pytest.fixture
def tiny_search(search_file):
    return Experiment(str(search_file))
