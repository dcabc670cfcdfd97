"""A small experiment on graphs made on the spot, and results of it that nobody trained."""

import hashlib

import numpy as np
import pytest

from memohop.bench.execute import Outcome
from memohop.bench.experiment import Experiment
from memohop.bench.provenance import source
from memohop.bench.runner import Attempt, Place, run_cells
from memohop.training import MemberResult

TINY = """
title = "A tiny experiment"
expected = "nothing"
time = "a second"
datasets = ["csbm"]
models = ["mlp", "gcn", "gcn+mmp"]
seeds = [0, 1]

[groups]
made = ["csbm", "digits"]

[axes]
noise = [0, 50]

[protocols.paper.every]
data = { nodes = 60, splits = 2, channels = 8 }
epochs = 6

[protocols.paper.rows.mlp]
search.hidden_channels = [4, 8]

[protocols.paper.rows.gcn]
lr = 0.02
options.hidden_channels = 8
on.made.lr = 0.03
on.csbm.weight_decay = 0
on.digits.lr = 0.04

[protocols.paper.rows."gcn+mmp"]
like = "gcn"
search.lam = [0, 0.5]
search.num_layers = [1, 2]

[protocols.official]
like = "paper"
seeds = [0]

[protocols.official.rows.gcn]
lr = 0.05
on.made.lr = 0.05
rules.keep = "latest"
"""


@pytest.fixture(scope="session")
def tiny_text():
    return TINY


@pytest.fixture
def tiny_file(tmp_path):
    path = tmp_path / "tiny.toml"
    path.write_text(TINY, encoding="utf-8")
    return path


@pytest.fixture
def tiny(tiny_file):
    return Experiment(str(tiny_file))


def made_up(run):
    """An outcome that depends on the run alone, without training."""
    numbers = [byte / 255 for byte in hashlib.sha256(run.id.encode()).digest()]
    curves = np.array(numbers[:12], dtype=np.float32).reshape(2, 6)
    result = MemberResult(run.member, int(5 * numbers[0]), 6, *numbers[1:4], *curves)
    return Outcome(run, result, seconds=0.5)


@pytest.fixture(scope="session")
def quick():
    """An engine for tests of what is around the training."""

    def engine(jobs, place, inner):
        for job in jobs:
            inner(job, 0.5)
            yield job, Attempt(tuple(made_up(run) for run in job.runs), source("cpu"))

    return engine


@pytest.fixture(scope="session")
def run(quick):
    """Runs cells without training."""

    def run(cells, store, engine=quick, **more):
        return run_cells(cells, store, place=Place(), engine=engine, **more)

    return run
