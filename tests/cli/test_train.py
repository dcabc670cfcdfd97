"""`memohop train`: what it prints, its errors, and what it asks of the library."""

import contextlib
import io
import json
import sys

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import memohop
from commands import fails, json_of, run
from memohop.cli import _app, main
from memohop.cli import _train as command
from memohop.training import Result

FAST = ["--epochs", "5", "--splits", "0,1", "--option", "hidden_channels=8"]
CSBM = ["train", "csbm", "--data-option", "nodes=200"]
ARGUMENTS = [*CSBM, "--model", "gcn", *FAST]
TINY = ("train", "csbm", "--model", "mlp", "--data-option", "nodes=20", "--data-option", "splits=2")


def test_one_row_for_each_setting_and_one_test_score(capsys):
    out = run(capsys, *CSBM, "--model", "gcn+mmp", "--lam", "0,0.1", "--lr", ".01,.05", *FAST).out
    assert out.count("chosen") == 1
    assert out.count("±") == 2  # the score, and the line that says how to read it
    assert "ddof=1, over 2 splits" in out
    assert "options: direction=undirected, self_loops=remove, norm=row" in out
    settings = [line for line in out.splitlines() if "0.0005" in line]
    assert len(settings) == 4
    assert sum("±" in line for line in settings) == 1


def test_json_says_how_it_was_done(capsys):
    (row,) = json_of(
        capsys, *CSBM, "--model", "gcn+mmp", "--lam", "0.1,0.2", *FAST, "--dropout", "0.3"
    )
    assert row["dataset"] == "csbm"
    assert row["metric"] == "accuracy"
    assert row["unit"] == "percent"
    assert row["lam"] in (0.1, 0.2)
    assert (row["dropout"], row["input_dropout"]) == (0.3, 0.5)
    assert (row["splits"], row["split_ids"], row["seeds"]) == (2, [0, 1], 1)
    assert (row["hidden_channels"], row["direction"]) == (8, "undirected")
    assert (row["epochs"], row["ddof"], row["data_nodes"]) == (5, 1, 200)
    assert row["version"] == memohop.__version__
    assert 0 <= row["val"] <= 100
    assert 0 <= row["mean"] <= 100


def test_the_score_is_that_of_the_library(capsys):
    (row,) = json_of(capsys, *CSBM, "--model", "gcn", *FAST, "--seeds", "2")
    members = memohop.grid(seed=(0, 1), split=(0, 1))
    data = memohop.load("csbm", nodes=200)
    chosen = memohop.select(
        memohop.train(data, "gcn", members, epochs=5, options={"hidden_channels": 8})
    )
    assert row["mean"] == pytest.approx(100 * chosen.mean, abs=1e-3)
    assert row["std"] == pytest.approx(100 * chosen.std, abs=1e-3)
    assert row["seed_ids"] == [0, 1]


def test_all_splits_are_the_default_and_a_single_one_has_no_standard_deviation(capsys):
    model = ["--data-option", "splits=3", "--model", "mlp", "--epochs", "1"]
    (row,) = json_of(capsys, *CSBM, *model)
    assert row["split_ids"] == [0, 1, 2]
    (row,) = json_of(capsys, *CSBM, *model, "--splits", "2")
    assert (row["std"], row["split_ids"]) == (None, [2])


def test_warnings_are_one_line_remarks(data_root, capsys):
    arguments = ["train", "texas", "--model", "mlp", "--epochs", "2", "--data", str(data_root)]
    out, err = run(capsys, *arguments)
    assert err.startswith("memohop: no training node of class 1")
    assert err.count("\n") == 1
    assert "no training node" not in out


def test_a_model_option_has_the_type_of_its_default(capsys):
    given = ["--option", "classifier_dropout=yes", "--option", "direction=both"]
    (row,) = json_of(capsys, *CSBM, "--model", "gat+mmp", *FAST, *given, "--option", "heads=2")
    assert row["classifier_dropout"] is True
    assert row["direction"] == "both"
    assert row["heads"] == 2


def test_labels_and_addresses_are_options(capsys):
    words = ["--option", "labels=memory", "--option", "label_rate=0.3", "--option", "address=rows"]
    model = [*CSBM, "--model", "gcn+mmp", *FAST]
    (row,) = json_of(capsys, *model, *words)
    assert (row["labels"], row["label_rate"], row["address"]) == ("memory", 0.3, "rows")
    told = fails(capsys, *model, "--option", "label_rate=1")
    assert "label_rate must be above 0 and below 1, not 1" in told


