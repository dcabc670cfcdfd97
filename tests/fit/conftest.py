"""What the tests of `fit` share."""

from __future__ import annotations

import shutil
from contextlib import contextmanager

import pytest

import memohop
from memohop.fit.candidates import _network as network
from saved_models import everything, tables
from tiny_problem import QUICK


@contextmanager
def networks_of_three_epochs():
    whole = network.train
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(network, "train", lambda *args, **more: whole(*args, **more | {"epochs": 3}))
        yield


@pytest.fixture(scope="module")
def few_epochs():
    """Networks of three epochs."""
    with networks_of_three_epochs():
        yield


@pytest.fixture(scope="session")
def classifier():
    """A classifier that keeps a model of every kind."""
    with networks_of_three_epochs():
        read = memohop.read_graph(*tables(), label="kind")
        return everything(memohop.GraphClassifier(**QUICK), read)


@pytest.fixture(scope="session")
def original(classifier, tmp_path_factory):
    """The folder in which it is saved."""
    path = tmp_path_factory.mktemp("models") / "model"
    classifier.save(path)
    return path


@pytest.fixture
def model(original, tmp_path):
    """A copy of it."""
    return shutil.copytree(original, tmp_path / "model")
