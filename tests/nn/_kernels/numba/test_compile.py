"""Numba's settings belong to the program that imports us. These tests need Numba."""

import subprocess
import sys

import pytest

pytest.importorskip("numba", reason="Numba is not installed")

import numba
from numba.core import event

from memohop.nn._kernels.numba.compile import jit, jit_in_any_order


def settings():
    return {name: value for name, value in vars(numba.config).items() if name.isupper()}


class Switch(event.Listener):
    """Notes how the switch stands whenever a function is compiled."""

    def __init__(self):
        self.seen = []

    def on_start(self, event):
        self.seen.append(numba.config.SLP_VECTORIZE)

    def on_end(self, event):
        pass


def doubled(value):
    return value + value


@pytest.mark.parametrize("compiled", [jit, jit_in_any_order])
@pytest.mark.parametrize("theirs", [0, 1])
def test_the_switch_is_ours_while_our_loops_are_compiled_and_no_longer(
    monkeypatch, compiled, theirs
):
    monkeypatch.setattr(numba.config, "SLP_VECTORIZE", theirs)
    before, loop, switch = settings(), compiled(doubled), Switch()
    assert loop(2.0) == 4
    with event.install_listener("numba:compile", switch):
        loop.recompile()
        assert settings() == before
        numba.njit(doubled)(2.0)
    assert switch.seen == [1, theirs]


def test_it_is_given_back_where_a_loop_cannot_be_compiled():
    before = settings()
    with pytest.raises(numba.TypingError):
        jit(doubled)(object())
    assert settings() == before


def test_a_program_that_uses_the_kernels_keeps_its_settings():
    program = """
import numba
before = dict(vars(numba.config))
import torch
from memohop.nn._kernels.numba.kernels import row_sums
from memohop.nn._ops.pattern import Pattern
pattern = Pattern(torch.tensor([0, 0, 1]), torch.tensor([0, 1, 1]), (2, 2))
assert row_sums(torch.ones(1, 3), pattern).tolist() == [[2, 1]]
after = dict(vars(numba.config))
assert after == before, {name for name in after if after[name] != before.get(name)}
"""
    subprocess.run([sys.executable, "-W", "ignore", "-c", program], check=True)
