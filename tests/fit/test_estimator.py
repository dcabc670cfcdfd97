"""The estimators: scikit-learn's conventions, and what they do not cover."""

from unittest.mock import Mock

import numpy as np
import pytest
import torch
from scipy import sparse
from sklearn.base import clone
from sklearn.utils.estimator_checks import parametrize_with_checks
from torch_geometric.data import Data

import memohop
from memohop import MMPClassifier, UsageError
from memohop.fit._scorable import SmallClassWarning
from memohop.fit.candidates import _network as network
from numerics import assert_same_sums, generator
from tiny_problem import QUICK, tiny_problem

FAST = {"trials": 1, "splits": 2, "epochs": 5}
LINEAR = {"models": ("linear",), **QUICK}


def graph(classes=3, **options):
    """A graph without masks."""
    made = memohop.load("csbm", nodes=90, classes=classes, channels=8, homophily=0.9, **options)
    return Data(x=made.x, y=made.y, edge_index=made.edge_index)


def with_masks(**masks):
    """The same graph with masks, true from the first node to before the second one."""
    data, node = graph(), torch.arange(90)
    for name, (begin, end) in masks.items():
        data[f"{name}_mask"] = (node >= begin) & (node < end)
    return data


@pytest.fixture(scope="module")
def fitted():
    data = graph()
    return data, MMPClassifier(**FAST).fit(data)


# scikit-learn's checks call `fit(X, y)`, without arcs: features alone decide, and every row is a
# node of its own, for new data too. All of them apply, then, but for these.
_WEIGHTS = "class_weight is None or 'balanced'; a weight for each class is not offered"
NOT_APPLICABLE = {
    MMPClassifier: {"check_class_weight_classifiers": _WEIGHTS},
    memohop.GraphClassifier: {"check_class_weight_classifiers": _WEIGHTS},
    memohop.GraphRegressor: {"check_fit2d_1sample": "the error says that it is the same number"},
}


@pytest.mark.filterwarnings("ignore:invalid value encountered in cast:RuntimeWarning")
@pytest.mark.filterwarnings("ignore::memohop.fit._scorable.SmallClassWarning")
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.SkipTestWarning")
@parametrize_with_checks(
    [MMPClassifier(**FAST), memohop.GraphClassifier(**LINEAR), memohop.GraphRegressor(**LINEAR)],
    expected_failed_checks=lambda estimator: NOT_APPLICABLE[type(estimator)],
)
def test_scikit_learns_checks(estimator, check):
    check(estimator)


