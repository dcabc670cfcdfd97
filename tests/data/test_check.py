from __future__ import annotations

import re
import warnings

import pytest
import torch
from scipy import sparse

from memohop.data.check import MASKS, MissingClassWarning, as_columns, check, check_graph
from memohop.data.synthetic import csbm
from memohop.errors import UsageError

NAN = float("nan")


@pytest.fixture
def data():
    """A sound graph of 60 nodes with two splits, for each test to spoil."""
    return csbm(nodes=60, classes=3, degree=4, channels=4, splits=2)


def in_scipy(x):
    return sparse.csr_array(x.numpy())


def in_no_set(data, node):
    for name in MASKS:
        data[name][node] = False


def test_sound_graphs_pass(data):
    check(data)
    assert as_columns(data)[1] is data.val_mask
    data.edge_index = torch.zeros(2, 0, dtype=torch.long)
    check(data)
    in_no_set(data, 11)
    data.y[11] = -1  # where no label is needed
    check(data)


def test_flat_masks_are_one_split(data):
    for name in MASKS:
        data[name] = data[name][:, 0]
    check(data)
    assert [mask.shape for mask in as_columns(data)] == [(60, 1)] * 3
    assert torch.equal(as_columns(data)[0][:, 0], data.train_mask)


@pytest.mark.parametrize(
    ("mask", "other"),
    [("train_mask", "val_mask"), ("val_mask", "test_mask"), ("train_mask", "test_mask")],
)
def test_masks_that_overlap(data, mask, other):
    data[mask][data[other][:, 1].nonzero()[:4, 0], 1] = True
    with pytest.raises(UsageError, match=rf"{mask} and {other} share 4 node\(s\) in split 1"):
        check(data)


@pytest.mark.parametrize("name", MASKS)
def test_masks_that_are_empty(data, name):
    data[name][:, 1] = False
    with pytest.raises(UsageError, match=rf"{name} is empty in 1 split.*split 1"):
        check(data)


@pytest.mark.parametrize(
    ("name", "value", "complaint"),
    [
        ("val_mask", torch.zeros(59, 2).bool(), r"val_mask has shape \[59, 2\].*\[60, splits\]"),
        ("val_mask", torch.zeros(2, 60).bool(), r"val_mask has shape \[2, 60\]"),
        ("val_mask", torch.zeros(60, 2, 1).bool(), r"val_mask has shape \[60, 2, 1\]"),
        ("val_mask", torch.zeros(()).bool(), r"val_mask has shape \[\]"),
        ("val_mask", torch.zeros(60, 3).bool(), "2 in train_mask, 3 in val_mask, 2 in test_mask"),
        ("val_mask", torch.zeros(60, 2), "val_mask has type torch.float32"),
        ("val_mask", torch.arange(10), "val_mask has type torch.int64"),
        ("val_mask", None, "val_mask is None"),
        ("edge_index", torch.zeros(3, 2).long(), "edge_index"),
        ("edge_index", torch.zeros(2, 3), "edge_index"),
        ("edge_index", None, "edge_index"),
        ("x", torch.zeros(60), r"data\.x"),
        ("x", torch.zeros(60, 4).long(), r"data\.x"),
        ("x", None, r"data\.x"),
        ("y", torch.zeros(60, 1), r"data\.y"),
        ("y", torch.zeros(59).long(), r"data\.y"),
        ("y", torch.zeros(60).int(), r"data\.y"),
        ("y", None, r"data\.y"),
    ],
)
def test_what_is_of_the_wrong_shape_or_type(data, name, value, complaint):
    data[name] = value
    with pytest.raises(UsageError, match=complaint):
        check(data)


def test_masks_without_a_split(data):
    for name in MASKS:
        data[name] = data[name][:, :0]
    with pytest.raises(UsageError, match="0 in train_mask"):
        check(data)


@pytest.mark.parametrize("end", [60, -1, 10**12])
@pytest.mark.parametrize("row", [0, 1])
def test_arcs_that_leave_the_graph(data, end, row):
    data.edge_index[row, 7] = end
    source, target = data.edge_index[:, 7].tolist()
    with pytest.raises(UsageError, match=f"arc 7 .*{source} -> {target}.*60 nodes"):
        check(data)


@pytest.mark.parametrize("to", [None, torch.Tensor.to_sparse, torch.Tensor.to_sparse_csr, in_scipy])
@pytest.mark.parametrize("value", [NAN, float("inf"), float("-inf")])
def test_features_that_are_not_finite(data, value, to):
    of_kind = to or (lambda x: x)
    data.x, wrong = of_kind(data.x), torch.zeros(60, 4)
    check(data)
    assert [mask.shape for mask in as_columns(data)] == [(60, 2)] * 3
    wrong[5, 2] = wrong[9, 0] = value
    data.x = of_kind(wrong)
    with pytest.raises(UsageError, match=rf"holds {value} at node 5, column 2 \(2 such"):
        check(data)


def test_a_sparse_matrix_with_columns_that_are_not_there(data):
    broken = sparse.csr_array(in_scipy(torch.ones(60, 4)))
    broken.indices[7] = 4
    broken.data[0] = NAN
    data.x = broken
    with pytest.raises(UsageError, match=r"not a sound sparse matrix: .*indices"):
        check(data)


def test_labels_out_of_range(data):
    node = int(data.train_mask[:, 0].nonzero()[0])
    data.y[node] = -1
    with pytest.raises(UsageError, match=rf"data\.y is -1 at node {node}.*1 such"):
        check(data)


def test_one_warning_for_the_classes_that_cannot_be_learnt(data):
    data.train_mask[data.y == 1, :] = False
    data.train_mask[data.y == 2, 1] = False
    with pytest.warns(MissingClassWarning) as caught:
        check(data)
    assert len(caught) == 1
    assert "class 1 in 2, class 2 in 1 of the 2 split(s)" in str(caught[0].message)
    assert caught[0].filename == __file__


def test_a_class_without_any_node_is_no_reason_to_warn(data):
    data.y[data.y == 2] = 7
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        check(data)


def test_numbers_to_predict(data):
    data.y = data.y + 0.5
    in_no_set(data, 11)
    data.y[11] = NAN
    check(data)
    with pytest.raises(UsageError, match=r"type torch.float32; give one int64 class for each"):
        check_graph(data)
    node = int(data.val_mask[:, 1].nonzero()[0])
    for value in (NAN, float("inf"), 1e39):
        data.y = data.y.double()
        data.y[node] = value
        with pytest.raises(UsageError, match=rf"is {re.escape(str(value))} at node {node}, .*mask"):
            check(data)
