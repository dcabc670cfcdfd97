"""A metric is one object from the trainer to the tables, and the loss is the cross-entropy."""

import json
from dataclasses import replace

import pytest
import torch
import torch.nn.functional as F
from sklearn.metrics import f1_score

import memohop
from memohop.cli import main
from memohop.data.datasets import registry
from memohop.training.metrics import METRICS, Metric
from memohop.training.objective import Classification
from numerics import generator


def f1(logits, y, masks):
    """The F1 score of a class, 2 hits / (nodes of it + nodes taken for it), mean over classes."""
    truth = F.one_hot(y, logits.shape[-1]).to(logits.dtype)
    said = F.one_hot(logits.argmax(-1), logits.shape[-1]).to(logits.dtype)
    hits, both = masks @ (truth * said), masks @ (truth + said)
    return (2 * hits / both.clamp(min=1)).sum(-1) / (both > 0).sum(-1)


@pytest.fixture
def with_f1(monkeypatch):
    """A graph that is scored by a metric which the library does not have."""
    metric = Metric("macro_f1", "mean F1 score", f1, "f1_score", options={"average": "macro"})
    monkeypatch.setitem(METRICS, metric.id, metric)
    info = replace(registry.describe("csbm"), metric=metric.id)
    monkeypatch.setitem(registry._TABLE, "csbm", info)
    return memohop.load("csbm", nodes=62, splits=2)  # a size of its own: commands remember graphs


def f1_on_test(data, result):
    network = memohop.build("mlp", data.num_features, int(data.y.max()) + 1).eval()
    network.load_state_dict(result.state)
    chosen = data.test_mask[:, result.member.split]
    said = network(data.x, network.prepare_data(data, torch.device("cpu"))).argmax(-1)
    return f1_score(data.y[chosen], said[chosen], average="macro")


def test_a_new_metric_is_trained_by_and_printed(with_f1, capsys):
    members = memohop.grid(split=(0, 1))
    results = memohop.train(with_f1, "mlp", members, epochs=5, keep_models=True)
    expected = [f1_on_test(with_f1, result) for result in results]
    assert [result.test for result in results] == pytest.approx(expected, abs=1e-6)

    words = ["train", "csbm", "--model", "mlp", "--epochs", "5"]
    words += ["--data-option", "nodes=62", "--data-option", "splits=2"]
    assert main([*words, "--json"]) == 0
    (row,) = json.loads(capsys.readouterr().out)
    assert (row["metric"], row["unit"]) == ("macro_f1", "percent")
    assert row["mean"] == pytest.approx(50 * sum(expected), abs=1e-3)
    assert main(words) == 0
    table = capsys.readouterr().out
    assert f"{row['mean']:.2f} ± {row['std']:.2f}" in table
    assert "mean F1 score in percent; validation" in table


def test_a_new_metric_is_fitted_by_and_kept(with_f1, tmp_path):
    given = {"trials": 1, "splits": 2, "epochs": 3}
    classifier = memohop.MMPClassifier(metric="macro_f1", **given).fit(with_f1, split=0)
    assert classifier.report_.rows()[0]["metric"] == "macro_f1"
    assert classifier.report_.legend().startswith("mean F1 score in percent")
    expected = f1_score(with_f1.y, classifier.predict(with_f1), average="macro")
    assert classifier.score(with_f1) == pytest.approx(expected)
    classifier.save(tmp_path / "model")
    assert "test, mean F1 score in percent |" in (tmp_path / "model" / "README.md").read_text()
    assert memohop.MMPClassifier.load(tmp_path / "model").report_ == classifier.report_


def test_every_dataset_has_a_metric_that_there_is():
    assert {registry.describe(name).metric for name in registry.datasets()} <= METRICS.keys()


def test_the_loss_is_the_weighted_cross_entropy_of_one_member_and_of_many(float64):
    numbers = generator(3)
    logits = torch.randn(2, 7, 3, generator=numbers)
    y = torch.randint(3, (7,), generator=numbers)
    weights = torch.rand(2, 7, generator=numbers)
    loss = Classification(METRICS["accuracy"]).loss
    per_node = [F.cross_entropy(scores, y, reduction="none") for scores in logits]
    expected = [(losses * w).sum() / w.sum() for losses, w in zip(per_node, weights, strict=True)]
    torch.testing.assert_close(loss(logits, y, weights), torch.stack(expected))
    torch.testing.assert_close(loss(logits[1], y, weights[1]), expected[1])
