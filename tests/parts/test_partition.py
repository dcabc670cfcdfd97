"""Blocks of nodes."""

import pytest
import torch

import memohop
from memohop.parts.partition import partition
from numerics import generator

#: Two triangles, 0 2 4 and 1 3 5, joined by an arc from 4 to 5.
TRIANGLES = torch.tensor([[0, 2, 4, 1, 3, 5, 4], [2, 4, 0, 3, 5, 1, 5]])


def test_contiguous_blocks_share_the_work():
    blocks = partition(TRIANGLES, 6, 2)
    assert blocks.order.tolist() == [0, 1, 2, 3, 4, 5]
    assert blocks.starts == (0, 3, 6)
    assert (blocks.cut, blocks.arcs) == (4, 7)  # 2-4, 4-0, 3-5 ... and not 0-2, 1-3, 4-5
    assert str(blocks) == "contiguous blocks cut 4 of 7 arcs (57.1%)"


def test_metis_finds_the_triangles():
    pytest.importorskip("pymetis", reason="pymetis is not installed: pip install memohop[metis]")
    blocks = partition(TRIANGLES, 6, 2, method="metis")
    assert {tuple(blocks.nodes(0).tolist()), tuple(blocks.nodes(1).tolist())} == {
        (0, 2, 4),
        (1, 3, 5),
    }
    assert blocks.cut == 1


@pytest.mark.parametrize("blocks", [1, 2, 3, 7])
@pytest.mark.parametrize("hub", [0, 3, 6])
def test_no_block_is_empty_even_beside_a_hub(blocks, hub):
    arcs = torch.tensor([[hub] * 50, torch.randint(7, (50,), generator=generator()).tolist()])
    parts = partition(arcs, 7, blocks)
    assert len(parts) == blocks
    assert all(len(parts.nodes(block)) for block in range(blocks))
    assert torch.cat([parts.nodes(block) for block in range(blocks)]).tolist() == [*range(7)]


def test_a_graph_without_arcs_is_cut_evenly():
    blocks = partition(torch.empty(2, 0, dtype=torch.int64), 8, 4)
    assert blocks.starts == (0, 2, 4, 6, 8)
    assert str(blocks) == "contiguous blocks cut 0 of 0 arcs (0.0%)"


def test_a_method_that_there_is_not():
    with pytest.raises(memohop.UsageError, match="partition must be one of contiguous, metis"):
        partition(TRIANGLES, 6, 2, method="random")


def test_metis_that_is_not_installed_says_so(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "pymetis", None)
    with pytest.raises(memohop.UsageError, match=r"pip install 'memohop\[metis\]'"):
        partition(TRIANGLES, 6, 2, method="metis")
