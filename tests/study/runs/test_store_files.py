"""Files that are no store stay as they are, and what is wrong with a store is said in one line."""

import json
import shutil
import sqlite3
from contextlib import closing

import pytest

import memohop
from memohop.training.job import digest
from study.cli import main
from study.runs import _database as database
from study.runs.export import export
from study.runs.store import Claims, Store

MERGED = ("runs", "cells", "members", "sources", "checks")


@pytest.fixture
def filled(tiny, tmp_path, run):
    """The path of a store with results of the tiny experiment."""
    path = tmp_path / "filled.sqlite"
    with closing(Store(path)) as store:
        run([cell for cell in tiny.cells(["paper"]) if cell.model != "gcn+mmp"], store)
    return path


@pytest.fixture
def foreign(tmp_path):
    """A database of another program."""
    path = tmp_path / "theirs.sqlite"
    with closing(sqlite3.connect(path)) as db:
        db.execute("CREATE TABLE letters (text TEXT)")
        db.execute("INSERT INTO letters VALUES ('dear')")
        db.commit()
    return path


def changed(path, *statements):
    with closing(sqlite3.connect(path)) as db:
        for statement in statements:
            db.execute(statement)
        db.commit()


def as_version_0_1_0(path):
    """What that version wrote: without a mark and without digests of rows."""
    with closing(sqlite3.connect(path)) as db:
        ((content,),) = db.execute("SELECT content FROM sources").fetchall()
        made = json.loads(content)
        made["versions"]["memohop"] = "0.1.0"
        db.execute("UPDATE sources SET id = ?, content = ?", (digest(made), json.dumps(made)))
        db.execute("UPDATE runs SET source = ?", (digest(made),))
        db.commit()
    as_version_0_2_0(path)
    changed(path, "DROP TABLE checks", "PRAGMA application_id = 0")


def as_version_0_2_0(path):
    """What that version wrote: with digests of runs, and without those of cells."""
    of_cells = "DELETE FROM checks WHERE run NOT IN (SELECT id FROM runs)"
    changed(path, of_cells, "PRAGMA user_version = 1")


def rows(path):
    with closing(sqlite3.connect(path)) as db:
        return {name: sorted(db.execute(f"SELECT * FROM {name}")) for name in MERGED}


def content_of(path, experiment):
    """All that reading the store gives."""
    with closing(Store(path, read_only=True)) as store:
        return store.cells(), export(store, experiment)


def beside(path):
    return sorted(file.name for file in path.parent.iterdir())


class TestForeignFiles:
    @pytest.mark.parametrize("wal", [False, True])
    def test_no_command_touches_them(self, foreign, filled, tiny_file, wal, capsys):
        if wal:
            with closing(sqlite3.connect(foreign)) as db:
                db.execute("PRAGMA journal_mode = WAL")
        before, files = foreign.read_bytes(), beside(foreign)
        output = str(foreign.with_name("out.json"))
        for command in (
            ["store", "show", foreign],
            ["store", "export", foreign, tiny_file, "--output", output],
            ["store", "merge", foreign, filled],
            ["store", "merge", filled, foreign],
            ["store", "merge", foreign.with_name("new.sqlite"), foreign],
            ["run", tiny_file, "--store", foreign],
        ):
            assert main([str(word) for word in command]) == 1
            err = capsys.readouterr().err
            assert f"{foreign} cannot be used as a store" in err
            assert err.count("\n") == 1
            assert (foreign.read_bytes(), beside(foreign)) == (before, files)

    @pytest.mark.parametrize("change", ["PRAGMA application_id = 77", "DROP TABLE checks"])
    def test_a_mark_of_another_program_counts_and_a_table_that_is_gone(self, change, filled):
        changed(filled, change)
        for read_only in (False, True):
            with pytest.raises(memohop.DataError, match="of something else"):
                Store(filled, read_only=read_only)

    def test_an_export_does_not_replace_the_store(self, filled, tiny_file, capsys):
        before = filled.read_bytes()
        export_it = ["store", "export", str(filled), str(tiny_file), "--output"]
        assert main([*export_it, str(filled)]) == 2
        assert "ends in .json" in capsys.readouterr().err
        named_so = filled.rename(filled.with_name("store.json"))
        assert main(["store", "export", str(named_so), str(tiny_file), "--output", str(named_so)])
        assert "the file that is read" in capsys.readouterr().err
        assert named_so.read_bytes() == before

    def test_reading_leaves_no_trace(self, filled, tiny_file, tmp_path):
        before, files = filled.read_bytes(), beside(filled)
        assert main(["store", "show", str(filled)]) == 0
        out = tmp_path / "out.json"
        assert main(["store", "export", str(filled), str(tiny_file), "--output", str(out)]) == 0
        out.unlink()
        assert (filled.read_bytes(), beside(filled)) == (before, files)

    def test_reading_beside_a_writer_sees_the_last_cell(self, filled, tiny, run):
        with closing(Store(filled)) as writer:
            run(list(tiny.cells(["official"]))[:1], writer)
            with closing(Store(filled, read_only=True)) as reader:
                assert len(reader.cells()) == 5

    def test_what_is_no_file(self, tmp_path):
        for read_only in (False, True):
            with pytest.raises(memohop.UsageError, match="is no file"):
                Store(tmp_path, read_only=read_only)


