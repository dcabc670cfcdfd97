"""Numbers to predict: loss and scores computed twice, and populations as for classes."""

import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from sklearn.metrics import mean_absolute_error, r2_score, root_mean_squared_error

import memohop
from memohop import Member, UsageError, grid, train
from memohop.jobs.named import Settings
from memohop.report.training import TrainingReport
from memohop.training import Rules, standardised
from memohop.training.metrics import METRICS
from memohop.training.objective import (
    Classification,
    Regression,
    TargetScaleWarning,
    UndefinedScoreWarning,
    objective_of,
)
from memohop.training.trainer import DivergedWarning
from numerics import generator, seeded
from plain_loop import RowByRow, assert_alike

SCORES = {
    "r2": r2_score,
    "mae": lambda *both: -mean_absolute_error(*both),
    "rmse": lambda *both: -root_mean_squared_error(*both),
}


@pytest.fixture
def data(numbers):
    return numbers


@pytest.fixture(scope="module")
def population():
    numbers = generator(5)
    y = torch.randn(40, generator=numbers)
    part = torch.randint(4, (3, 40), generator=numbers)  # 3 stands for no part
    masks = torch.stack([part == p for p in range(3)], dim=1).float()
    return y + 0.5 * torch.randn(3, 40, generator=numbers), y, masks


@pytest.mark.parametrize("name", SCORES)
def test_scores_are_those_of_scikit_learn(name, population):
    outputs, y, masks = population
    scores = METRICS[name].score(outputs[..., None], y, masks)
    unknown = torch.where(masks[0].any(0), y, torch.nan)
    assert torch.equal(METRICS[name].score(outputs[:1, :, None], unknown, masks[:1]), scores[:1])
    in_double = METRICS[name].score(outputs[..., None], y.double(), masks)
    for b in range(3):
        for p in range(3):
            chosen = masks[b, p] > 0
            expected = SCORES[name](y[chosen].double(), outputs[b, chosen].double())
            assert float(scores[b, p]) == pytest.approx(expected, rel=1e-5)
            assert float(in_double[b, p]) == pytest.approx(expected, rel=1e-5)
            weighted = METRICS[name].weighted(y[chosen].numpy(), outputs[b, chosen].numpy(), None)
            assert weighted == pytest.approx(expected, rel=1e-5)


def test_r2_is_0_for_the_mean_of_a_part_and_undefined_for_one_value():
    y = torch.tensor([1.0, 3.0, 0.1, 0.1, 0.1])
    masks = torch.tensor([[[1.0, 1, 0, 0, 0], [0, 0, 1, 1, 1], [0, 0, 0, 0, 0]]])
    scores = METRICS["r2"].score(torch.full((1, 5, 1), 2.0), y, masks)
    assert scores[0, 0] == 0
    assert scores[0, 1:].isnan().all()


def test_the_loss_is_the_weighted_squared_error_of_one_member_and_of_many(population):
    outputs, y, masks = population
    loss, weights = Regression(METRICS["r2"]).loss, masks[:, 0] * torch.rand(3, 40)
    squared = (outputs.double() - y.double()) ** 2
    expected = (squared * weights.double()).sum(1) / weights.double().sum(1)
    torch.testing.assert_close(loss(outputs[..., None], y, weights).double(), expected)
    alone = loss(outputs[1, :, None], y, weights[1])
    torch.testing.assert_close(alone.double(), expected[1])


def test_the_type_of_y_decides_and_the_metric_has_to_fit(data):
    assert objective_of(data) == Regression(METRICS["r2"])
    assert objective_of(data).is_regression
    assert objective_of(data).outputs(data.y) == 1
    classes = data.clone()
    classes.y = (data.y > 0).long()
    assert objective_of(classes) == Classification(METRICS["accuracy"])
    assert not objective_of(classes).is_regression
    classes.metric, data.metric = "mae", "roc_auc"
    with pytest.raises(UsageError, match=r"mae, a score for numbers.*int64 .*classes.*accuracy"):
        train(classes, "gcn", [Member()], epochs=1)
    with pytest.raises(UsageError, match=r"roc_auc, a score for classes.*float64.*r2, mae, rmse"):
        train(data, "gcn", [Member()], epochs=1)


