"""Batch normalisation against PyTorch's, alone and in a population."""

import pytest
import torch
from torch import nn
from torch.func import functional_call, stack_module_state, vmap

from memohop.nn import BatchNorm
from numerics import generator

pytestmark = pytest.mark.usefixtures("float64")

NODES, WIDTH = 7, 4


def hidden(*shape, seed=0):
    return 3 * torch.randn(*shape, NODES, WIDTH, generator=generator(seed)) + 2


def with_other_parameters(ours, seed=0):
    numbers = generator(seed)
    with torch.no_grad():
        for parameter in ours.parameters():
            parameter.uniform_(-1, 1, generator=numbers)
    return ours


def twin(ours):
    """PyTorch's layer with the same parameters."""
    theirs = nn.BatchNorm1d(WIDTH, eps=ours.epsilon, momentum=ours.momentum)
    with torch.no_grad():
        theirs.weight.copy_(ours.weight)
        theirs.bias.copy_(ours.bias)
    return theirs


def assert_same_statistics(mean, variance, theirs):
    torch.testing.assert_close(mean, theirs.running_mean)
    torch.testing.assert_close(variance, theirs.running_var)


@pytest.mark.parametrize(("momentum", "epsilon"), [(0.1, 1e-5), (0.3, 1e-2)])
def test_it_equals_torch_in_training_and_evaluation(momentum, epsilon):
    ours = with_other_parameters(BatchNorm(WIDTH, momentum=momentum, epsilon=epsilon))
    theirs = twin(ours)
    for step in range(3):
        values = hidden(seed=step)
        torch.testing.assert_close(ours(values), theirs(values))
        assert_same_statistics(ours.running_mean, ours.running_variance, theirs)
    torch.testing.assert_close(ours.eval()(values), theirs.eval()(values))
    assert_same_statistics(ours.running_mean, ours.running_variance, theirs)


def test_a_population_keeps_the_statistics_of_each_member():
    layers = [with_other_parameters(BatchNorm(WIDTH), seed) for seed in range(3)]
    twins = [twin(layer) for layer in layers]
    parameters, buffers = stack_module_state(layers)

    def call(parameters, buffers, values):
        return functional_call(layers[0], (parameters, buffers), (values,))

    for step in range(2):
        values = hidden(3, seed=step)
        output = vmap(call)(parameters, buffers, values)
        expected = [theirs(own) for theirs, own in zip(twins, values, strict=True)]
        torch.testing.assert_close(output, torch.stack(expected))
    for place, theirs in enumerate(twins):
        mean, variance = buffers["running_mean"][place], buffers["running_variance"][place]
        assert_same_statistics(mean, variance, theirs)
    layers[0].eval()
    output = vmap(call)(parameters, buffers, values)
    expected = [theirs.eval()(own) for theirs, own in zip(twins, values, strict=True)]
    torch.testing.assert_close(output, torch.stack(expected))


def test_without_running_averages_evaluation_uses_the_nodes_own():
    layer, values = BatchNorm(WIDTH, running=False), hidden()
    torch.testing.assert_close(layer.eval()(values), layer.train()(values))
    assert not list(layer.buffers())


def test_without_scale_there_is_a_bias_alone():
    layer, values = BatchNorm(WIDTH, scale=False), hidden()
    assert [name for name, _ in layer.named_parameters()] == ["bias"]
    with torch.no_grad():
        layer.bias.fill_(0.5)
    output = layer(values)
    torch.testing.assert_close(output.mean(0), torch.full((WIDTH,), 0.5))
    torch.testing.assert_close(output.var(0, correction=0), torch.ones(WIDTH), atol=1e-4, rtol=0)


def test_one_node_gives_its_bias_and_leaves_finite_averages():
    layer = with_other_parameters(BatchNorm(WIDTH))
    output = layer(hidden()[:1])
    torch.testing.assert_close(output, layer.bias[None])
    assert layer.running_variance.isfinite().all()
