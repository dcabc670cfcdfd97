"""`memohop train` on a prepared graph of the user's own."""

import numpy as np
import pyarrow as pa
import pytest

from commands import fails, json_of, write_parquet
from memohop.cli import main
from memohop.jobs.folder import in_ram
from memohop.jobs.named import NamedGraph
from memohop.jobs.train import train_job

NODES = 60


@pytest.fixture
def prepare(tmp_path):
    """Makes a prepared graph; its classes show in a column, and the last nodes have no label."""

    def make(*options, label="kind"):
        generator, node = np.random.default_rng(1), np.arange(NODES)
        kind = generator.integers(2, size=NODES)
        columns = {
            "id": node,
            "size": generator.normal(size=NODES) + 3 * kind,
            "part": np.array(["train", "val", "test"])[node % 3],
            "team": node // 3,
            "kind": pa.array(np.array(["a", "b"])[kind], mask=node >= 54),
            "amount": pa.array(kind + generator.normal(size=NODES) / 9, mask=node >= 54),
        }
        edges = zip(
            ("source", "target", "weight"), generator.integers(1, NODES, (3, 150)), strict=True
        )
        tables = write_parquet(tmp_path, columns, dict(edges))
        drop = ",".join(sorted({"kind", "amount", "part", "team"} - {label, *options}))
        words = ["prepare", *map(str, tables), "--label", label, "--drop", drop, *options]
        folder = str(tmp_path / "graph")
        assert main([*words, "-o", folder]) == 0
        return folder

    return make


def train(capsys, folder, *options):
    """The row that is printed."""
    return json_of(capsys, "train", folder, "--model", "gcn+mmp", "--epochs", "20", *options)[0]


def test_the_splits_are_those_of_fit(prepare, capsys):
    folder = prepare()
    summary = train(capsys, folder, "--data-option", "splits=3")
    assert (summary["metric"], summary["splits"]) == ("accuracy", 3)
    assert summary["mean"] > 70
    data = NamedGraph(name=folder, data={"splits": 3}).load()
    assert data.train_mask.shape == (NODES, 3)
    used = data.train_mask | data.val_mask | data.test_mask
    assert used[:54].all()
    assert not used[54:].any()


def test_its_own_split_is_used_and_weights_count(prepare, capsys):
    folder = prepare("--split", "part", "--weight", "weight")
    data = NamedGraph(name=folder).load()
    part = np.where(np.arange(NODES) < 54, np.arange(NODES) % 3, -1)
    for number, mask in enumerate((data.train_mask, data.val_mask, data.test_mask)):
        assert np.array_equal(mask[:, 0], part == number)
    assert in_ram(data).edge_weight.max() > 1
    assert train(capsys, folder)["splits"] == 1


def test_no_split_tears_a_group(prepare):
    data = NamedGraph(name=prepare("--group", "team")).load()
    for mask in (data.train_mask, data.val_mask, data.test_mask):
        teams = mask[:54].reshape(18, 3, -1)
        assert (teams.all(1) == teams.any(1)).all()


def test_numbers_are_predicted(prepare, capsys):
    assert train(capsys, prepare(label="amount"))["metric"] == "r2"


def test_workers_get_the_same_graph(prepare, capsys, monkeypatch):
    """Trained with processes of its own in tests/parts; here, what the command hands on."""
    asked = {}

    def spread(job, *, workers, progress, **_):
        asked.update(workers=workers, folder=job.data.folder, members=len(job.members))
        return train_job(job, progress=progress)

    monkeypatch.setattr("memohop.jobs.named.train_job", spread)
    folder = prepare()
    assert train(capsys, folder, "--workers", "3", "--splits", "0")["splits"] == 1
    assert (asked["workers"], asked["members"]) == (3, 1)
    assert asked["folder"] == folder


@pytest.mark.parametrize(
    ("options", "text"),
    [
        (["--features", "row"], "--features row is for datasets"),
        (["--data-option", "split=random"], "split=random: a prepared graph has no such option"),
        (["--data-option", "splits=40"], "splits=40 takes 40 labelled nodes"),
        (["--data-option", "metric=r2"], "metric"),
    ],
)
def test_what_does_not_go_with_a_folder(prepare, capsys, options, text):
    assert text in fails(capsys, "train", prepare(), "--model", "gcn+mmp", *options)


def test_other_folders_are_refused(tmp_path, capsys):
    for folder, text in ((tmp_path, "no prepared graph in"), (tmp_path / "nowhere", "no dataset")):
        assert f"there is {text}" in fails(capsys, "train", folder, "--model", "gcn+mmp")
