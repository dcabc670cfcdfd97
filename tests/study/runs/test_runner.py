"""What is left of a cell when the training ends in the middle of it."""

from __future__ import annotations

from contextlib import closing

import pytest

from memohop.jobs.executor import Lost
from study.runs.runner import Attempt
from study.runs.store import Store
from tiny_experiment import content_of, noted


@pytest.fixture
def cell(tiny):
    """Sixteen runs in two populations."""
    (cell,) = [c for c in tiny.cells(["paper"]) if c.name == "paper csbm gcn+mmp noise=0"]
    assert len(cell.runs) == 16
    return cell


@pytest.fixture
def interrupted(quick):
    """An engine that trains one population before Ctrl-C."""

    def engine(work, jobs):
        yield next(quick(work, jobs))
        raise KeyboardInterrupt

    return engine


@pytest.fixture
def ending(quick):
    """An engine of which one of two populations ends otherwise."""

    def ending(number, otherwise):
        def engine(work, jobs):
            for place, (batch, attempt) in enumerate(quick(work, jobs)):
                yield batch, otherwise if place == number else attempt

        return engine

    return ending


def test_populations_of_an_interrupted_cell_are_not_trained_again(
    cell, store, run, quick, interrupted, tmp_path
):
    trained = []
    with pytest.raises(KeyboardInterrupt):
        run([cell], store, noted(interrupted, trained))
    assert store.cells() == {}
    assert run([cell], store, noted(quick, trained)).done == 1
    assert [len(population) for population in trained] == [8, 8]
    assert trained[0] | trained[1] == {job.id for job in cell.runs}
    with closing(Store(tmp_path / "whole.sqlite")) as whole:
        run([cell], whole)
        assert content_of(store) == content_of(whole)


def test_a_cell_has_failed_if_one_population_has(cell, store, run, quick, ending):
    trained, again = [], []
    half = ending(0, Attempt(failure="ZeroDivisionError"))
    tally = run([cell], store, noted(half, trained))
    assert (tally.done, tally.failed) == (0, [cell])
    assert store.cell(cell.id).failure == "ZeroDivisionError"
    assert not store.has(cell)
    tally = run([cell], store, noted(quick, again), retry=True)
    assert (tally.done, tally.failed, again) == (1, [], trained[:1])
    assert store.has(cell)


def test_a_cell_is_lost_if_one_population_is(cell, store, run, ending):
    tally = run([cell], store, ending(1, Lost("no RAM")))
    assert (tally.done, tally.failed, tally.lost) == (0, [], {cell.name: "no RAM"})
    assert store.cells() == {}
    assert len(store.missing(cell.runs)) == 8


def test_what_is_left_of_an_interrupted_rung_is_the_work_to_do(
    tiny_search, store, run, interrupted
):
    cells, shares = list(tiny_search.cells())[:1], []
    with pytest.raises(KeyboardInterrupt):
        run(cells, store, interrupted)
    assert 0 < len(store.missing(cells[0].runs)) < len(cells[0].runs)
    run(cells, store, watcher=lambda tally, cell, share: shares.append(share))
    assert shares == sorted(shares)
    assert shares[-1] == pytest.approx(1.0)
