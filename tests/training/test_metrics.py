"""Scores of a population against scikit-learn, one member and one part at a time."""

import pytest
import torch
from sklearn.metrics import (
    accuracy_score,
    average_precision_score,
    balanced_accuracy_score,
    roc_auc_score,
)

from memohop.training.metrics import (
    METRICS,
    Interval,
    accuracy,
    average_precision,
    balanced_accuracy,
    roc_auc,
)
from memohop.training.objective import Classification
from numerics import generator


def population(classes, ties=False):
    numbers = generator(5)
    logits = torch.randn(3, 60, classes, generator=numbers)
    if ties:
        logits = logits.round()
    y = torch.randint(classes, (60,), generator=numbers)
    part = torch.randint(4, (3, 60), generator=numbers)  # 3 stands for no part
    masks = torch.stack([part == p for p in range(3)], dim=1).float()
    return logits, y, masks


def margin(logits):
    return logits[:, 1] - logits[:, 0]


@pytest.mark.filterwarnings("ignore:y_pred contains classes not in y_true:UserWarning")
@pytest.mark.parametrize(
    ("score", "expected", "of", "classes", "ties"),
    [
        (accuracy, accuracy_score, lambda logits: logits.argmax(-1), 4, False),
        (balanced_accuracy, balanced_accuracy_score, lambda logits: logits.argmax(-1), 4, False),
        (roc_auc, roc_auc_score, margin, 2, False),
        (roc_auc, roc_auc_score, margin, 2, True),
        (average_precision, average_precision_score, margin, 2, False),
        (average_precision, average_precision_score, margin, 2, True),
    ],
)
def test_scores_are_those_of_scikit_learn(score, expected, of, classes, ties):
    logits, y, masks = population(classes, ties)
    scores = score(logits, y, masks)
    for b in range(3):
        for p in range(3):
            chosen = masks[b, p] > 0
            right = expected(y[chosen], of(logits[b])[chosen])
            assert float(scores[b, p]) == pytest.approx(right, abs=1e-6)


def test_a_class_that_a_part_lacks_does_not_count():
    logits = torch.eye(3)[None, [0, 1, 1, 2]]
    y, masks = torch.tensor([0, 1, 0, 2]), torch.tensor([[[1.0, 1, 1, 0]]])
    assert float(balanced_accuracy(logits, y, masks)) == pytest.approx(0.75)


def test_a_member_that_diverged_has_no_score():
    logits, y, masks = population(2)
    logits[0, 3, 1] = torch.nan
    logits[1, 0, 0] = torch.inf
    for metric in METRICS.values():
        found = Classification(metric).scores(logits, y, masks)
        assert found[:2].isnan().all()
        assert torch.equal(found[2:], metric.score(logits[2:], y, masks[2:]))


@pytest.mark.parametrize("score", [roc_auc, average_precision])
@pytest.mark.parametrize("label", [0, 1])
def test_a_ranking_of_one_class_has_no_score(score, label):
    logits, masks = torch.tensor([[[0.0, 1.0], [1.0, 0.0], [0.0, 2.0]]]), torch.ones(1, 1, 3)
    assert score(logits, torch.full((3,), label), masks).isnan().all()


@pytest.mark.parametrize(
    ("low", "high", "said"),
    [
        (0.1, 0.2, (True, False, False)),
        (-0.2, -0.1, (False, True, False)),
        (-0.2, 0.1, (False, False, False)),
        (-1.0, 1.0, (False, False, True)),
        (-7.0, 3.0, (False, False, False)),
    ],
)
def test_what_an_interval_says(low, high, said):
    found = Interval((low + high) / 2, low, high, 0.95)
    assert (found.above_zero, found.below_zero, found.says_nothing) == said
