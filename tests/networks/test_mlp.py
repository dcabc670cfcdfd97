"""The variants of the perceptron that H2GCN's authors chose between."""

import pytest
import torch

from memohop.networks import build
from numerics import generator

pytestmark = pytest.mark.usefixtures("float64")


def test_without_rectifier_and_biases_it_is_a_linear_map():
    network = build("mlp", 5, 3, relu=False, bias=False).eval()
    x = torch.randn(7, 5, generator=generator())
    assert {name for name, _ in network.named_parameters()} == {"first.weight", "later.0.weight"}
    weight = network.first.weight @ network.later[0].weight.t()
    torch.testing.assert_close(network(x), x @ weight)
