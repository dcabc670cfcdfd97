"""Networks in float32, where kernels serve them, against the same networks in float64."""

import pytest
import torch

from memohop import build, models
from memohop.networks.registry import entry
from memohop.nn import SparseFeatures, epoch_key, randomness
from numerics import assert_rounded, generator, in_float64, with_parameters

ARCS = torch.tensor([[0, 1, 1, 2, 0, 3], [1, 0, 2, 0, 2, 1]])
NODES, FEATURES, CLASSES = 6, 5, 3


@pytest.mark.parametrize("training", [False, True])
@pytest.mark.parametrize("name", models())
def test_float32_gives_what_float64_gives(name, training):
    options = {"hidden_channels": 64, "num_layers": 2}
    known = {key: value for key, value in options.items() if key in entry(name).options()}
    network = build(name, FEATURES, CLASSES, num_nodes=NODES, **known).train(training)
    x = torch.rand(NODES, FEATURES, generator=generator()) + 0.1

    def logits(network, x):
        graph = network.prepare(ARCS, NODES)
        with randomness(epoch_key(torch.tensor(4), torch.tensor(2))):
            output = network(SparseFeatures(x), graph)
        return output[0] if isinstance(output, tuple) else output

    def exact(x, *parameters):
        with in_float64():
            return logits(*with_parameters([network], parameters), x)

    # Features, then up to eleven steps of neighbours and of two states.
    length = FEATURES + 11 * (NODES + 2 * 64)
    with torch.no_grad():
        assert_rounded(logits(network, x), exact, x, *network.parameters(), length=length)
