"""The guide is run from its first block to its last, and so is the README's own-graph example."""

import csv
import re
import shlex
import shutil
from pathlib import Path

import pytest

from memohop import MMPClassifier
from memohop.cli import main

ROOT = Path(__file__).parent.parent
GUIDE = (ROOT / "docs" / "guide.md").read_text(encoding="utf-8")
README = (ROOT / "README.md").read_text(encoding="utf-8")


def blocks(text, languages):
    return re.findall(rf"^```({languages})\n(.*?)^```$", text, flags=re.MULTILINE | re.DOTALL)


def commands(block):
    """The lines of a block of commands, those that go on joined."""
    return [shlex.split(line) for line in block.replace("\\\n", " ").splitlines() if line]


@pytest.fixture(scope="module")
def walked(tmp_path_factory):
    """The folder in which the whole guide was run, and what its Python blocks left behind."""
    names = {}
    with pytest.MonkeyPatch.context() as patch:
        folder = tmp_path_factory.mktemp("guide")
        patch.chdir(folder)
        for language, block in blocks(GUIDE, "python|sh"):
            if language == "python":
                exec(compile(block, "guide.md", "exec"), names)
                continue
            for program, *arguments in commands(block):
                assert program == "memohop"
                assert main(arguments) == 0, arguments
    return folder, names


def rows(path):
    with path.open(encoding="utf-8") as file:
        return list(csv.DictReader(file))


def test_the_guide_leaves_what_it_promises(walked):
    folder, names = walked
    assert len(rows(folder / "predictions.csv")) == 240
    assert [row["id"] for row in rows(folder / "new.csv")] == ["a", "b", "c"]
    assert "<h2>Node shop-17</h2>" in (folder / "page.html").read_text(encoding="utf-8")
    assert (names["again"].predict() == names["labels"]).all()
    assert names["shares"].shape == (240, 3)


def test_the_graph_of_the_guide_helps_and_unlabelled_shops_are_mostly_right(walked):
    folder, names = walked
    report = MMPClassifier.load(folder / "model").report_
    assert report.differences["mlp"].mean > 0
    known = {row["id"]: row["trade"] for row in rows(folder / "nodes.csv")}
    unknown = [row for row in rows(folder / "predictions.csv") if not known[row["id"]]]
    right = [row["predicted"] == names["shops"][row["id"]] for row in unknown]
    assert 60 < len(right) < 100
    assert sum(right) / len(right) > 0.6  # a third by chance


def test_the_commands_of_the_readme_take_what_the_guide_says(walked):
    folder, _ = walked
    section = README[README.index("## Your own graph") : README.index("## Train on a benchmark")]
    ((_, block),) = blocks(section, "")
    for program, command, *rest in commands(block):
        assert program == "memohop"
        assert command in ("audit", "fit", "predict", "explain")
        assert "--trials" not in rest  # nothing but the tables is needed
    assert (folder / "model").is_dir()


def test_the_readme_in_python_runs(walked, tmp_path, monkeypatch, capsys):
    folder, _ = walked
    for name in ("nodes.csv", "edges.csv"):
        shutil.copy(folder / name, tmp_path)
    monkeypatch.chdir(tmp_path)
    ((_, block),) = blocks(README, "py")
    assert len([line for line in block.splitlines() if line.strip()]) <= 10
    quick = block.replace('label="kind"', 'label="trade"').replace(
        "time=60", "trials=1, splits=2, epochs=5"
    )
    assert quick != block
    exec(compile(quick, "README.md", "exec"), {})
    assert "graph" in capsys.readouterr().out
    assert MMPClassifier.load(tmp_path / "model").predict().shape == (240,)