class TestVersions:
    def test_a_store_of_0_1_0_is_known_by_its_tables(self, filled, tiny, tmp_path, run):
        as_version_0_1_0(filled)
        with closing(Store(filled, read_only=True)) as store:
            assert len(store.cells()) == 4
            assert len(export(store, tiny)[0].rows) == 24
        new = tmp_path / "new.sqlite"
        with closing(Store(new)) as store:
            store.merge(filled)
            assert len(export(store, tiny)[0].rows) == 24
        merged = rows(new)
        assert len(merged["checks"]) == len(merged["runs"]) + len(merged["cells"])
        with closing(Store(filled)) as store:  # and can be gone on with
            run(list(tiny.cells()), store)
            assert len(export(store, tiny)[1]) == 0

    def test_a_store_of_0_2_0_is_read_as_it_is_and_completed_when_written(
        self, filled, tiny, tmp_path
    ):
        whole, before = rows(filled), content_of(filled, tiny)
        as_version_0_2_0(filled)
        assert len(rows(filled)["checks"]) < len(whole["checks"])
        assert content_of(filled, tiny) == before
        with closing(Store(tmp_path / "new.sqlite")) as store:
            store.merge(filled)
        assert rows(tmp_path / "new.sqlite") == whole
        Store(filled).close()
        assert rows(filled) == whole

    def test_a_damaged_cell_of_0_2_0_gets_no_digest(self, filled):
        as_version_0_2_0(filled)
        changed(filled, "UPDATE cells SET model = 'gat'")
        before = rows(filled)
        with pytest.raises(memohop.DataError, match=r"the cell \w+ is not what was written"):
            Store(filled)
        assert rows(filled) == before

    def test_a_newer_store_is_named(self, filled):
        with closing(sqlite3.connect(filled)) as db:
            db.execute("PRAGMA user_version = 99")
        with pytest.raises(memohop.DataError, match="is a store of version 99, not 2 or less"):
            Store(filled)


class TestTroubles:
    """With the disk, other programs and permissions: one error, and nothing half written."""

    def refused(self, store, tiny, run, words):
        with pytest.raises(memohop.DataError, match=words) as caught:
            run(list(tiny.cells()), store)
        assert str(store.path) in str(caught.value)

    def test_a_full_disk(self, filled, tiny, run):
        with closing(Store(filled)) as store:
            before = len(store.cells())
            pages = store.db.execute("PRAGMA page_count").fetchone()[0]
            store.db.execute(f"PRAGMA max_page_count = {pages}")
            self.refused(store, tiny, run, "cannot be written .*full.*; make room on the disk")
            assert before <= len(store.cells()) < 12

    def test_a_file_that_may_only_be_read(self, filled, tiny, run):
        with closing(Store(filled)) as store:
            store.db.execute("PRAGMA query_only = ON")
            self.refused(store, tiny, run, "cannot be written .*readonly.*; make the file and its")

    def test_a_file_that_another_program_holds(self, filled, tiny, run, monkeypatch):
        with closing(Store(filled)) as store, closing(sqlite3.connect(filled)) as other:
            store.db.execute("PRAGMA busy_timeout = 0")
            other.execute("BEGIN IMMEDIATE")
            self.refused(store, tiny, run, "cannot be written .*locked.*; another program holds")
            monkeypatch.setattr(database, "_WAIT", 0.0)
            with pytest.raises(memohop.DataError, match=r"cannot be used as a store .*locked"):
                Store(filled)

    def test_what_ended_the_work_is_told_rather_than_what_came_after(self, filled):
        def work(store):
            with Claims(store) as claims:
                claims.take("cell")
                store.db.execute("PRAGMA query_only = ON")
                raise ZeroDivisionError

        with closing(Store(filled)) as store, pytest.raises(ZeroDivisionError):
            work(store)