class TestGraph:
    def test_data_arrays_and_matrices_are_the_same_graph(self, fitted):
        data, classifier = fitted
        x, y, arcs = data.x.numpy(), data.y.numpy(), data.edge_index.numpy()
        ones = np.ones(arcs.shape[1])
        expected = classifier.predict_proba()
        for edges in (arcs, data.edge_index, arcs.tolist(), sparse.coo_array((ones, arcs))):
            again = clone(classifier).fit(x, y, edges=edges)
            assert (again.predict_proba() == expected).all()

    def test_a_new_graph_is_predicted_by_its_own_arcs(self, fitted):
        data, classifier = fitted
        order = torch.randperm(90, generator=generator())
        turned = Data(x=data.x[order], edge_index=order.argsort()[data.edge_index])
        expected = classifier.predict_proba(data, as_another_graph=True)[order]
        given = classifier.predict_proba(turned.x.numpy(), edges=turned.edge_index)
        for probabilities in (classifier.predict_proba(turned), given):
            # Two rounds of neighbours, of a state of 64 channels, and of two of them in the gate.
            tensors = torch.from_numpy(probabilities), torch.from_numpy(expected)
            assert_same_sums(*tensors, length=2 * (90 + 3 * 64))
        alone = classifier.predict_proba(data.x.numpy(), edges=[])
        assert np.abs(alone - classifier.predict_proba()).max() > 0.01

    def test_arcs_are_not_forgotten_by_accident(self, fitted):
        data, classifier = fitted
        with pytest.raises(UsageError, match="edges is None, but the model was fitted on"):
            classifier.predict(data.x.numpy())
        with pytest.raises(UsageError, match="edges is given although X is a Data"):
            classifier.predict(data, edges=data.edge_index)

    @pytest.mark.parametrize("edges", [[[0, 1, 2]], [[0.5], [1.0]], np.zeros((3, 3)), [[0], [90]]])
    def test_arcs_of_a_wrong_shape_or_to_nowhere_are_refused(self, edges):
        data = graph()
        message = "points outside the graph" if 90 in edges[-1] else "give whole numbers of shape"
        with pytest.raises(UsageError, match=message):
            MMPClassifier(**FAST).fit(data.x.numpy(), data.y.numpy(), edges=edges)

    def test_unlabelled_nodes_are_in_no_part_but_pass_messages_on(self, fitted):
        data, _ = fitted
        y = data.y.clone()
        y[::2] = -1
        some = MMPClassifier(**FAST).fit(Data(x=data.x, y=y, edge_index=data.edge_index))
        assert (some.graph_.y >= 0).tolist() == (y >= 0).tolist()
        assert some.report_.labelled == 45
        assert len(some.predict()) == 90
        moved = data.x.clone()
        moved[::2] += 5
        both = (some.predict_proba(Data(x=x, edge_index=data.edge_index)) for x in (data.x, moved))
        assert np.abs(np.subtract(*both))[1::2].max() > 1e-4  # 0 without messages


class TestMasks:
    def test_of_several_columns_one_is_chosen(self):
        data = memohop.load("csbm", nodes=90, classes=3, channels=8, splits=4)
        model = MMPClassifier(**FAST).fit(data, split=2)
        tested = data.test_mask[:, 2].numpy()
        assert model.report_.test_nodes == tested.sum()
        assert ((model.graph_.y == -1) == tested).all()
        with pytest.raises(UsageError, match=r"the masks have 4 columns.*split=0 to split=3"):
            MMPClassifier(**FAST).fit(data)
        with pytest.raises(UsageError, match="split=4, but the masks have 4 column"):
            MMPClassifier(**FAST).fit(data, split=4)

    @pytest.mark.parametrize(
        ("masks", "message"),
        [
            ({"train": (0, 50), "val": (40, 60), "test": (60, 90)}, "train_mask and val_mask"),
            ({"train": (0, 60), "test": (50, 90)}, "train_mask and test_mask share 10 node"),
            ({"train": (0, 60), "val": (60, 60), "test": (60, 90)}, "val_mask is empty"),
            ({"train": (0, 60), "val": (60, 90)}, "has train_mask and val_mask alone"),
            ({"test": (60, 90)}, "has test_mask alone; give it train_mask and test_mask"),
        ],
    )
    def test_masks_that_cannot_be_meant_are_refused(self, masks, message):
        with pytest.raises(UsageError, match=message):
            MMPClassifier(**FAST).fit(with_masks(**masks))

    def test_a_split_without_masks_is_refused(self):
        for given in ((graph(),), (np.zeros((6, 1)), [0, 1] * 3)):
            with pytest.raises(UsageError, match="split=0, but"):
                MMPClassifier(**FAST).fit(*given, split=0)

    def test_masks_do_not_matter_to_a_prediction(self, fitted):
        _, classifier = fitted
        other = memohop.load("csbm", nodes=90, classes=3, channels=8)
        assert classifier.predict(other).shape == (90,)


