"""The first layer on stored values against the dense one."""

import pytest
import torch

from memohop.nn import FeatureLinear, SparseFeatures, epoch_key, randomness
from numerics import generator

pytestmark = pytest.mark.usefixtures("float64")


def bag_of_words():
    numbers = generator()
    dense = torch.rand(12, 9, generator=numbers)
    return (dense * (torch.rand(12, 9, generator=numbers) < 0.2)).double()


def test_without_dropout_sparse_equals_dense():
    dense, layer = bag_of_words(), FeatureLinear(9, 4).double()
    sparse = SparseFeatures(dense)
    assert sparse.density == float((dense != 0).double().mean())
    torch.testing.assert_close(layer(sparse), layer(dense))
    weight = torch.randn(12, 4, dtype=torch.float64)
    for_sparse = torch.autograd.grad((layer(sparse) * weight).sum(), layer.weight)
    for_dense = torch.autograd.grad((layer(dense) * weight).sum(), layer.weight)
    torch.testing.assert_close(for_sparse, for_dense)


def scattered(dense):
    """A sparse tensor with entries out of order, in two parts, and with a stored zero."""
    row, col = dense.nonzero(as_tuple=True)
    values = dense[row, col] / 2
    zero = (dense == 0).nonzero()[:1]
    indices = torch.cat([torch.stack([row, col], dim=1).flip(0), dense.nonzero(), zero])
    halves = torch.cat([values.flip(0), values, values.new_zeros(1)])
    return torch.sparse_coo_tensor(indices.t(), halves, dense.shape, check_invariants=True)


@pytest.mark.parametrize("to", [torch.Tensor.to_sparse, torch.Tensor.to_sparse_csr, scattered])
def test_a_sparse_tensor_gives_the_very_features_of_the_dense_one(to):
    dense = bag_of_words()
    features, expected = SparseFeatures(to(dense)), SparseFeatures(dense)
    assert features.shape == expected.shape
    for part in ("pointers", "col"):
        assert torch.equal(getattr(features.pattern, part), getattr(expected.pattern, part))
    assert torch.equal(features.values, expected.values)
    assert torch.equal(features.transpose.values, expected.transpose.values)


def test_dropout_on_stored_values_is_dropout_of_those_elements():
    dense = bag_of_words()
    layer = FeatureLinear(9, 4, dropout=0.4).double()
    sparse = SparseFeatures(dense)
    key = epoch_key(torch.tensor(8), torch.tensor(2))
    with randomness(key):
        mask = layer.dropout.mask(tuple(sparse.values.shape), sparse.values)
    dropped = dense.clone()
    dropped[dense != 0] = sparse.values * mask
    with randomness(key):
        output = layer(sparse)
    torch.testing.assert_close(output, dropped @ layer.weight + layer.bias)
    assert (mask == 0).any()