LOST_DIGESTS = [
    "DELETE FROM checks WHERE run = (SELECT id FROM runs WHERE rowid = 1)",
    "DELETE FROM checks WHERE run = (SELECT id FROM cells WHERE rowid = 1)",
    "DELETE FROM checks",
]


class TestDamage:
    @pytest.mark.parametrize("change", LOST_DIGESTS)
    def test_without_its_digest_nothing_is_read_or_gets_another(
        self, change, filled, tiny, tiny_file, tmp_path, capsys
    ):
        whole = tmp_path / "whole.sqlite"
        shutil.copy(filled, whole)
        if "runs" in change:
            changed(filled, "UPDATE runs SET test = test / 2 WHERE rowid = 1")
        changed(filled, change)
        for command in (
            ["export", filled, tiny_file, "--output", tmp_path / "out.json"],
            ["merge", tmp_path / "new.sqlite", filled],
            ["merge", filled, whole],
        ):
            assert main(["store", *map(str, command)]) == 1
            err = capsys.readouterr().err
            assert f"{filled} cannot be read (the digest of the " in err
            assert "is gone); the file is damaged" in err
        assert not (tmp_path / "out.json").exists()
        assert rows(tmp_path / "new.sqlite")["runs"] == []

    def test_a_run_of_0_1_0_keeps_the_digest_that_it_was_given(self, filled, tiny):
        as_version_0_1_0(filled)
        Store(filled).close()
        content_of(filled, tiny)
        changed(filled, "DELETE FROM checks WHERE run = (SELECT id FROM runs WHERE rowid = 1)")
        with pytest.raises(memohop.DataError, match=r"the digest of the run \w+ is gone"):
            content_of(filled, tiny)

    def test_a_run_without_its_digest_cannot_lean_on_an_old_store(self, filled, tiny):
        as_version_0_2_0(filled)
        changed(filled, "DELETE FROM checks")
        with pytest.raises(memohop.DataError, match=r"the digest of the run \w+ is gone"):
            content_of(filled, tiny)

    @pytest.mark.parametrize(
        "change",
        [
            "UPDATE runs SET test = test / 2",
            "UPDATE runs SET seconds = 1e9",
            "UPDATE runs SET best_epoch = epochs",
            "UPDATE runs SET content = replace(content, 'gcn', 'gat')",
            "UPDATE runs SET curves = x'00'",
            "UPDATE runs SET source = 'elsewhere'",
            "UPDATE sources SET content = replace(content, 'torch', 'numpy')",
            "UPDATE cells SET model = 'gat'",
            "UPDATE cells SET axes = '[]'",
            "UPDATE cells SET finished = 'yesterday'",
            "UPDATE cells SET finished = '2030-01-01T00:00:00+00:00'",
            "UPDATE cells SET failure = 'Traceback ...'",
            "UPDATE members SET setting = '{\"lam\": 1}'",
            "DELETE FROM members WHERE place = 0",
            "DELETE FROM runs WHERE rowid = 1",
        ],
    )
    def test_a_merge_takes_only_what_was_written_and_into_a_store_that_is_intact(
        self, change, filled, tiny, tmp_path, run
    ):
        other = tmp_path / "other.sqlite"
        with closing(Store(other)) as store:
            run(list(tiny.cells(["official"])), store)
        changed(filled, change)
        for into, taken in ((other, filled), (filled, other)):
            before = rows(into)
            with (
                closing(Store(into)) as store,
                pytest.raises(memohop.DataError, match=r"filled.sqlite cannot be read .* damaged"),
            ):
                store.merge(taken)
            assert rows(into) == before

    @pytest.mark.parametrize(
        "change", ["test = 1.5", "val = -2", "epochs = 7", "best_epoch = -1", "test = 'good'"]
    )
    def test_what_0_1_0_wrote_must_be_possible(self, change, filled, tmp_path):
        as_version_0_1_0(filled)
        changed(filled, f"UPDATE runs SET {change} WHERE rowid = 2")
        with closing(Store(tmp_path / "into.sqlite")) as store:
            with pytest.raises(memohop.DataError, match="is damaged"):
                store.merge(filled)
            assert store.cells() == {}
