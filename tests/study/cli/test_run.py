"""The commands round the run store, and training by protocol."""

import json

import pytest

from memohop.jobs.executor import Lost
from memohop.report.terminal import clock
from study.cli import main
from study.runs.results import Results


def printed(capsys, *arguments):
    assert main([str(word) for word in arguments]) == 0
    return capsys.readouterr().out


@pytest.fixture
def path(tmp_path):
    return tmp_path / "runs.sqlite"


def test_run_show_merge_and_export(tiny_file, path, tmp_path, capsys):
    run = ("run", tiny_file, "--store", path, "--protocol", "paper", "--only", "model=mlp,gcn")
    assert printed(capsys, *run, "--limit", "1") == "4 cells: 1 done\n"
    assert printed(capsys, *run) == "4 cells: 1 already there, 3 done\n"
    (row,) = json.loads(printed(capsys, *run, "--json"))
    assert (row["cells"], row["there"], row["done"], row["failed"]) == (4, 4, 0, 0)

    (shown,) = json.loads(printed(capsys, "store", "show", path, "--json"))
    assert (shown["experiment"], shown["protocol"]) == ("tiny", "paper")
    assert (shown["cells"], shown["failed"], shown["runs"]) == (4, 0, 2 * 8 + 2 * 4)
    assert "tiny" in printed(capsys, "store", "show", path)

    other, both = tmp_path / "other.sqlite", tmp_path / "both.sqlite"
    printed(
        capsys, "run", tiny_file, "--store", other, "--only", "model=gcn,noise=50", "--limit", "9"
    )
    merged = printed(capsys, "store", "merge", both, path, other)
    assert "4 new cell(s)" in merged.splitlines()[0]
    assert "1 new cell(s)" in merged.splitlines()[1]  # the official one

    output = tmp_path / "tiny.json"
    assert main(["store", "export", str(both), str(tiny_file), "--output", str(output)]) == 0
    out, err = capsys.readouterr()
    assert f"wrote {output}: 5 cells" in out
    assert "7 cell(s) are missing" in err
    assert len(Results.load(output).cells()) == 5


def test_without_a_terminal_there_is_a_line_for_each_cell(tiny_file, path, capsys):
    main(["run", str(tiny_file), "--store", str(path), "--only", "model=gcn,noise=0"])
    first, second = capsys.readouterr().err.splitlines()
    assert first.startswith("memohop: 1 of 2 cells, 0:0")
    assert first.endswith("left, paper csbm gcn noise=0")
    assert second.startswith("memohop: 2 of 2 cells, 0:0")
    assert second.endswith("about 0:00 left, official csbm gcn noise=0")


def test_failures_are_told_and_can_be_tried_again(tiny_file, path, capsys, monkeypatch):
    run = ["run", str(tiny_file), "--store", str(path), "--only", "model=mlp", "--limit", "1"]
    with monkeypatch.context() as patch:
        patch.setattr("memohop.jobs.named.train_job", lambda *_, **__: 1 / 0)
        assert main(run) == 1
    out, err = capsys.readouterr()
    assert out == "4 cells: 1 failed\n"
    assert "1 cell(s) have failed" in err
    assert f"python -m study store show {path}" in err
    shown = printed(capsys, "store", "show", path)
    assert "tiny paper csbm mlp noise=0 failed:\nZeroDivisionError: division by zero" in shown
    assert "Traceback" in printed(capsys, "store", "show", path, "--failures")
    assert "1 done" in printed(capsys, *run, "--retry")


