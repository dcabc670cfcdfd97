"""`memohop train` with odd values and with workers: an error that names them, or a result."""

import contextlib
import io
import json
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from memohop.cli import main
from memohop.training import Result

ARGUMENTS = ["train", "csbm", "--model", "gcn", "--epochs", "3", "--splits", "0-1"]
TINY = ("train", "csbm", "--model", "mlp", "--data-option", "nodes=20", "--data-option", "splits=2")


def test_labels_and_addresses_are_options(capsys):
    words = ["--option", "labels=memory", "--option", "label_rate=0.3", "--option", "address=rows"]
    model = ["--model", "gcn+mmp", "--data-option", "nodes=40", "--data-option", "splits=2"]
    assert main(["train", "csbm", *model, "--epochs", "2", *words, "--json"]) == 0
    (row,) = json.loads(capsys.readouterr().out)
    assert (row["labels"], row["label_rate"], row["address"]) == ("memory", 0.3, "rows")
    assert main(["train", "csbm", *model, "--option", "label_rate=1"]) == 2
    assert "label_rate must be above 0 and below 1, not 1" in capsys.readouterr().err


def test_fewer_bytes(capsys):
    model = ["--model", "gcn+mmp", "--data-option", "nodes=40", "--data-option", "splits=2"]
    words = ["--states", "bfloat16", "--recompute"]
    assert main(["train", "csbm", *model, "--epochs", "2", *words, "--json"]) == 0
    (row,) = json.loads(capsys.readouterr().out)
    assert row["states"] == "bfloat16"
    assert main([*TINY, "--recompute"]) == 2
    assert "recompute=True is for networks with memory" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("--epochs", "1.5"), "--epochs"),
        (("--epochs", "-1"), "--epochs=-1 is too small"),
        (("--epochs", "9" * 15), "--epochs=999999999999999 is too large"),
        (("--patience", "0"), "--patience=0 is too small"),
        (("--seeds", "4294967296-4294967296"), "seed=4294967296 is too large"),
        (("--seeds", "9" * 30), "--seeds 9"),
        (("--seeds", "1000000000"), "that is 1000000000 numbers; give 100000 at most"),
        (("--splits", "0-999999999999"), "--splits 0-999999999999"),
        (("--lr", "nan"), "--lr nan: give a number"),
        (("--lr", "1e400"), "--lr 1e400: give a number"),
        (
            ("--data-option", "features=0"),
            "--data-option features=0: give --features raw, row or scaled",
        ),
        (("--data-option", "root=x"), "data cannot hold root"),
        (("--data-option", "seed=-1"), "seed=-1 is too small"),
        (("--memory", "1MB"), "memory=1 MB is too little"),
        (("--memory", "9" * 400 + "GB"), "--memory 9"),
        (("--workers", "0"), "--workers=0 is too small"),
        (("--ray", "auto"), "--ray auto goes with --workers"),
        (("--checkpoints", "there"), "--checkpoints there goes with --workers"),
        (("--workers", "2", "--cut", "random"), "--cut"),
    ],
)
def test_odd_values_are_refused_by_name(words, told, capsys):
    epochs = () if "--epochs" in words else ("--epochs", "1")
    assert main([*TINY, *epochs, *words]) == 2
    assert told in capsys.readouterr().err


FLAGS = ("lam", "splits", "seeds", "lr", "weight-decay", "dropout", "input-dropout", "patience")
OTHERS = ("option", "data-option", "features", "memory", "device", "protocol", "data")
NUMBERS = st.one_of(
    st.integers(-(2**70), 2**70).map(str),
    st.floats().map(str),
    st.lists(st.integers(-2, 12).map(str), max_size=3).map(",".join),
    st.from_regex(r"[0-9]{1,3}-[0-9]{1,3}", fullmatch=True),
)
NAMES = ("features", "seed", "fractions", "degree", "homophily", "split", "hidden_channels", "x")
VALUES = st.one_of(
    NUMBERS, st.text(max_size=8), st.builds("{}={}".format, st.sampled_from(NAMES), NUMBERS)
)


@pytest.mark.fuzz
@given(st.lists(st.tuples(st.sampled_from(FLAGS + OTHERS), VALUES), min_size=1, max_size=3))
def test_nothing_but_errors_for_people_comes_out(pairs):
    words = [word for flag, value in pairs for word in (f"--{flag}", value)]
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = main([*TINY, "--epochs", "1", *words])
    assert code in (0, 1, 2)
    assert err.getvalue() or code == 0


@pytest.fixture
def asked(monkeypatch):
    """What the command asks of the library, where Ray has something to say."""
    found = {}

    def train(data, model, members, *, epochs, **arguments):
        found.update(arguments)
        sys.stdout.write("(raylet) A worker died or was killed\n")
        curve = np.zeros(epochs, dtype=np.float32)
        return [Result(member, 0, epochs, 1.0, 0.5, 0.5, curve, curve) for member in members]

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
