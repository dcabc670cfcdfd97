"""Runs the whole guide to your own graph, and the README's example of it."""

import re
import shlex
import shutil
from pathlib import Path

import pytest

import memohop
from commands import read_csv
from memohop.cli import main

ROOT = Path(__file__).parent.parent
PAGES = ["index.md", "python.md", "tables.md"]  # of docs/own-graph, in this order
GUIDE = "\n".join((ROOT / "docs" / "own-graph" / page).read_text("utf-8") for page in PAGES)
FRONT = (ROOT / "docs" / "index.md").read_text(encoding="utf-8")
README = (ROOT / "README.md").read_text(encoding="utf-8")


def blocks(text, languages):
    return re.findall(rf"^```({languages})\n(.*?)^```$", text, flags=re.MULTILINE | re.DOTALL)


def commands(block):
    """The commands of a block, with continued lines joined."""
    return [shlex.split(line) for line in block.replace("\\\n", " ").splitlines() if line]


@pytest.fixture(scope="module")
def walked(tmp_path_factory):
    """The folder in which the whole guide ran, and the variables of its Python blocks."""
    names = {}
    with pytest.MonkeyPatch.context() as patch:
        folder = tmp_path_factory.mktemp("guide")
        patch.chdir(folder)
        for language, block in blocks(GUIDE, "python|sh"):
            if language == "python":
                exec(compile(block, "the guide", "exec"), names)
                continue
            for program, *arguments in commands(block):
                assert program == "memohop"
                assert main(arguments) == 0, arguments
    return folder, names


def test_the_guide_leaves_what_it_promises(walked):
    folder, names = walked
    assert len(read_csv(folder / "predictions.csv")) == 240
    assert [row["id"] for row in read_csv(folder / "new.csv")] == ["a", "b", "c"]
    assert [row["id"] for row in read_csv(folder / "later.csv")] == ["new"]
    assert "<h2>Node shop-17</h2>" in (folder / "page.html").read_text(encoding="utf-8")
    assert (names["again"].predict() == names["labels"]).all()
    assert names["shares"].shape == (240, 3)


def test_the_first_page_shows_rows_of_the_guide_and_its_command(walked):
    folder, _ = walked
    shown = [block.splitlines() for _, block in blocks(FRONT, "text")]
    assert len(shown) == 2
    for lines, name in zip(shown, ("nodes.csv", "edges.csv"), strict=True):
        assert set(lines) <= set((folder / name).read_text(encoding="utf-8").splitlines())
    (_, command), *_ = blocks(FRONT, "sh")
    assert command.splitlines()[1] in GUIDE


def test_the_graph_of_the_guide_helps_and_unlabelled_shops_are_mostly_right(walked):
    folder, names = walked
    report = memohop.load_model(folder / "model").report_
    assert report.answers[0].question == "graph"
    assert report.answers[0].gain.mean > 0
    known = {row["id"]: row["trade"] for row in read_csv(folder / "nodes.csv")}
    unknown = [row for row in read_csv(folder / "predictions.csv") if not known[row["id"]]]
    right = [row["predicted"] == names["shops"][row["id"]] for row in unknown]
    assert 60 < len(right) < 100
    assert sum(right) / len(right) > 0.6  # a third by chance


@pytest.fixture
def with_tables(walked, tmp_path, monkeypatch):
    """A fresh folder with the tables of the guide."""
    folder, _ = walked
    for name in ("nodes.csv", "edges.csv"):
        shutil.copy(folder / name, tmp_path)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_the_commands_of_the_readme_run(with_tables):
    section = README[README.index("## Your own graph") : README.index("## One line around")]
    ((_, block),) = blocks(section, "")
    for program, command, *rest in commands(block.replace("--label kind", "--label trade")):
        assert program == "memohop"
        quick = ["--trials", "1", "--models", "linear,linear+rows"] if command == "fit" else []
        assert main([command, *rest, *quick]) == 0
    assert (with_tables / "audit.html").exists()
    assert len(read_csv(with_tables / "predictions.csv")) == 240
    assert (with_tables / "page.html").exists()


def test_the_readme_in_python_runs(with_tables, capsys):
    ((_, block),) = blocks(README, "py")
    assert len([line for line in block.splitlines() if line.strip()]) <= 10
    quick = block.replace('label="kind"', 'label="trade"').replace(
        "time=60", "trials=1, splits=2, models=['linear', 'linear+rows']"
    )
    assert quick != block
    exec(compile(quick, "README.md", "exec"), {})
    assert "graph" in capsys.readouterr().out
    assert memohop.load_model(with_tables / "model").predict().shape == (240,)
