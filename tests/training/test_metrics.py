"""Scores of a population against scikit-learn, one member and one part at a time."""

import itertools

import pytest
import sklearn.metrics
import torch

from memohop.training.metrics import METRICS, Interval
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


@pytest.mark.filterwarnings("ignore:y_pred contains classes not in y_true:UserWarning")
@pytest.mark.parametrize(
    ("name", "expected", "ties"),
    [
        ("accuracy", sklearn.metrics.accuracy_score, False),
        ("balanced_accuracy", sklearn.metrics.balanced_accuracy_score, False),
        ("roc_auc", sklearn.metrics.roc_auc_score, False),
        ("roc_auc", sklearn.metrics.roc_auc_score, True),
        ("average_precision", sklearn.metrics.average_precision_score, False),
        ("average_precision", sklearn.metrics.average_precision_score, True),
    ],
)
def test_scores_are_those_of_scikit_learn(name, expected, ties):
    metric = METRICS[name]
    logits, y, masks = population(2 if metric.is_ranking else 4, ties)
    scores = metric.score(logits, y, masks)
    said = logits[..., 1] - logits[..., 0] if metric.is_ranking else logits.argmax(-1)
    for b, p in itertools.product(range(3), range(3)):
        chosen = masks[b, p] > 0
        right = expected(y[chosen], said[b, chosen])
        assert float(scores[b, p]) == pytest.approx(right, abs=1e-6)


def test_a_class_that_a_part_lacks_does_not_count():
    logits = torch.eye(3)[None, [0, 1, 1, 2]]
    y, masks = torch.tensor([0, 1, 0, 2]), torch.tensor([[[1.0, 1, 1, 0]]])
    score = METRICS["balanced_accuracy"].score
    assert float(score(logits, y, masks)) == pytest.approx(0.75)


def test_a_member_that_diverged_has_no_score():
    logits, y, masks = population(2)
    logits[0, 3, 1] = torch.nan
    logits[1, 0, 0] = torch.inf
    for metric in METRICS.values():
        scores = Classification(metric).scores(logits, y, masks)
        assert scores[:2].isnan().all()
        assert torch.equal(scores[2:], metric.score(logits[2:], y, masks[2:]))


@pytest.mark.parametrize("name", ["roc_auc", "average_precision"])
@pytest.mark.parametrize("label", [0, 1])
def test_a_ranking_of_one_class_has_no_score(name, label):
    logits, masks = torch.tensor([[[0.0, 1.0], [1.0, 0.0], [0.0, 2.0]]]), torch.ones(1, 1, 3)
    assert METRICS[name].score(logits, torch.full((3,), label), masks).isnan().all()


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
    interval = Interval((low + high) / 2, low, high, 0.95)
    assert (interval.above_zero, interval.below_zero, interval.says_nothing) == said
