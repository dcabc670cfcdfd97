"""The command line, in this process where that is enough and in one of its own where not."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import memohop
from commands import fails, json_of
from memohop.cli import _data as data_commands
from memohop.cli import _train as train_command
from memohop.cli import main


def run(*arguments, program=(sys.executable, "-m", "memohop"), stdout=subprocess.PIPE):
    return subprocess.run(
        [*program, *arguments], stdout=stdout, stderr=subprocess.PIPE, text=True, timeout=300
    )


class TestProcess:
    def test_module_and_script_are_the_same(self):
        script = Path(sys.executable).with_name("memohop")
        if not script.exists():
            pytest.skip("the package is not installed here, so that there is no script")
        by_script, by_module = run("data", "list", program=[script]), run("data", "list")
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
        done = run("train", "csbm", "--model", "gcn", "--epochs", "2", "--splits", "0,1", "--json")
        assert done.returncode == 0
        assert done.stderr == ""
        assert json.loads(done.stdout)[0]["model"] == "gcn"

    def test_help_and_listing_need_no_pytorch(self):
        code = (
            "import sys; from memohop.cli import main; main(['data', 'list']); main(['--help']); "
            "sys.exit('torch' in sys.modules)"
        )
        assert run(code, program=[sys.executable, "-c"]).returncode == 0


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
        listed = json_of(capsys, "data", "list")
        assert [row["dataset"] for row in listed] == memohop.datasets()
        assert listed[0]["nodes"] == 183
        assert not any(isinstance(value, (dict, list)) for value in listed[0].values())

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
        (row,) = json_of(capsys, "data", "show", "csbm")
        assert row["homophily"] == pytest.approx(0.2)
        assert (row["nodes"], row["splits"], row["directed"]) == (1000, 10, False)
        assert sum(row["class_sizes"]) == 1000
        assert len(row["train_sizes"]) == 10


class TestEnds:
    def test_ctrl_c(self, monkeypatch, capsys):
        def interrupted():
            raise KeyboardInterrupt

        monkeypatch.setattr(data_commands, "datasets", interrupted)
        assert "interrupted" in fails(capsys, "data", "list", code=130)

    def test_a_reader_that_has_read_enough(self):
        reading, writing = os.pipe()
        os.close(reading)
        done = run("data", "list", stdout=writing)
        os.close(writing)
        assert done.returncode == 1
        assert done.stderr == ""
