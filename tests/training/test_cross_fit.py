"""Outputs for validation nodes of epochs that other validation nodes have chosen."""

from __future__ import annotations

import numpy as np
import torch

import memohop
from memohop.training._rules import CrossFit
from memohop.training.metrics import METRICS
from memohop.training.objective import Classification
from memohop.training.task import Task
from plain_loop import assert_alike

Y = torch.tensor([0, 1, 0, 1, 0, 1, 0])
VAL = torch.tensor([[1, 1, 1, 1, 0, 0, 0], [0, 0, 1, 1, 1, 1, 1]])


def task():
    masks = torch.stack([1 - VAL, VAL, torch.zeros_like(VAL)], dim=1).float()
    return Task((None, None), Y, masks, Classification(METRICS["accuracy"]))


def logits(*predicted, sure=1.0):
    """Of one member, with these classes and this margin."""
    return sure * torch.nn.functional.one_hot(torch.tensor(predicted), 2).float()


def slow(epochs, split):
    """For each group in turn, the outputs of the epoch that is best on the other groups."""
    rows = np.flatnonzero(VAL[split].numpy()).tolist()
    by_class = sorted(rows, key=lambda row: (Y[row], row))
    outputs = {}
    for group in range(5):
        other = [row for row in rows if by_class.index(row) % 5 != group]
        scores = [(epoch[other].argmax(-1) == Y[other]).float().mean() for epoch in epochs]
        best = max(range(len(epochs)), key=scores.__getitem__)
        outputs |= {row: epochs[best][row] for row in by_class[group::5]}
    return torch.stack([outputs[row] for row in rows])


def test_each_group_gets_the_epoch_that_is_best_on_the_others():
    generator = torch.Generator().manual_seed(0)
    epochs = torch.randn(12, 3, 7, 2, generator=generator)  # of three members
    split = torch.tensor([0, 1, 1])
    cross = CrossFit(task(), split)
    for outputs in epochs:
        cross.look(outputs, torch.ones(3, dtype=torch.bool))
    for member, of in enumerate(split.tolist()):
        assert torch.equal(cross.of(member), slow(epochs[:, member], of))
    cross.select(torch.tensor([2]))
    assert torch.equal(cross.of(0), slow(epochs[:, 2], 1))


def test_a_member_that_has_stopped_takes_no_further_epoch():
    cross = CrossFit(task(), torch.tensor([0]))
    wrong, right = (logits(*predicted)[None] for predicted in ((1 - Y).tolist(), Y.tolist()))
    cross.look(wrong, torch.ones(1, dtype=torch.bool))
    cross.look(right, torch.zeros(1, dtype=torch.bool))
    assert torch.equal(cross.of(0), wrong[0, :4])


def test_a_node_without_others_gets_the_last_epoch():
    mask = torch.zeros(1, 3, 7)
    mask[0, 1, 2] = 1  # a single validation node
    alone = Task((None, None), Y, mask, Classification(METRICS["accuracy"]))
    cross = CrossFit(alone, torch.tensor([0]))
    for sure in (1.0, 2.0):
        cross.look(logits(*Y.tolist(), sure=sure)[None], torch.ones(1, dtype=torch.bool))
    assert cross.of(0).tolist() == [[2.0, 0.0]]


def test_noise_looks_no_better_than_it_is():
    """The best of many epochs of pure noise is right on more than half of the nodes."""
    generator = torch.Generator().manual_seed(0)
    y = torch.arange(2000) % 2
    masks = torch.stack([torch.zeros(2000), torch.ones(2000), torch.zeros(2000)])[None]
    noise = Task((None, None), y, masks, Classification(METRICS["accuracy"]))
    cross, best = CrossFit(noise, torch.tensor([0])), 0.0
    for _ in range(200):
        outputs = torch.randn(1, 2000, 2, generator=generator)
        cross.look(outputs, torch.ones(1, dtype=torch.bool))
        best = max(best, float((outputs[0].argmax(-1) == y).float().mean()))
    spread = 0.5 / 2000**0.5
    assert best > 0.5 + 2 * spread
    assert abs(float((cross.of(0).argmax(-1) == y).float().mean()) - 0.5) < 3 * spread


def test_results_carry_them_and_nothing_else_changes():
    data = memohop.load("csbm", nodes=80, homophily=0.3)
    members = memohop.grid(split=(0, 2), lr=(0.01, 0.05))
    plain = memohop.train(data, "gcn", members, epochs=15, patience=4)
    crossed = memohop.train(data, "gcn", members, epochs=15, patience=4, cross_fit=True)
    assert_alike(crossed, plain)
    for result, with_outputs in zip(plain, crossed, strict=True):
        assert result.val_outputs is None
        count = int(data.val_mask[:, result.member.split].sum())
        assert with_outputs.val_outputs.shape == (count, int(data.y.max()) + 1)