def test_fewer_bytes(capsys):
    words = ["--states", "bfloat16", "--recompute"]
    (row,) = json_of(capsys, *CSBM, "--model", "gcn+mmp", *FAST, *words)
    assert row["states"] == "bfloat16"
    told = fails(capsys, *CSBM, "--model", "mlp", "--recompute")
    assert "recompute=True is for networks with memory" in told


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("--model", "gcn+mm"), "did you mean gcn+mmp"),
        (("--model", "gcn+mmp", "--lam", "-1"), "lam=-1.0 is out of range"),
        (("--model", "gcn+mmp", "--lam", "0;1"), "--lam 0;1: give a number"),
        (("--lam", "0.1"), "gcn does not have"),
        (("--option", "directon=out"), "did you mean direction"),
        (("--option", "direction"), "name=value"),
        (("--option", "direction=up"), "'up'"),
        (("--option", "hidden_channels=8.5"), "give a whole number"),
        (("--option", "hidden_channels=8,9"), "give a whole number"),
        (("--option", "bias=perhaps"), "give true or false"),
        (("--option", "dropout=0.1"), "give --dropout 0.1"),
        (("--splits", "20"), "the data has 10 split"),
        (("--splits", "3-1"), "--splits 3-1"),
        (("--seeds", "0"), "--seeds 0"),
        (("--memory", "much"), "--memory much"),
        (("--device", "tpu"), "--device"),
        (("--data-option", "homophily=2"), "homophily=2"),
        (("--data-option", "colour=red"), "colour"),
        (("--bogus",), "--bogus"),
        (("--epochs", "1.5"), "--epochs"),
        (("--epochs", "-1"), "--epochs=-1 is too small"),
        (("--epochs", "9" * 15), "--epochs=999999999999999 is too large"),
        (("--patience", "0"), "--patience=0 is too small"),
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
        (("--memory", "1MB"), "memory=1 MB is too little"),
        (("--memory", "9" * 400 + "GB"), "--memory 9"),
        (("--workers", "0"), "--workers=0 is too small"),
        (("--ray", "auto"), "ray=auto goes with workers"),
        (("--checkpoints", "there"), "checkpoints=there goes with workers"),
        (("--workers", "2", "--cut", "random"), "--cut"),
    ],
    ids=lambda value: " ".join(value)[:60] if isinstance(value, tuple) else "",
)
def test_bad_usage_is_named_in_one_line(words, told, capsys):
    model = () if "--model" in words else ("--model", "gcn")
    epochs = () if "--epochs" in words else ("--epochs", "1")
    assert told in fails(capsys, *CSBM, *model, *epochs, *words)


def test_an_unknown_dataset_or_command_and_no_model(capsys):
    assert "did you mean texas" in fails(capsys, "train", "texass", "--model", "gcn")
    assert "--model" in fails(capsys, *CSBM)
    assert "train" in fails(capsys, "trian")


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU here")
def test_a_gpu_that_is_not_there(capsys):
    assert "no GPU" in fails(capsys, *CSBM, "--model", "gcn", "--device", "cuda")


@pytest.mark.parametrize(
    ("text", "expected"),
    [("4GB", 4 * 10**9), ("1.5 GiB", 3 * 2**29), ("500mb", 5 * 10**8), ("1000", 1000)],
)
def test_byte_counts(text, expected):
    assert _app.byte_count(text) == expected


@pytest.mark.parametrize(
    ("flag", "text", "expected"),
    [
        ("splits", "0-2", [0, 1, 2]),
        ("splits", "0,3", [0, 3]),
        ("splits", "5,1-2,1", [5, 1, 2]),
        ("seeds", "3", [0, 1, 2]),
        ("seeds", "3,7", [3, 7]),
        ("seeds", "5-5", [5]),
    ],
)
def test_lists_of_splits_and_seeds(flag, text, expected):
    assert command._id_list(flag, text, count_alone=flag == "seeds") == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [("0.1", 0.1), ("7", 7), ("true", True), ("random", "random"), ("0.6,0.2", (0.6, 0.2))],
)
def test_data_options_are_what_they_look_like(text, expected):
    value = command._value_of("any", text)
    assert value == expected
    assert type(value) is type(expected)


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
    received = {}

    def train(job, **arguments):
        received.update(arguments)
        sys.stdout.write("(raylet) A worker died or was killed\n")
        epochs, curve = job.epochs, np.zeros(job.epochs, dtype=np.float32)
        return [Result(member, 0, epochs, 1.0, 0.5, 0.5, curve, curve) for member in job.members]

    monkeypatch.setattr("memohop.jobs.named.train_job", train)
    return received


def test_options_reach_the_library(asked, tmp_path, capsys):
    more = ["--workers", "3", "--ray", "auto", "--cut", "metis", "--checkpoints", str(tmp_path)]
    (row,) = json_of(capsys, *ARGUMENTS, *more)
    assert row["workers"] == 3
    given = [asked[name] for name in ("workers", "ray", "cut", "checkpoints")]
    assert given == [3, "auto", "metis", tmp_path]


def test_what_ray_has_to_say_is_not_in_the_results(asked, capsys):
    out, err = run(capsys, *ARGUMENTS, "--workers", "2", "--json")
    assert json.loads(out)[0]["model"] == "gcn"
    assert "(raylet) A worker died" in err


def test_one_process_is_the_default(asked, capsys):
    (row,) = json_of(capsys, *ARGUMENTS)
    assert asked["workers"] is None
    assert "workers" not in row


def test_of_the_processes_of_torchrun_the_first_one_prints(asked, capsys, monkeypatch):
    monkeypatch.setenv("RANK", "1")
    monkeypatch.setenv("WORLD_SIZE", "2")
    assert run(capsys, *ARGUMENTS, "--json").out == ""
    monkeypatch.setenv("RANK", "0")
    assert json_of(capsys, *ARGUMENTS)[0]["mean"] == 50