@pytest.mark.parametrize("name", memohop.models())
def test_every_model_puts_out_a_number(name):
    graph = memohop.load("csbm", nodes=30, channels=4, splits=1, seed=seeded(3))
    del graph.metric
    graph.y = graph.x.sum(1)
    results = train(standardised(graph)[0], name, grid(seed=(0, 1), lam=0.1), epochs=2)
    assert all(np.isfinite(result.loss_curve).all() for result in results)


def test_targets_outside_the_masks_change_nothing(data):
    expected = train(data, "gcn+mmp", grid(seed=(0, 1)), epochs=4)
    hidden = data.clone()
    outside = ~(data.train_mask | data.val_mask | data.test_mask)[:, 0]
    tested = data.test_mask[:, 0]
    hidden.test_mask = data.test_mask.clone()
    spared = tested.nonzero()[:3, 0]
    hidden.test_mask[spared, 0] = False
    for name in ("train_mask", "val_mask", "test_mask"):
        hidden[name] = hidden[name][:, 0]
    hidden.y = data.y.clone()
    hidden.y[spared], hidden.y[outside] = torch.nan, torch.inf
    others = tested.nonzero()[3:, 0]
    hidden.y[others] = hidden.y[others].flip(0)
    results = train(hidden, "gcn+mmp", grid(seed=(0, 1)), epochs=4)
    assert_alike(
        [replace(result, test=0) for result in results],
        [replace(result, test=0) for result in expected],
    )


@pytest.mark.parametrize("metric", ["mae", "rmse"])
@pytest.mark.parametrize("keep", ["first", "latest", "loss", "both"])
def test_errors_are_scored_by_their_negative(metric, keep, data):
    data.metric = metric
    data.y = 5 * data.y  # below -1 from the start
    result = train(data, "mlp", grid(seed=(0, 1), lr=0.02), epochs=20, rules=Rules(keep=keep))[0]
    assert (result.val_curve < -1).any()
    assert result.val == pytest.approx(result.val_curve[result.best_epoch])
    if keep == "first":
        assert result.best_epoch == int(result.val_curve.argmax())


@pytest.mark.parametrize("metric", ["mae", "rmse"])
def test_an_error_that_grows_ends_the_training(metric, data):
    data.metric = metric
    patient = train(data, "mlp", [Member(lr=0.02)], epochs=400, patience=5)[0]
    assert patient.epochs == patient.best_epoch + 6 < 400


def test_a_part_with_one_value(data):
    def graph(part, metric):
        changed = data.clone()
        changed.y, changed.metric = data.y.clone(), metric
        changed.y[data[f"{part}_mask"][:, 1]] = 0.5
        return changed

    for metric in SCORES:
        with pytest.raises(UsageError, match="training nodes of split 1 all have one target"):
            train(graph("train", metric), "mlp", [Member(split=1)], epochs=1)
    with pytest.raises(UsageError, match=r"validation nodes of split 1 .*metric to mae or rmse"):
        train(graph("val", "r2"), "mlp", [Member(split=1)], epochs=1)
    assert not train(graph("val", "r2"), "mlp", [Member(split=0)], epochs=1)[0].diverged
    assert train(graph("val", "mae"), "mlp", [Member(split=1)], epochs=1)[0].val < 0
    with pytest.warns(UndefinedScoreWarning, match=r"R2 cannot .* NaN in 1 of the 2 split\(s\)"):
        results = train(graph("test", "r2"), "mlp", grid(split=(0, 1)), epochs=1)
    assert [math.isnan(result.test) for result in results] == [False, True]
    assert not any(result.diverged for result in results)


def test_balanced_classes_are_refused(data):
    with pytest.raises(UsageError, match="class_weight='balanced' is for classes"):
        train(data, "gcn", [Member()], epochs=1, rules=Rules(class_weight="balanced"))


