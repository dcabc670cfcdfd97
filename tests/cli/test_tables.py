"""Tables as people have them, through the commands: what is told, and how to overrule it."""

import numpy as np
import pytest

import memohop
from commands import at, run

FAST = ["--models", "linear", "--trials", "1", "--splits", "2"]


@pytest.fixture(scope="module")
def tables(tmp_path_factory):
    """Words among numbers, a placeholder among labels, a rare class that sorts first."""
    folder = tmp_path_factory.mktemp("tables")
    generator = np.random.default_rng(0)
    rows = ["id,größe,kind"]
    for node in range(300):
        is_rare = node % 20 == 0
        size = "unklar" if node % 100 == 7 else round(generator.normal() + 2 * is_rare, 3)
        kind = "?" if node % 10 == 3 else "fraud" if is_rare else "usual"
        rows.append(f"né{node},{size},{kind}")
    edges = ["source,target", *(f"né{node},né{(node + 1) % 300}" for node in range(300))]
    for name, lines in (("nodes", rows), ("edges", edges)):
        (folder / f"{name}.csv").write_text("\n".join([*lines, ""]), encoding="cp1252")
    return folder


def told(capsys, *words, code=0):
    """Standard output and standard error of a command, each as one line."""
    return (" ".join(text.split()) for text in run(capsys, *words, code=code))


COLUMN = (
    "column 'größe' is read as numbers, with 3 of 300 values taken for missing, such as 'unklar'"
)
LABELS = "label 'kind': 30 cells with '?' taken for empty"
LETTERS = "nodes.csv is not in UTF-8, and is read as Windows-1252"


def test_fit_and_audit_and_prepare_tell_the_same(tables, tmp_path, capsys):
    common = [*at(tables), "--label", "kind"]
    files = [str(tables / "nodes.csv"), str(tables / "edges.csv"), "--label", "kind"]
    commands = [
        ["fit", *common, *FAST, "-o", str(tmp_path / "model")],
        ["audit", *common],
        ["prepare", *files, "-o", str(tmp_path / "graph")],
    ]
    for command in commands:
        _, err = told(capsys, *command)
        assert all(words in err for words in (COLUMN, LABELS, LETTERS)), command[0]
        more = ["--categorical", "größe", "--encoding", "latin-1"]
        _, err = told(capsys, *command, *more)
        assert COLUMN not in err
        assert LETTERS not in err
        assert LABELS in err


def test_a_class_to_find(tables, tmp_path, capsys):
    fit = ["fit", *at(tables), "--label", "kind", *FAST, "-o", str(tmp_path / "model")]
    for more, name, score in (
        ([], "fraud", "average precision"),
        (["--positive", "usual"], "usual", "accuracy"),
    ):
        out, _ = told(capsys, *fit, *more)
        assert f"To find {name}, " in out
        assert f"{score} in percent" in out
    _, err = told(capsys, *fit, "--positive", "frud", code=2)
    assert "no class named 'frud'; did you mean fraud?" in err


def test_new_tables_are_read_in_the_encoding_of_fit_or_another(tables, tmp_path, capsys):
    model, output = str(tmp_path / "model"), tmp_path / "out.csv"
    fit = ["fit", *at(tables), "--label", "kind", *FAST, "-o", model]
    told(capsys, *fit, "--encoding", "cp1252")
    assert memohop.load_model(model).reading_["encoding"] == "cp1252"
    (tmp_path / "nodes.csv").write_text("id,größe\nö,1\nß,2\n", encoding="cp1252")
    (tmp_path / "edges.csv").write_text("source,target\nö,ß\n", encoding="cp1252")
    predict = ["predict", model, *at(tmp_path), "-o", str(output)]
    _, err = told(capsys, *predict)
    assert "Windows" not in err
    assert output.read_text(encoding="utf-8").splitlines()[1].startswith("ö,")
    for append in ([], ["--append"]):
        for name in ("nodes.csv", "edges.csv"):
            path = tmp_path / name
            text = path.read_bytes().decode("utf-16" if append else "cp1252")
            path.write_text(text, encoding="utf-16")
        told(capsys, *predict, *append, "--encoding", "utf-16")
        assert output.read_text(encoding="utf-8").splitlines()[2].startswith("ß,")
    page = tmp_path / "page.html"
    told(capsys, "explain", model, "--node", "né7", "-o", str(page))
    assert "<h2>Node né7</h2>" in page.read_text(encoding="utf-8")
    _, err = told(capsys, "predict", model, *at(tmp_path), "--encoding", "klingon", code=2)
    assert "encoding='klingon' is no encoding of text" in err
