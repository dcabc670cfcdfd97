"""The options of `memohop train` for several workers."""

import json
import sys

import numpy as np
import pytest

from memohop.cli import main
from memohop.training import MemberResult

ARGUMENTS = ["train", "csbm", "--model", "gcn", "--epochs", "3", "--splits", "0-1"]


@pytest.mark.parametrize(
    ("more", "text"),
    [
        (["--workers", "0"], "--workers"),
        (["--ray", "auto"], "--ray auto goes with --workers"),
        (["--checkpoints", "there"], "--checkpoints there goes with --workers"),
        (["--workers", "2", "--cut", "random"], "--cut"),
    ],
)
def test_what_cannot_be_right_is_refused(more, text, capsys):
    assert main([*ARGUMENTS, *more]) == 2
    assert text in capsys.readouterr().err


@pytest.fixture
def asked(monkeypatch):
    """What the command asks of the library, where Ray has something to say."""
    found = {}

    def train(data, model, members, *, epochs, **arguments):
        found.update(arguments)
        sys.stdout.write("(raylet) A worker died or was killed\n")
        curve = np.zeros(epochs, dtype=np.float32)
        return [MemberResult(member, 0, epochs, 1.0, 0.5, 0.5, curve, curve) for member in members]

    monkeypatch.setattr("memohop.jobs.execute.train", train)
    return found


def test_options_reach_the_library(asked, tmp_path, capsys):
    more = ["--workers", "3", "--ray", "auto", "--cut", "metis", "--checkpoints", str(tmp_path)]
    assert main([*ARGUMENTS, *more, "--json"]) == 0
    assert {name: asked[name] for name in ("workers", "ray", "cut", "checkpoints")} == {
        "workers": 3,
        "ray": "auto",
        "cut": "metis",
        "checkpoints": tmp_path,
    }
    assert '"workers": 3' in capsys.readouterr().out


def test_what_ray_has_to_say_is_not_in_the_results(asked, capsys):
    assert main([*ARGUMENTS, "--workers", "2", "--json"]) == 0
    out, err = capsys.readouterr()
    assert json.loads(out)[0]["model"] == "gcn"
    assert "(raylet) A worker died" in err


def test_one_process_is_the_default(asked, capsys):
    assert main([*ARGUMENTS, "--json"]) == 0
    assert asked["workers"] is None
    assert "workers" not in capsys.readouterr().out


def test_of_the_processes_of_torchrun_the_first_one_prints(asked, capsys, monkeypatch):
    monkeypatch.setenv("RANK", "1")
    monkeypatch.setenv("WORLD_SIZE", "2")
    assert main([*ARGUMENTS, "--json"]) == 0
    assert capsys.readouterr().out == ""
    monkeypatch.setenv("RANK", "0")
    assert main([*ARGUMENTS, "--json"]) == 0
    assert '"mean": 50.0' in capsys.readouterr().out