def test_outputs_so_large_that_their_squares_overflow_are_no_scores():
    objective = Regression(METRICS["r2"])
    graph = memohop.load("csbm", nodes=30, channels=4, splits=1)
    del graph.metric
    graph.y = graph.x.sum(1)
    graph, _ = standardised(graph)
    rules = Rules(optimiser="sgd")
    with pytest.warns(DivergedWarning):
        (result,) = train(graph, "mlp", [Member(lr=1e30, weight_decay=0)], epochs=1, rules=rules)
    assert result.diverged
    assert math.isnan(result.val)
    huge = torch.full((1, 2, 1), 1e30)
    assert objective.scores(huge, torch.zeros(2), torch.ones(1, 1, 2)).isnan().all()


def test_a_scale_that_networks_do_not_learn_is_told_and_can_be_changed(data):
    raw = data.clone()
    raw.y = 2e5 + 8e4 * data.y
    with pytest.warns(
        TargetScaleWarning, match=r"split 1 have mean [12].*e\+05 and .*standardised"
    ):
        train(raw, "mlp", [Member(split=1)], epochs=1)
    scaled, scale = standardised(raw)
    learnt = raw.train_mask.any(1)
    assert (scale.mean, scale.spread) == pytest.approx(
        (float(raw.y[learnt].mean()), float(raw.y[learnt].std(correction=0)))
    )
    torch.testing.assert_close(scale.restore(scaled.y), raw.y)
    train(scaled, "mlp", [Member(split=1)], epochs=1)  # without a warning
    classes = data.clone()
    classes.y = (data.y > 0).long()
    with pytest.raises(UsageError, match="it holds classes"):
        standardised(classes)


def test_a_module_of_others_puts_out_one_column(data):
    class Flat(RowByRow):
        def forward(self, x, edge_index):
            return super().forward(x, edge_index)[:, 0]

    for build in (lambda: RowByRow(6, 2), lambda: Flat(6, 1)):
        with pytest.raises(UsageError, match=r"it must be \[nodes, 1\]"):
            train(data, build, [Member()], epochs=1)
    results = train(data, lambda: RowByRow(6, 1), grid(split=(0, 1), lr=0.05), epochs=100)
    assert all(result.loss_curve[-1] < result.loss_curve[0] for result in results)


def test_errors_are_shown_in_the_unit_of_the_target(data):
    data.metric = "mae"
    jobs = [Settings().job("csbm", "mlp").at(split, 0) for split in (0, 1)]
    results = train(data, "mlp", [job.member for job in jobs], epochs=5)
    report = TrainingReport(
        jobs=jobs, results=results, metric=METRICS["mae"], protocol=None, how={}, seconds=1.0
    )
    row, tests = report.row(), np.array([-result.test for result in results])
    assert (row["metric"], row["unit"]) == ("mae", "the target's unit")
    assert row["mean"] == pytest.approx(tests.mean(), rel=1e-5)
    assert row["std"] == pytest.approx(tests.std(ddof=1), rel=1e-5)
    assert row["val"] == pytest.approx(-np.mean([result.val for result in results]), rel=1e-5)
    assert report.score() == f"{row['mean']:.4g} ± {row['std']:.4g}"
    assert report.legend().startswith("mean absolute error in the target's unit; validation")


@pytest.mark.parametrize(
    ("metric", "score", "shown", "number"),
    [
        ("r2", 0.81234567, "81.23", 81.2346),
        ("r2", -3.5, "-350.00", -350.0),
        ("mae", -12345.678, "12346", 12345.7),
        ("mae", -0.000123456789, "0.0001235", 0.000123457),
        ("rmse", math.nan, "-", None),
    ],
)
def test_how_scores_are_shown(metric, score, shown, number):
    assert METRICS[metric].text(score) == shown
    assert METRICS[metric].in_unit(score) == number
    assert METRICS[metric].gap_text(0.5) == ("50.00" if metric == "r2" else "0.5")
    assert METRICS[metric].gap_in_unit(-0.5) == (-50.0 if metric == "r2" else -0.5)
