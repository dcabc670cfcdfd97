"""A small experiment, results of it that nobody trained, and tables and pages made of such."""

import hashlib

import numpy as np
import pytest

from made_up_results import findings as findings
from made_up_results import page as page
from made_up_results import tables as tables
from memohop.training import Result
from study.runs.runner import Attempt, run_cells, source
from study.runs.store import Store
from tiny_experiment import one_job_each as one_job_each
from tiny_experiment import tiny as tiny
from tiny_experiment import tiny_file as tiny_file
from tiny_experiment import tiny_text as tiny_text
from tiny_search import search_file as search_file
from tiny_search import tiny_search as tiny_search


def made_up(run):
    """A result that depends on the run alone, without training."""
    numbers = [byte / 255 for byte in hashlib.sha256(run.id.encode()).digest()]
    curves = np.array(numbers[:12], dtype=np.float32).reshape(2, 6)
    return Result(run.member, int(5 * numbers[0]), 6, *numbers[1:4], *curves, seconds=0.5)


@pytest.fixture(scope="session")
def quick():
    """An engine for tests of what is around the training."""

    def engine(work, jobs):
        for job in jobs:
            yield job, Attempt(tuple(made_up(run) for run in job.runs), source("cpu"))

    return engine


@pytest.fixture(scope="session")
def run(quick):
    """Runs cells without training."""

    def run(cells, store, executor=quick, **more):
        return run_cells(cells, store, executor=executor, **more)

    return run


@pytest.fixture
def store(tmp_path):
    """An empty store."""
    opened = Store(tmp_path / "runs.sqlite")
    yield opened
    opened.close()
