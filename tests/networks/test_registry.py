"""A new model is one class and one line of the registry: commands and options follow."""

import json

import pytest
import torch
import torch.nn.functional as F

import memohop
from memohop import UsageError
from memohop.cli import main
from memohop.networks.base import GraphModel
from memohop.networks.registry import MODELS, Entry
from memohop.nn import Dropout, FeatureLinear


class Contrast(GraphModel):
    r"""What a contributor writes: :math:`\mathbf{Z} = \mathbf{H} - s\mathbf{A}\mathbf{H}`."""

    policies = GraphModel.policies | {"norm": "row"}

    def __init__(
        self, in_channels, out_channels, *, scale=1.0, dropout=0.5, input_dropout=0.0, **policies
    ):
        super().__init__(**policies)
        self.scale, self.dropout = scale, Dropout(dropout)
        self.linear = FeatureLinear(in_channels, out_channels, dropout=input_dropout)

    def forward(self, x, graph):
        hidden = self.dropout(self.linear(x))
        return hidden - self.scale * (graph @ hidden)


@pytest.fixture
def with_contrast(monkeypatch):
    monkeypatch.setitem(MODELS, "contrast", Entry(Contrast))


@pytest.mark.usefixtures("with_contrast")
def test_a_registered_class_trains_by_its_id(capsys):
    words = ["train", "csbm", "--model", "contrast", "--option", "scale=0.5", "--epochs", "5"]
    words += ["--data-option", "nodes=60", "--data-option", "splits=2", "--dropout", "0.2"]
    assert main([*words, "--json"]) == 0
    (row,) = json.loads(capsys.readouterr().out)
    assert row["model"] == "contrast"

    data = memohop.load("csbm", nodes=60, splits=2)
    members = memohop.grid(split=(0, 1), dropout=0.2)
    results = memohop.train(
        data, "contrast", members, epochs=5, options={"scale": 0.5}, keep_models=True
    )
    assert row["mean"] == pytest.approx(50 * sum(result.test for result in results), abs=1e-3)
    for result in results:
        weight, bias = result.state["linear.weight"], result.state["linear.bias"]
        hidden = data.x @ weight + bias
        matrix = torch.eye(60)
        matrix[data.edge_index[1], data.edge_index[0]] = 1
        matrix[data.edge_index[0], data.edge_index[1]] = 1
        logits = hidden - 0.5 * F.normalize(matrix, p=1) @ hidden
        correct = (logits.argmax(-1) == data.y)[data.test_mask[:, result.member.split]]
        assert float(correct.float().mean()) == pytest.approx(result.test, abs=1e-6)


@pytest.mark.usefixtures("with_contrast")
def test_its_options_are_those_of_the_class(capsys):
    assert "contrast" in memohop.models()
    assert MODELS["contrast"].options() == {
        "direction": "undirected", "self_loops": "add", "norm": "row",
        "scale": 1.0, "dropout": 0.5, "input_dropout": 0.0,
    }  # fmt: skip
    with pytest.raises(UsageError, match="contrast has no option 'heads'; it has direction, "):
        memohop.build("contrast", 3, 2, heads=2)
    assert main(["train", "csbm", "--model", "contrst"]) == 2
    assert "did you mean contrast" in " ".join(capsys.readouterr().err.split())
