"""The widest check of intervals, benchmarks/intervals.py, on a few graphs."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

sys.path.append(str(Path(__file__).parents[2] / "benchmarks"))

import intervals


def test_random_labels_of_groups_are_rarely_taken_for_a_gain(capsys):
    intervals.claims(6)
    rows = [line.split(" | ") for line in capsys.readouterr().out.splitlines() if "each" in line]
    assert [row[1] for row in rows] == ["6", "6"]
    assert all(float(cell.strip(" |%")) < 20 for row in rows for cell in row[2:])


@pytest.mark.parametrize("grouped", [True, False])
def test_hidden_nodes_are_in_no_group_that_was_learned_from(grouped):
    problem, hidden = intervals.with_hidden("accuracy", 0, grouped=grouped)
    assert (problem.masks.test == hidden).all()
    assert hidden.sum() >= 4000
    if grouped:
        assert not set(problem.groups[hidden]) & set(problem.groups[~hidden])
    learned = problem.masks.train.any(axis=1) | problem.masks.val.any(axis=1)
    assert not (learned & hidden).any()
    assert np.bincount(problem.y).min() > 0
