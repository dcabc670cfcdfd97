"""The command line, in this process where that is enough and in one of its own where not."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch

import memohop
from memohop.cli import data as data_commands
from memohop.cli import main
from memohop.cli import train as train_command

FAST = ["--epochs", "5", "--splits", "0,1", "--option", "hidden_channels=8"]
CSBM = ["train", "csbm", "--data-option", "nodes=200"]


def run(*arguments, **more):
    command = [sys.executable, "-m", "memohop", *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=300, **more)


def fails(capsys, *arguments, code=2):
    """The one line on standard error of a command that fails."""
    assert main([*arguments]) == code
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("memohop: ")
    assert err.count("\n") == 1
    return err


def rows(capsys, *arguments):
    assert main([*arguments, "--json"]) == 0
    return json.loads(capsys.readouterr().out)


class TestProcess:
    def test_module_and_script_are_the_same(self):
        script = Path(sys.executable).with_name("memohop")
        if not script.exists():
            pytest.skip("the package is not installed here, so that there is no script")
        by_script = subprocess.run(
            [script, "data", "list"], capture_output=True, text=True, timeout=300
        )
        by_module = run("data", "list")
        assert by_script.returncode == by_module.returncode == 0
        assert by_script.stdout == by_module.stdout
        assert "chameleon-filtered" in by_module.stdout

    def test_bad_usage_is_2_and_a_failure_1_without_a_traceback(self, tmp_path):
        wrong = run("train", "texass", "--model", "gcn")
        missing = run("data", "show", "texas", "--data", str(tmp_path))
        assert (wrong.returncode, missing.returncode) == (2, 1)
        for done in (wrong, missing):
            assert done.stdout == ""
            assert done.stderr.startswith("memohop: ")
            assert done.stderr.count("\n") == 1

    def test_json_alone_goes_to_standard_output(self):
        done = run(*CSBM, "--model", "gcn", *FAST, "--json")
        assert done.returncode == 0
        assert done.stderr == ""
        assert json.loads(done.stdout)[0]["model"] == "gcn"

    def test_help_and_listing_need_no_pytorch(self):
        code = (
            "import sys; from memohop.cli import main; main(['data', 'list']); main(['--help']); "
            "sys.exit('torch' in sys.modules)"
        )
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, timeout=300)
        assert done.returncode == 0


class TestHelp:
    @pytest.mark.parametrize(
        "command",
        [[], ["demo"], ["data"], ["data", "list"], ["data", "fetch"], ["data", "show"], ["train"]],
        ids=" ".join,
    )
    def test_every_command_has_an_example(self, command, capsys):
        assert main([*command, "--help"]) == 0
        out = capsys.readouterr().out
        assert "Examples:" in out
        assert f"  {' '.join(['memohop', *command])}" in out

    def test_examples_name_what_exists(self):
        from memohop.networks.registry import models

        for line in train_command._EXAMPLES.splitlines()[1:]:
            words = line.split()
            assert words[2] in (*memohop.datasets(), "prepared")  # or a folder of one's own
            assert words[words.index("--model") + 1] in models()

    def test_version(self, capsys):
        assert main(["--version"]) == 0
        assert capsys.readouterr().out.strip() == memohop.__version__


class TestData:
    def test_list_as_json(self, capsys):
        found = rows(capsys, "data", "list")
        assert [row["dataset"] for row in found] == memohop.datasets()
        assert found[0]["nodes"] == 183
        assert not any(isinstance(value, (dict, list)) for value in found[0].values())

    def test_fetch_checks_a_local_folder(self, data_root, capsys):
        assert main(["data", "fetch", "texas", "csbm", "--data", str(data_root)]) == 0
        texas, csbm = capsys.readouterr().out.splitlines()
        assert texas.startswith("texas: 12 file(s)")
        assert csbm == "csbm: made on the spot, nothing to fetch"

    def test_fetch_wants_names_that_exist(self, capsys):
        assert "all" in fails(capsys, "data", "fetch")
        assert "squirrel" in fails(capsys, "data", "fetch", "csbm", "squirel")

    def test_show(self, data_root, capsys):
        assert main(["data", "show", "texas", "--data", str(data_root)]) == 0
        out = capsys.readouterr().out
        for fact in ("183", "325 (directed", "0.108", "33, 1, 18, 101, 30", "87 nodes in each"):
            assert fact in out
        assert "Geom-GCN" in out
        assert "class 1 has a single node" in out

    def test_show_as_json_is_measured(self, capsys):
        (row,) = rows(capsys, "data", "show", "csbm")
        assert row["homophily"] == pytest.approx(0.2)
        assert (row["nodes"], row["splits"], row["directed"]) == (1000, 10, False)
        assert sum(row["class_sizes"]) == 1000
        assert len(row["train_sizes"]) == 10


class TestTrain:
    def test_one_row_for_each_setting_and_one_test_score(self, capsys):
        assert main([*CSBM, "--model", "gcn+mmp", "--lam", "0,0.1", "--lr", ".01,.05", *FAST]) == 0
        out = capsys.readouterr().out
        assert out.count("chosen") == 1
        assert out.count("±") == 2  # the score, and the line that says how to read it
        assert "ddof=1, over 2 splits" in out
        assert "options: direction=undirected, self_loops=remove, norm=row" in out
        settings = [line for line in out.splitlines() if "0.0005" in line]
        assert len(settings) == 4
        assert sum("±" in line for line in settings) == 1

    def test_json_says_how_it_was_done(self, capsys):
        (row,) = rows(
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

    def test_the_score_is_that_of_the_library(self, capsys):
        (row,) = rows(capsys, *CSBM, "--model", "gcn", *FAST, "--seeds", "2")
        members = memohop.grid(seed=(0, 1), split=(0, 1))
        data = memohop.load("csbm", nodes=200)
        chosen = memohop.select(
            memohop.train(data, "gcn", members, epochs=5, options={"hidden_channels": 8})
        )
        assert row["mean"] == pytest.approx(100 * chosen.mean, abs=1e-3)
        assert row["std"] == pytest.approx(100 * chosen.std, abs=1e-3)
        assert row["seed_ids"] == [0, 1]

    def test_all_splits_are_the_default_and_a_single_one_has_no_standard_deviation(self, capsys):
        model = ["--data-option", "splits=3", "--model", "mlp", "--epochs", "1"]
        (row,) = rows(capsys, *CSBM, *model)
        assert row["split_ids"] == [0, 1, 2]
        (row,) = rows(capsys, *CSBM, *model, "--splits", "2")
        assert (row["std"], row["split_ids"]) == (None, [2])

    def test_warnings_are_one_line_remarks(self, data_root, capsys):
        arguments = ["train", "texas", "--model", "mlp", "--epochs", "2", "--data", str(data_root)]
        assert main(arguments) == 0
        out, err = capsys.readouterr()
        assert err.startswith("memohop: no training node of class 1")
        assert err.count("\n") == 1
        assert "no training node" not in out

    def test_a_model_option_has_the_type_of_its_default(self, capsys):
        given = ["--option", "classifier_dropout=yes", "--option", "direction=both"]
        (row,) = rows(capsys, *CSBM, "--model", "gat+mmp", *FAST, *given, "--option", "heads=2")
        assert row["classifier_dropout"] is True
        assert row["direction"] == "both"
        assert row["heads"] == 2


class TestBadUsage:
    @pytest.mark.parametrize(
        ("arguments", "expected"),
        [
            (["--model", "gcn+mm"], "did you mean gcn+mmp"),
            (["--model", "gcn+mmp", "--lam", "-1"], "lam=-1.0 is out of range"),
            (["--model", "gcn+mmp", "--lam", "0;1"], "--lam 0;1: give a number"),
            (["--model", "gcn", "--lam", "0.1"], "gcn does not have"),
            (["--model", "gcn", "--lr", "0"], "lr=0 would learn nothing"),
            (["--model", "gcn", "--dropout", "1"], "dropout=1.0 would drop everything"),
            (["--model", "gcn", "--option", "directon=out"], "did you mean direction"),
            (["--model", "gcn", "--option", "direction"], "name=value"),
            (["--model", "gcn", "--option", "direction=up"], "'up'"),
            (["--model", "gcn", "--option", "hidden_channels=8.5"], "give a whole number"),
            (["--model", "gcn", "--option", "hidden_channels=8,9"], "give a whole number"),
            (["--model", "gcn", "--option", "bias=perhaps"], "give true or false"),
            (["--model", "gcn", "--option", "dropout=0.1"], "give --dropout 0.1"),
            (["--model", "gcn", "--splits", "20"], "the data has 10 split"),
            (["--model", "gcn", "--splits", "3-1"], "--splits 3-1"),
            (["--model", "gcn", "--seeds", "0"], "--seeds 0"),
            (["--model", "gcn", "--memory", "much"], "--memory much"),
            (["--model", "gcn", "--memory", "1kB"], "memory=1 KB is too little"),
            (["--model", "gcn", "--epochs", "0"], "epochs"),
            (["--model", "gcn", "--epochs", "many"], "--epochs"),
            (["--model", "gcn", "--device", "tpu"], "--device"),
            (["--model", "gcn", "--data-option", "homophily=2"], "homophily=2"),
            (["--model", "gcn", "--data-option", "colour=red"], "colour"),
            (["--model", "gcn", "--bogus"], "--bogus"),
            ([], "--model"),
        ],
        ids=lambda value: " ".join(value) if isinstance(value, list) else "",
    )
    def test_it_is_named_in_one_line(self, arguments, expected, capsys):
        assert expected in fails(capsys, "train", "csbm", *arguments)

    def test_an_unknown_dataset_or_command(self, capsys):
        assert "did you mean texas" in fails(capsys, "train", "texass", "--model", "gcn")
        assert "train" in fails(capsys, "trian")

    @pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU here")
    def test_a_gpu_that_is_not_there(self, capsys):
        assert "no GPU" in fails(capsys, *CSBM, "--model", "gcn", "--device", "cuda")


class TestEnds:
    def test_ctrl_c(self, monkeypatch, capsys):
        def interrupted():
            raise KeyboardInterrupt

        monkeypatch.setattr(data_commands, "datasets", interrupted)
        assert "interrupted" in fails(capsys, "data", "list", code=130)

    def test_a_reader_that_has_read_enough(self):
        reading, writing = os.pipe()
        os.close(reading)
        command = [sys.executable, "-m", "memohop", "data", "list"]
        done = subprocess.run(
            command, stdout=writing, stderr=subprocess.PIPE, text=True, timeout=300
        )
        os.close(writing)
        assert done.returncode == 1
        assert done.stderr == ""
