"""The positions of the entries of a matrix, both ways; products are in ``test_derivatives.py``."""

import numpy as np
import pytest
import torch

from memohop.errors import UsageError
from memohop.nn._ops.pattern import Pattern

ROW, COL, SHAPE = [0, 0, 1, 3, 3, 3], [1, 4, 0, 0, 2, 4], (4, 5)
NAMES = ("pointers", "row", "col", "row_start", "order")


def pattern() -> Pattern:
    return Pattern(torch.tensor(ROW), torch.tensor(COL), SHAPE)


def test_a_pattern_and_its_transpose_hold_the_same_entries():
    here, values = pattern(), torch.arange(1.0, 7.0)
    full = torch.zeros(SHAPE)
    full[ROW, COL] = values
    turned = here.transpose
    for way, turns, expected in (
        (here, values, full),
        (turned, values[here.order], full.t()),
        (turned.transpose, values[here.order][turned.order], full),
        (here.to("cpu").transpose, values[here.order], full.t()),
    ):
        assert torch.equal(way.csr(turns).to_dense(), expected)
        assert np.array_equal(way.matrix(turns.numpy()).toarray(), expected.numpy())
    assert here.row.tolist() == ROW
    assert here.row_start.tolist() == [0, 0, 2, 3, 3, 3]


def test_a_symmetric_pattern_is_its_own_transpose():
    row, col = torch.tensor([0, 0, 1, 2, 2, 3]), torch.tensor([1, 2, 0, 0, 3, 2])
    plain = Pattern(row, col, (4, 4))
    once = Pattern.symmetric(plain.pointers, plain.col)
    assert once.transpose is once
    for made, expected in ((once, plain), (once.to("cpu"), plain.transpose)):
        for name in NAMES:
            assert torch.equal(getattr(made, name), getattr(expected, name)), name


def test_what_is_made_inside_a_transform_outlives_it():
    here = pattern()
    torch.func.grad(lambda factor: sum(factor * getattr(here, name).sum() for name in NAMES))(
        torch.tensor(1.0)
    )
    for name in NAMES:
        assert not torch._C._functorch.is_functorch_wrapped_tensor(getattr(here, name)), name


def test_more_entries_than_32_bits_count_are_refused(monkeypatch):
    monkeypatch.setattr("memohop.nn._ops.pattern._MOST", 5)
    with pytest.raises(UsageError, match=r"with 6 entries is too large.*workers=2 or more"):
        pattern()
    with pytest.raises(UsageError, match="too large"):
        Pattern.symmetric(torch.arange(7), torch.zeros(6, dtype=torch.int32))


def test_pieces_of_long_rows_add_up(monkeypatch):
    monkeypatch.setattr("memohop.nn._ops.pattern._PIECE", 2)
    row = torch.tensor([0, 0, 0, 2, 2, 3, 3, 3, 3, 3])
    here = Pattern(row, torch.tensor([0, 1, 2, 0, 3, 0, 1, 2, 3, 4]), (5, 5))
    starts, of_rows = here.pieces
    assert starts.tolist() == [0, 2, 3, 5, 7, 9, 10]  # none is longer than two
    assert starts[of_rows.long()].tolist() == here.pointers.tolist()
    assert Pattern(row[3:5], row[3:5], (5, 5)).pieces is None
