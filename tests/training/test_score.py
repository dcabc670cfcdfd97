"""Scores of a population against scikit-learn, one member and one part at a time."""

import numpy as np
import pytest
import torch
from sklearn.metrics import accuracy_score, roc_auc_score

from memohop.training.score import accuracy, roc_auc


def population(classes, ties=False):
    generator = torch.Generator().manual_seed(5)
    logits = torch.randn(3, 60, classes, generator=generator)
    if ties:
        logits = logits.round()
    y = torch.randint(classes, (60,), generator=generator)
    part = torch.randint(4, (3, 60), generator=generator)  # 3 stands for no part
    masks = torch.stack([part == p for p in range(3)], dim=1).float()
    return logits, y, masks


def test_accuracy():
    logits, y, masks = population(4)
    found = accuracy(logits, y, masks)
    for b in range(3):
        for p in range(3):
            chosen = masks[b, p] > 0
            expected = accuracy_score(y[chosen], logits[b].argmax(-1)[chosen])
            assert float(found[b, p]) == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize("ties", [False, True])
def test_roc_auc(ties):
    logits, y, masks = population(2, ties)
    found = roc_auc(logits, y, masks)
    for b in range(3):
        for p in range(3):
            chosen = masks[b, p] > 0
            margin = (logits[b, :, 1] - logits[b, :, 0])[chosen]
            expected = roc_auc_score(y[chosen], margin)
            assert float(found[b, p]) == pytest.approx(expected, abs=1e-6)


def test_a_member_that_diverged_scores_without_failing():
    logits, y, masks = population(2)
    logits[0] = torch.nan
    assert np.isfinite(roc_auc(logits, y, masks).numpy()).all()
