"""A store with changed bytes gives what was written, or an error."""

import shutil
from contextlib import closing

import pytest
from hypothesis import given
from hypothesis import strategies as st

import memohop
from study.runs.experiment import Experiment
from study.runs.export import export
from study.runs.runner import CellSearch
from study.runs.store import Claims, Store


@pytest.fixture(scope="module")
def small(tmp_path_factory, run):
    """A store of two cells, what it holds, and what merging it gives."""
    folder = tmp_path_factory.mktemp("small")
    file = folder / "small.toml"
    file.write_text(
        """
title = ""
expected = ""
time = ""
datasets = ["csbm"]
models = ["mlp", "gcn"]
protocols.paper.every = { data = { splits = 1 }, epochs = 6 }
protocols.paper.rows = { mlp = {}, gcn = {} }
""",
        encoding="utf-8",
    )
    experiment, path = Experiment(str(file)), folder / "small.sqlite"
    with closing(Store(path)) as store:
        run(list(experiment.cells()), store)
        cells, results = store.cells(), export(store, experiment)[0]
    empty = folder / "empty.sqlite"
    Store(empty).close()
    return experiment, path, cells, results, empty


@pytest.mark.fuzz
@given(data=st.data())
def test_a_damaged_store_gives_what_was_written_or_an_error(small, data):
    experiment, path, cells, results, empty = small
    content = bytearray(path.read_bytes())
    for _ in range(data.draw(st.integers(1, 3), label="changes")):
        offset = data.draw(st.integers(0, len(content) - 1), label="offset")
        content[offset] ^= data.draw(st.integers(1, 255), label="bits")
    length = data.draw(st.sampled_from([len(content)] * 4 + [len(content) // 2, 100]))
    damaged, into = path.with_name("damaged.sqlite"), path.with_name("into.sqlite")
    damaged.write_bytes(content[:length])
    before = damaged.read_bytes()

    def tried(function):
        try:
            return function()
        except memohop.errors.MemohopError:
            return None

    def show():
        with closing(Store(damaged, read_only=True)) as store:
            return store.cells()

    def exported():
        with closing(Store(damaged, read_only=True)) as store:
            return export(store, experiment)[0]

    assert tried(show) in (None, cells)
    assert tried(exported) in (None, results)
    assert damaged.read_bytes() == before
    shutil.copy(empty, into)
    with closing(Store(into)) as store:
        merged = tried(lambda: store.merge(damaged))
        assert merged in (None, (len(results.rows), len(cells)))
        assert store.cells() == ({} if merged is None else cells)
        if merged is not None:
            assert export(store, experiment)[0] == results

    def plan():
        with closing(Store(damaged)) as store:
            return CellSearch(list(experiment.cells()), store, Claims(store)).tally.there

    assert tried(plan) in (None, len(cells))
    for ending in ("-wal", "-shm", "-journal"):
        damaged.with_name(damaged.name + ending).unlink(missing_ok=True)
