"""A small experiment on synthetic graphs, for the tests of stores, engines and commands."""

from contextlib import closing

import pytest

from study.runs.experiment import Experiment
from study.runs.runner import Attempt
from study.runs.store import Store

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


@pytest.fixture
def one_job_each(tiny_file):
    """The experiment without structures to choose from: each cell is one population."""
    text = tiny_file.read_text(encoding="utf-8")
    text = text.replace("search.hidden_channels = [4, 8]\n", "")
    tiny_file.write_text(text.replace("search.num_layers = [1, 2]\n", ""), encoding="utf-8")
    return Experiment(str(tiny_file))


def noted(engine, trained):
    """The engine, and the ids of the runs of each of its populations."""

    def noting(work, jobs):
        for batch, attempt in engine(work, jobs):
            trained.append({run.id for run in batch.runs})
            yield batch, attempt

    return noting


def altered(engine, change):
    """The engine with results that are changed: ``change(job, result)``."""

    def changing(work, jobs):
        for batch, attempt in engine(work, jobs):
            results = map(change, batch.runs, attempt.results)
            yield batch, Attempt(tuple(results), attempt.source)

    return changing


def failing(failure="Traceback ...\nValueError: no luck"):
    """An engine that trains nothing."""
    return lambda work, jobs: ((batch, Attempt(failure=failure)) for batch in jobs)


def content_of(store):
    """Everything in a store that does not depend on time or machine."""
    tables = {
        "runs": "SELECT id, content, train, val, test, best_epoch, epochs, curves FROM runs",
        "cells": "SELECT id, protocol, dataset, model, axes, content, failure FROM cells",
        "members": "SELECT cell, place, run, setting FROM members",
        "claims": "SELECT cell FROM claims",
    }
    return {name: sorted(store.db.execute(query)) for name, query in tables.items()}


def content_at(path):
    """The same of the store in a file."""
    with closing(Store(path, read_only=True)) as store:
        return content_of(store)