class TestLabels:
    def test_numbers_that_are_no_classes(self):
        x = np.zeros((200, 1))
        for y, message in (
            (np.arange(200) % 95, "y holds 95 different numbers on 200 nodes"),
            ([f"n{n % 150}" for n in range(200)], "y has 150 different labels on 200 nodes"),
        ):
            with pytest.raises(UsageError, match=message):
                MMPClassifier(**FAST).fit(x, y)
        data = graph()
        data.y = data.y.float()
        with pytest.raises(UsageError, match="y holds numbers to predict"):
            MMPClassifier(**FAST).fit(data)

    @pytest.mark.parametrize(
        ("of_class", "missing", "known"),
        [
            (["ant", "bee", "cow"], None, ["ant", "bee", "cow"]),
            (["ant", "bee", "cow"], float("nan"), ["ant", "bee", "cow"]),
            ([3, 7, 11], None, [3, 7, 11]),
            ([False, True, True], None, [False, True]),
            (np.uint8([3, 7, 11]), None, [3, 7, 11]),
            ([-1.0, 1.0, 1.0], float("nan"), [-1, 1]),
        ],
    )
    def test_labels_of_any_kind_with_gaps(self, of_class, missing, known):
        x, code = tiny_problem(classes=3).x, np.arange(60) % 3
        y = [of_class[c] if n % 5 else missing for n, c in enumerate(code)]
        y = np.array(y, dtype=object) if isinstance(y[1], str) else y
        model = memohop.GraphClassifier(**LINEAR).fit(x, y)
        assert model.classes_.tolist() == known
        assert set(model.predict()) <= set(known)
        assert model.report_.labelled == 48

    def test_no_label_one_class_and_labels_that_cannot_be_sorted(self):
        x = np.zeros((6, 1))
        for y, message in (
            ([None] * 6, "no label at all"),
            (["a"] * 5 + [None], "y has one class, 'a'"),
            (["a", 1, "a", 1, "a", 1], "cannot be sorted"),
            (
                ["a", "a", "b", "b", None, None],
                "a test takes 5 labelled nodes of the largest class, and there are 2; label more",
            ),
        ):
            with pytest.raises(UsageError, match=message):
                MMPClassifier(**FAST).fit(x, np.array(y, dtype=object))

    def test_a_tiny_class_is_learned_from_and_named(self):
        y = np.array(["a"] * 10 + ["b"] * 10 + ["c"] * 2 + [None] * 4, dtype=object)
        with pytest.warns(SmallClassWarning, match=r"class 'c' \(2\) has too few"):
            model = memohop.GraphClassifier(**LINEAR).fit(np.arange(26.0)[:, None], y)
        assert model.classes_.tolist() == ["a", "b", "c"]
        assert (model.graph_.y[20:22] == 2).all()


class TestScores:
    def test_only_models_with_memory_are_tried(self, fitted):
        report = fitted[1].report_
        assert all(family.family.endswith("+mmp") for family in (*report.families, *report.kept))
        assert report.class_sizes == {"0": 30, "1": 30, "2": 30}

    def test_epochs_and_patience_are_those_of_the_networks(self, monkeypatch):
        spy = Mock(wraps=network.train)
        monkeypatch.setattr(network, "train", spy)
        MMPClassifier(**FAST, patience=None).fit(graph())
        seen = [call.kwargs for call in spy.call_args_list]
        assert {(options["epochs"], options["patience"]) for options in seen} == {(5, None)}

    def test_score_is_the_metric_on_labelled_nodes(self):
        data = graph()
        labelled = torch.arange(90) % 4 > 0
        data.y = data.y.masked_fill(~labelled, -1)
        classifier = MMPClassifier(class_weight="balanced", **FAST).fit(data)
        right = classifier.predict()[labelled] == data.y[labelled].numpy()
        assert classifier.score(data) == pytest.approx(right.mean())

    def test_bad_arguments_are_named(self):
        for argument, value, message in (
            ("trials", 0, "trials"),
            ("splits", 1, "splits"),
            ("epochs", 0, "epochs"),
            ("patience", 0, "patience"),
            ("time", -1, "time"),
            ("metric", "f1", "metric"),
            ("metric", "roc_auc", "metric='roc_auc' is for two classes and there are 3"),
            ("class_weight", "heavy", "class_weight"),
        ):
            with pytest.raises(UsageError, match=message):
                MMPClassifier(**FAST | {argument: value}).fit(graph())
