"""A model that replaces another one: no other file is lost, and no half of a model is left."""

import copy
import errno
import os
import re
import shutil
from pathlib import Path

import pytest

import memohop
from memohop import DataError, MMPClassifier, UsageError
from memohop.cli import main
from memohop.fit import _keep as keep

NOT_OURS = ("weights-0123456789abcdef.safetensors", ".model.json.99.part", ".README.md.99.part")
OTHERS = ("{}", "[]", "", '{"sha256": {}}', '{"format": 5, "memohop": "1.0", "sha256": "0"}')
PLAIN = ["README.md", "graph.safetensors", "model.json", "weights.safetensors"]


@pytest.fixture(scope="module")
def older():
    data = memohop.load("csbm", nodes=40, classes=2, channels=3)
    return MMPClassifier(trials=1, splits=2, epochs=1).fit(data, split=0)


def weaker(classifier):
    """The same graph, other weights."""
    halved = copy.deepcopy(classifier)
    for component in halved.model_.components:
        for network in component.models:
            for value in network.state.values():
                value.mul_(0.5)
    return halved


@pytest.fixture(scope="module")
def newer(older):
    return weaker(older)


@pytest.fixture
def model(older, tmp_path):
    older.save(tmp_path / "model")
    return tmp_path / "model"


def contents(folder):
    return {file.name: file.read_bytes() for file in folder.iterdir()}


def plain(folder):
    return sorted(re.sub("-[0-9a-f]{16}", "", file.name) for file in folder.iterdir())


def test_only_the_newer_model_is_left_and_what_someone_put_beside_it(model, older, newer):
    newer.save(model)
    assert plain(model) == PLAIN
    (model / "data").mkdir()
    for name in (*NOT_OURS, "notes.txt"):
        (model / name).write_text("years of work")
    older.save(model)
    assert (MMPClassifier.load(model).predict_proba() == older.predict_proba()).all()
    assert (older.predict_proba() != newer.predict_proba()).any()
    assert (model / "data").is_dir()
    for name in (*NOT_OURS, "notes.txt"):
        assert (model / name).read_text() == "years of work"


@pytest.mark.parametrize(
    ("name", "text"),
    [("README.md", "# My own remarks"), *(("model.json", text) for text in OTHERS)],
)
def test_a_file_that_is_not_as_we_wrote_it_is_not_replaced(model, newer, name, text):
    (model / name).write_text(text)
    before = contents(model)
    with pytest.raises(UsageError, match=rf"{name} would be replaced.*move it away"):
        newer.save(model)
    assert contents(model) == before


def test_a_folder_without_a_model_is_refused_unless_it_is_empty(newer, tmp_path):
    (tmp_path / "empty").mkdir()
    newer.save(tmp_path / "empty")
    assert plain(tmp_path / "empty") == PLAIN
    (tmp_path / "thesis").mkdir()
    (tmp_path / "thesis" / "chapter.txt").write_text("years of work")
    with pytest.raises(UsageError, match=r"is no saved model \(it holds chapter.txt\)"):
        newer.save(tmp_path / "thesis")


def test_a_model_that_is_replaced_while_it_is_read_is_the_newer_one(model, newer, monkeypatch):
    """Between its description and its files, or between two of these."""
    arrays, (graph,), newest = keep._arrays, model.glob("graph-*"), weaker(newer)
    newest.graph_.y[0] = 1 - newest.graph_.y[0]  # so that the file of the graph has another name
    before, after = [newer], [newest]

    def replaced(path, digest):
        if before:
            before.pop().save(model)
        content = arrays(path, digest)
        if after:
            after.pop().save(model)
        return content

    monkeypatch.setattr(keep, "_arrays", replaced)
    loaded = MMPClassifier.load(model)
    assert not (before + after)
    assert not graph.exists()
    assert (loaded.predict_proba() == newest.predict_proba()).all()