def test_lost_cells_are_told_and_run_again(tiny_file, path, capsys, monkeypatch):
    run = ["run", str(tiny_file), "--store", str(path), "--only", "model=mlp", "--limit", "1"]
    with monkeypatch.context() as patch:
        lost = Lost("the process died")
        patch.setattr("study.runs.runner.attempt", lambda *_, **__: lost)
        assert main(run) == 1
    out, err = capsys.readouterr()
    assert out == "4 cells: 1 lost\n"
    assert "memohop: paper csbm mlp noise=0 was lost: the process died\n" in err
    assert "1 cell(s) were lost with the process that trained them; give the command again" in err
    assert printed(capsys, *run) == "4 cells: 1 done\n"


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--only", "dataset=texas"], "no dataset left in tiny named 'texas'; known: csbm"),
        (["--only", "model=gcnn"], "did you mean gcn"),
        (["--only", "colour=red"], "no part of a cell of tiny named 'colour'"),
        (["--only", "csbm"], "--only csbm: give it as dataset=texas,cora,model=gcn"),
        (["--only", "noise=25"], "no noise left in tiny named '25'; did you mean 50?"),
        (["--protocol", "papers"], "no protocol of tiny named 'papers'; did you mean paper"),
        (["--only", "model=gcn,mlp,gcn"], "--only model has gcn twice; leave one of them out"),
        (["--only", "noise=50", "--only", "noise=50"], "--only noise has 50 twice"),
        (["--protocol", "paper", "--protocol", "paper"], "--protocol has paper twice"),
        (["--limit", "0"], "--limit 0: give at least 1"),
        (["--jobs", "0"], "--jobs 0: give at least 1"),
        (["--jobs", "two"], "--jobs"),
        (["--jobs", "2", "--engine", "ray"], "--jobs 2 goes with --engine local"),
        (["--ray", "auto"], "--ray auto goes with --engine ray"),
        (["--engine", "dask"], "--engine"),
    ],
)
def test_run_refuses_what_makes_no_sense(arguments, words, tiny_file, path, capsys):
    assert main(["run", str(tiny_file), "--store", str(path), *arguments]) == 2
    assert words in capsys.readouterr().err
    assert not path.exists()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["show", "none.sqlite"], "there is no store none.sqlite"),
        (["merge", "a.sqlite"], "name two stores"),
        (["merge", "a.sqlite", "none.sqlite"], "there is no store none.sqlite"),
        (["export", "none.sqlite", "table1", "--output", "x.json"], "there is no store none"),
        (["export", "none.sqlite", "table1", "--output", "no/x.json"], "there is no folder no"),
    ],
)
def test_stores_that_are_not_there(arguments, words, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert main(["store", *arguments]) == 2
    assert words in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "command", [["run"], ["train"], ["store", "show"], ["store", "merge"]], ids=" ".join
)
def test_every_command_has_an_example(command, capsys):
    assert f"  {' '.join(['python -m study', *command])}" in printed(capsys, *command, "--help")


class TestProtocol:
    def test_a_row_of_table1_is_taken_with_its_search(self, data_root, capsys):
        out = printed(
            capsys, "train", "texas", "--model", "mlp", "--protocol", "paper", "--data", data_root,
            "--epochs", 2, "--splits", "0,1", "--json",
        )  # fmt: skip
        (row,) = json.loads(out)
        assert (row["protocol"], row["settings_tried"], row["features"]) == ("paper", 4, "row")
        assert (row["keep"], row["bias"], row["weight_decay"]) == ("latest", False, 1e-3)
        assert (row["epochs"], row["input_dropout"]) == (2, 0)
        assert (row["relu"], row["dropout"]) in [(r, d) for r in (True, False) for d in (0, 0.5)]

    def test_what_is_given_counts_on_top(self, data_root, capsys):
        out = printed(
            capsys, "train", "texas", "--model", "gcn+mmp", "--protocol", "official", "--data",
            data_root, "--epochs", 2, "--splits", "0", "--lam", "0.3", "--option", "direction=in",
        )  # fmt: skip
        assert "direction=in, self_loops=remove, norm=row" in out
        assert "decoupling=official" in out
        (setting,) = [line for line in out.splitlines() if "chosen" in line]
        assert setting.split()[1:4] == ["0.05", "0.0005", "0.3"]

    def test_settings_and_rules_are_shown(self, data_root, capsys):
        out = printed(
            capsys, "train", "texas", "--model", "gcn", "--protocol", "paper", "--data", data_root,
            "--epochs", 2, "--splits", "0",
        )  # fmt: skip
        assert sum("0.0005" in line for line in out.splitlines()) == 3  # three windows
        assert "rules: decay=first, stop=window, keep=last, loss_with_decay=True" in out

    @pytest.mark.parametrize(
        ("model", "protocol", "words"),
        [
            ("gcn", "pape", "no protocol of table1 named 'pape'; did you mean paper"),
            ("sage", "paper", "no model of table1 named 'sage'"),
        ],
    )
    def test_rows_that_are_not_there(self, model, protocol, words, capsys):
        assert main(["train", "texas", "--model", model, "--protocol", protocol]) == 2
        assert words in capsys.readouterr().err


@pytest.mark.parametrize(
    ("seconds", "text"), [(5.4, "0:05"), (307, "5:07"), (3907, "1:05:07"), (-3, "0:00")]
)
def test_the_clock(seconds, text):
    assert clock(seconds) == text
