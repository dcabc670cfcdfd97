"""`python -m study bench speed`: what was measured is put in by hand."""

import json

import pytest

from study.cli import main
from study.speed import Speed


def measured(data, model, *, members, device):
    """Twice as quick as stock PyG on csbm, and eight times on digits."""
    ratio = {"csbm": 2.0, "digits": 8.0}[data.name]
    return Speed(
        dataset=data.name, model=model, device=device.type, members=members,
        stock_ms=ratio * 1.5, ms=1.5, ratio=ratio, peak_mb=12.3, floor_share=0.25,
    )  # fmt: skip


def test_a_row_for_each_dataset_and_a_mean_for_each_model(capsys, monkeypatch):
    monkeypatch.setattr("study.speed.measure", measured)
    arguments = ["bench", "speed", "--datasets", "csbm,digits", "--models", "gcn,gat"]
    assert main([*arguments, "--members", "2"]) == 0
    out = capsys.readouterr().out
    rows = [line.split() for line in out.splitlines() if " gcn " in line or " gat " in line]
    for model, part in (("gcn", rows[:3]), ("gat", rows[3:])):
        assert part == [
            ["csbm", model, "3.00", "1.500", "2.0x", "12", "25%"],
            ["digits", model, "12.00", "1.500", "8.0x", "12", "25%"],
            ["geometric", "mean", model, "4.0x"],
        ]
    assert "2 member(s) on cpu" in out


def test_json_is_what_was_measured(capsys, monkeypatch):
    monkeypatch.setattr("study.speed.measure", measured)
    arguments = ["bench", "speed", "--datasets", "csbm", "--models", "gcn", "--json"]
    assert main(arguments) == 0
    (row,) = json.loads(capsys.readouterr().out)
    assert row == {
        "dataset": "csbm", "model": "gcn", "device": "cpu", "members": 10,
        "stock_ms": 3.0, "ms": 1.5, "ratio": 2.0, "peak_mb": 12.3, "floor_share": 0.25,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (
            ["--datasets", "csbm", "--models", "gnc"],
            "no stock twin of a model named 'gnc'; did you mean gcn",
        ),
        (["--datasets", "texsa"], "no dataset named 'texsa'; did you mean texas"),
        (["--datasets", "csbm", "--members", "0"], "--members 0: give at least 1"),
    ],
)
def test_bench_speed_refuses_what_makes_no_sense(arguments, words, capsys):
    assert main(["bench", "speed", *arguments]) == 2
    assert words in capsys.readouterr().err