@pytest.mark.parametrize("failing", ["weights", "graph", "README", "model"])
def test_a_full_disk_leaves_the_older_model_and_no_other_file(model, newer, monkeypatch, failing):
    before, write = contents(model), Path.write_bytes

    def full(path, content):
        write(path, content[: len(content) // 2])
        if path.parent.name.startswith(".writing") and path.name.startswith(failing):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return write(path, content)

    newer = weaker(newer)
    newer.graph_.y[0] = 1 - newer.graph_.y[0]
    with monkeypatch.context() as patched:
        patched.setattr(Path, "write_bytes", full)
        with pytest.raises(
            DataError, match=r"No space left .*; the older saved model is as it was"
        ):
            newer.save(model)
    assert contents(model) == before
    newer.save(model)
    assert plain(model) == PLAIN


class Killed(BaseException):
    """The process is dead, and nothing cleans up after it."""


def killed_at(monkeypatch, step):
    """From the given operation on files onwards, none is done any more."""
    done = []

    def dying(operation, half=None):
        def call(*arguments, **more):
            done.append(operation)
            if len(done) >= step:
                if half is not None and len(done) == step:
                    half(*arguments)
                raise Killed
            return operation(*arguments, **more)

        return call

    write = Path.write_bytes
    half = lambda path, content: write(path, content[: len(content) // 2])  # noqa: E731
    monkeypatch.setattr(Path, "write_bytes", dying(write, half))
    for name in ("replace", "unlink", "mkdir", "fsync", "chmod"):
        monkeypatch.setattr(os, name, dying(getattr(os, name)))
    return done


def save_and_be_killed(classifier, path, step):
    with pytest.MonkeyPatch.context() as monkeypatch:
        done = killed_at(monkeypatch, step)
        try:
            classifier.save(path)
        except Killed:
            return True
    assert len(done) < step
    return False


@pytest.fixture
def quick_card(monkeypatch):
    monkeypatch.setattr(keep, "record_card", lambda _: "# A node classifier for the quick\n")


@pytest.mark.usefixtures("quick_card")
def test_a_kill_between_any_two_steps_leaves_one_of_the_two_models(older, newer, tmp_path):
    seen, step, alive = set(), 0, True
    older.save(tmp_path / "start")
    expected = {"older": older.predict_proba(), "newer": newer.predict_proba()}
    while alive:
        step += 1
        model = shutil.copytree(tmp_path / "start", tmp_path / f"{step}" / "model")
        alive = save_and_be_killed(newer, model, step)
        probabilities = MMPClassifier.load(model).predict_proba()
        (which,) = [name for name, shares in expected.items() if (shares == probabilities).all()]
        seen.add(which)
        older.save(model)  # goes on from there, and clears up
        assert plain(model) == PLAIN
        assert os.listdir(model.parent) == ["model"]
        assert (MMPClassifier.load(model).predict_proba() == expected["older"]).all()
    assert seen == {"older", "newer"}
    assert step > 10


@pytest.mark.usefixtures("quick_card")
def test_a_first_save_that_was_killed_does_not_stand_in_the_way(newer, tmp_path):
    step, alive = 0, True
    while alive:
        step += 1
        model = tmp_path / f"{step}"
        alive = save_and_be_killed(newer, model, step)
        newer.save(model)
        assert plain(model) == PLAIN
        assert (MMPClassifier.load(model).predict_proba() == newer.predict_proba()).all()


def test_a_folder_that_holds_the_tables_is_refused_before_the_search(tmp_path, monkeypatch, capsys):
    (tmp_path / "nodes.csv").write_text("id,a,kind\n1,2,x\n")
    (tmp_path / "edges.csv").write_text("source,target\n1,1\n")
    monkeypatch.chdir(tmp_path)
    tables = ["--nodes", "nodes.csv", "--edges", "edges.csv", "--label", "kind"]
    assert main(["fit", *tables, "-o", "."]) == 2
    assert "is no saved model (it holds" in capsys.readouterr().err
    assert sorted(os.listdir(tmp_path)) == ["edges.csv", "nodes.csv"]
