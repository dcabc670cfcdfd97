"""What is left of a cell when the training ends in the middle of it."""

from __future__ import annotations

import pytest

from memohop.jobs.executor import Lost
from study.runs.runner import Attempt
from study.runs.store import Store
from tiny_experiment import content_of
from tiny_search import search_file as search_file
from tiny_search import tiny_search as tiny_search


@pytest.fixture
def cell(tiny):
    """Sixteen runs in two populations."""
    (found,) = [c for c in tiny.cells(["paper"]) if c.name == "paper csbm gcn+mmp noise=0"]
    assert len(found.runs) == 16
    return found


@pytest.fixture
def interrupted(quick):
    """An engine that trains one population before Ctrl-C."""

    def engine(work, jobs, inner):
        yield next(quick(work, jobs, inner))
        raise KeyboardInterrupt

    return engine


def noted(engine, trained):
    """The engine, and the runs that it trains."""

    def noting(work, jobs, inner):
        for job, attempt in engine(work, jobs, inner):
            trained.append({run.id for run in job.runs})
            yield job, attempt

    return noting


def test_populations_of_an_interrupted_cell_are_not_trained_again(
    cell, store, run, quick, interrupted, tmp_path
):
    first, then = [], []
    with pytest.raises(KeyboardInterrupt):
        run([cell], store, noted(interrupted, first))
    assert store.cells() == {}
    tally = run([cell], store, noted(quick, then))
    assert (tally.done, [len(one) for one in first + then]) == (1, [8, 8])
    assert first[0] | then[0] == {one.id for one in cell.runs}
    whole = Store(tmp_path / "whole.sqlite")
    run([cell], whole)
    assert content_of(store) == content_of(whole)
    whole.close()


def test_a_cell_has_failed_if_one_population_has(cell, store, run, quick):
    def half(work, jobs, inner):
        for number, (job, attempt) in enumerate(quick(work, jobs, inner)):
            yield job, attempt if number else Attempt(failure="ZeroDivisionError")

    trained, again = [], []
    tally = run([cell], store, noted(half, trained))
    assert (tally.done, tally.failed) == (0, [cell])
    assert store.cell(cell.id).failure == "ZeroDivisionError"
    assert not store.has(cell)
    tally = run([cell], store, noted(quick, again), retry=True)
    assert (tally.done, tally.failed, again) == (1, [], trained[:1])
    assert store.has(cell)


def test_a_cell_is_lost_if_one_population_is(cell, store, run, quick):
    def half(work, jobs, inner):
        for number, (job, attempt) in enumerate(quick(work, jobs, inner)):
            yield job, Lost("no RAM") if number else attempt

    tally = run([cell], store, half)
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
