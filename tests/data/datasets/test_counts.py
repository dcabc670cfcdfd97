"""Datasets whose files have no known digest: what a file holds is compared with the registry."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest

from memohop.cli import main
from memohop.data.datasets import fetch, registry
from memohop.data.datasets.fetch import ENVIRONMENT, address
from memohop.data.datasets.load import load
from memohop.errors import DataError
from memohop.jobs.named import Settings

PATH = "platonov/questions.npz"
PARTS = np.array([[0, 0, 1, 2, 0, 0, 1, 2], [2, 1, 0, 0, 0, 0, 1, 2]])  # of two splits
ARRAYS = {
    "node_features": np.eye(8, 3, dtype=np.float32),
    "node_labels": np.array([0, 0, 0, 0, 1, 1, 1, 1]),
    "edges": np.array([[0, 1], [1, 2], [2, 3], [3, 4], [4, 5], [5, 6]]),
    "train_masks": PARTS == 0,
    "val_masks": PARTS == 1,
    "test_masks": PARTS == 2,
}


@pytest.fixture
def small(monkeypatch):
    """As if a graph of eight nodes had been published as `questions`."""
    monkeypatch.delenv(ENVIRONMENT, raising=False)
    counts = {"nodes": 8, "arcs": 12, "features": 3, "classes": 2, "splits": 2}
    info = replace(registry.describe("questions"), homophily=0.83, **counts)
    monkeypatch.setitem(registry._TABLE, "questions", info)
    return info


@pytest.fixture
def folder(small, tmp_path):
    write(tmp_path, **ARRAYS)
    return tmp_path


def write(folder, **arrays):
    (folder / "platonov").mkdir(exist_ok=True)
    np.savez(folder / PATH, **arrays)


def test_the_published_graph_is_read(folder, monkeypatch):
    data = load("questions", root=folder)
    assert data.edge_index.T.tolist() == sorted(
        arc for u, v in ARRAYS["edges"].tolist() for arc in ([u, v], [v, u])
    )
    assert np.array_equal(data.test_mask.numpy(), ARRAYS["test_masks"].T)
    assert (data.name, data.metric, "latent" in data) == ("questions", "roc_auc", False)
    monkeypatch.setenv(ENVIRONMENT, str(folder))
    assert load("questions", split="random", splits=3).train_mask.shape == (8, 3)


@pytest.mark.parametrize("name", ["minesweeper", "tolokers"])
def test_published_files_would_pass_without_their_digests(name, data_root, monkeypatch):
    monkeypatch.setattr(fetch, "known_digests", dict)
    assert load(name, root=data_root).num_nodes == registry.describe(name).nodes


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"nodes": 9}, "8 nodes and not 9"),
        ({"arcs": 14}, "12 arcs and not 14"),
        ({"features": 4}, "3 features and not 4"),
        ({"classes": 3}, "2 classes and not 3"),
        ({"splits": 10}, "2 splits and not 10"),
        ({"homophily": 0.84}, r"homophily 0\.833 and not 0\.84"),
        (
            {"test_to_train": 20 / 48},
            r"0\.500 test nodes for each training node of split 0 and not 0\.42",
        ),
        ({"nodes": 9, "splits": 3}, "8 nodes and not 9, 2 splits and not 3"),
    ],
)
def test_every_difference_is_named(changes, told, folder, small, monkeypatch):
    monkeypatch.setitem(registry._TABLE, "questions", replace(small, **changes))
    with pytest.raises(
        DataError,
        match=rf"{PATH} is not the published questions: it has {told}; copy it again from "
        f"{address(PATH)}$",
    ):
        load("questions", root=folder)


@pytest.mark.parametrize(
    ("arrays", "told"),
    [
        (
            {"node_labels": np.array([1, 0, 0, 1, 0, 1, 1, 0])},
            r"it has homophily 0\.333 and not 0\.83; copy",
        ),
        (
            {"train_masks": PARTS == 1, "val_masks": PARTS == 0},
            r"1\.000 test nodes for each training node of split 0",
        ),
        (
            {"edges": np.empty((0, 2), dtype=int), "train_masks": np.zeros((2, 8), dtype=bool)},
            r"0 arcs and not 12, homophily nan and not .*inf test",
        ),
    ],
)
def test_other_labels_sets_and_arcs_are_noticed(arrays, told, folder):
    write(folder, **ARRAYS | arrays)
    with pytest.raises(DataError, match=told):
        load("questions", root=folder)


def test_fetch_says_what_was_checked_and_what_is_left_out(folder, capsys):
    assert main(["data", "fetch", "questions", "--data", str(folder)]) == 0
    told = "1 file(s) in {}, with the published counts (no SHA-256 is known)"
    assert capsys.readouterr().out == f"questions: {told.format(folder)}\n"
    assert main(["data", "fetch", "questions"]) == 1
    err = capsys.readouterr().err
    assert address(PATH) in err
    assert f"FOLDER/{PATH}" in err


def test_fetching_all_leaves_out_what_must_be_copied_but_not_what_is_wrong(
    folder, small, monkeypatch, capsys
):
    few = {name: registry.describe(name) for name in ("roman-empire", "questions", "csbm")}
    monkeypatch.setattr(registry, "_TABLE", few)
    assert main(["data", "fetch", "all", "--data", str(folder)]) == 0
    roman, questions, csbm = capsys.readouterr().out.splitlines()
    assert roman.startswith("roman-empire: left out. platonov/roman_empire.npz is not downloaded")
    assert "with the published counts" in questions
    assert csbm.startswith("csbm: made on the spot")
    monkeypatch.setitem(registry._TABLE, "questions", replace(small, nodes=9))
    assert main(["data", "fetch", "all", "--data", str(folder)]) == 1
    assert "8 nodes and not 9" in capsys.readouterr().err


def test_the_list_and_the_sheet_tell_which_are_not_downloaded(folder, capsys):
    assert main(["data", "list"]) == 0
    out = capsys.readouterr().out
    assert (
        "since no SHA-256 is known to check by: roman-empire, amazon-ratings, questions.\n" in out
    )
    (line,) = (line for line in out.splitlines() if line.startswith("roman-empire "))
    assert " 0.05 " in line
    assert main(["data", "list", "--json"]) == 0
    rows = {row["dataset"]: row for row in json.loads(capsys.readouterr().out)}
    assert "no SHA-256" in rows["questions"]["note"]
    assert main(["data", "show", "questions", "--data", str(folder)]) == 0
    out = capsys.readouterr().out
    assert "no SHA-256 of its file is known" in out
    assert "0.833 (measured" in out


def test_training_and_the_names_of_runs(folder, capsys):
    command = ["train", "questions", "--model", "gcn", "--epochs", "2", "--splits", "0"]
    assert main([*command, "--data", str(folder), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)[0]["dataset"] == "questions"
    assert Settings().job("questions", "gcn").content["data"]["files"] == {PATH: None}
    assert main(command) == 1
    assert "is not downloaded" in capsys.readouterr().err
