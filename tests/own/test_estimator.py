"""The classifier: scikit-learn's conventions, and what they do not cover."""

import os
import signal
import subprocess
import sys

import numpy as np
import pytest
import torch
from memohop.own.partition import SmallClassWarning, partition
from scipy import sparse
from sklearn.base import clone
from sklearn.metrics import accuracy_score, average_precision_score, roc_auc_score
from sklearn.utils.estimator_checks import parametrize_with_checks
from torch_geometric.data import Data

import memohop
from memohop import MMPClassifier, UsageError
from numerics import assert_same_sums, generator

FAST = {"trials": 1, "splits": 2, "epochs": 5}


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
NOT_APPLICABLE = {
    "check_class_weight_classifiers": "class_weight is None or 'balanced'; a weight for each class "
    "is not offered",
}


@pytest.mark.filterwarnings("ignore:invalid value encountered in cast:RuntimeWarning")
@pytest.mark.filterwarnings("ignore::memohop.own.partition.SmallClassWarning")
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.SkipTestWarning")
@parametrize_with_checks([MMPClassifier(**FAST)], expected_failed_checks=lambda _: NOT_APPLICABLE)
def test_scikit_learns_checks(estimator, check):
    check(estimator)


class TestGraph:
    def test_data_arrays_and_matrices_are_the_same_graph(self, fitted):
        data, classifier = fitted
        x, y, arcs = data.x.numpy(), data.y.numpy(), data.edge_index.numpy()
        ones = np.ones(arcs.shape[1])
        expected = classifier.predict_proba()
        for edges in (arcs, data.edge_index, arcs.tolist(), sparse.coo_array((ones, arcs))):
            again = clone(classifier).fit(sparse.csr_array(x), y, edges=edges)
            assert again.predict_proba() == pytest.approx(expected, abs=1e-5)

    def test_a_new_graph_is_predicted_by_its_own_arcs(self, fitted):
        data, classifier = fitted
        order = torch.randperm(90, generator=generator())
        turned = Data(x=data.x[order], edge_index=order.argsort()[data.edge_index])
        expected = classifier.predict_proba()[order]
        given = classifier.predict_proba(turned.x.numpy(), edges=turned.edge_index)
        for found in (classifier.predict_proba(turned), given):
            # Two rounds of neighbours, of a state of 64 channels, and of two of them in the gate.
            tensors = torch.from_numpy(found), torch.from_numpy(expected)
            assert_same_sums(*tensors, length=2 * (90 + 3 * 64))
        alone = classifier.predict_proba(data.x.numpy(), edges=[])
        assert np.abs(alone - classifier.predict_proba()).max() > 0.01

    def test_arcs_are_not_forgotten_by_accident(self, fitted):
        data, classifier = fitted
        with pytest.raises(UsageError, match="edges is None, but the classifier was fitted on"):
            classifier.predict(data.x.numpy())
        with pytest.raises(UsageError, match="edges is given although X is a Data"):
            classifier.predict(data, edges=data.edge_index)

    @pytest.mark.parametrize("edges", [[[0, 1, 2]], [[0.5], [1.0]], np.zeros((3, 3))])
    def test_arcs_of_a_wrong_shape_are_refused(self, edges):
        data = graph()
        with pytest.raises(UsageError, match="give whole numbers of shape"):
            MMPClassifier(**FAST).fit(data.x.numpy(), data.y.numpy(), edges=edges)

    def test_arcs_to_nodes_that_are_not_there_are_refused(self):
        data = graph()
        with pytest.raises(UsageError, match="points outside the graph"):
            MMPClassifier(**FAST).fit(data.x.numpy(), data.y.numpy(), edges=[[0], [90]])

    def test_unlabelled_nodes_are_in_no_set_but_pass_messages_on(self, fitted):
        data, _ = fitted
        y = data.y.clone()
        y[::2] = -1
        some = MMPClassifier(**FAST).fit(Data(x=data.x, y=y, edge_index=data.edge_index))
        masks = some.graph_.train_mask | some.graph_.val_mask | some.graph_.test_mask
        assert masks.any(1).tolist() == (y >= 0).tolist()
        assert len(some.predict()) == 90
        moved = data.x.clone()
        moved[::2] += 5
        changed = some.predict_proba(Data(x=moved, edge_index=data.edge_index))
        assert np.abs(changed - some.predict_proba())[1::2].max() > 0.01


class TestMasks:
    def test_the_nodes_of_the_masks_are_what_they_are_named(self):
        data = with_masks(train=(0, 40), val=(40, 60), test=(60, 85))
        found = MMPClassifier(**FAST).fit(data)
        for name in ("train_mask", "val_mask", "test_mask"):
            assert found.graph_[name].tolist() == [[flag, flag] for flag in data[name].tolist()]
        report = found.report_
        assert (report.train, report.val, report.test, report.own_test) == (40, 20, 25, True)
        assert "on the 25 test nodes that came with the graph" in report.legend()
        for network, score in zip(found.model_.networks(), report.score().test, strict=True):
            logits = network(data.x, network.prepare(data.edge_index, 90)).logits
            right = logits.argmax(1)[60:85] == data.y[60:85]
            assert right.double().mean() == pytest.approx(score)

    @pytest.mark.parametrize("masks", [{"val": (40, 60)}, {}])
    def test_labels_of_test_nodes_change_nothing_that_is_learned(self, masks):
        data = with_masks(train=(0, 60 - 20 * len(masks)), test=(60, 90), **masks)
        scrambled = data.clone()
        scrambled.y[60:] = (data.y[60:] + 1) % 3
        one, other = (
            MMPClassifier(trials=2, splits=2, epochs=4).fit(each) for each in (data, scrambled)
        )
        assert (one.predict_proba() == other.predict_proba()).all()
        for mine, theirs in zip(one.report_.scores, other.report_.scores, strict=True):
            assert (mine.val, mine.numbers) == (theirs.val, theirs.numbers)
        assert one.report_.score().test != other.report_.score().test

    def test_without_a_validation_mask_a_quarter_of_the_training_nodes_choose(self):
        data = with_masks(train=(0, 60), test=(60, 90))
        masks = MMPClassifier(**FAST).fit(data).graph_
        assert masks.val_mask.sum(0).tolist() == [15, 15]
        assert (masks.val_mask[:, 0] != masks.val_mask[:, 1]).any()
        assert ((masks.train_mask ^ masks.val_mask) == data.train_mask[:, None]).all()
        assert (masks.test_mask == data.test_mask[:, None]).all()

    def test_of_several_columns_one_is_chosen(self):
        data = memohop.load("csbm", nodes=90, classes=3, channels=8, splits=4)
        found = MMPClassifier(**FAST).fit(data, split=2)
        assert (found.graph_.test_mask == data.test_mask[:, 2:3]).all()
        with pytest.raises(UsageError, match=r"the masks have 4 columns.*split=0 to split=3"):
            MMPClassifier(**FAST).fit(data)
        with pytest.raises(UsageError, match="split=4, but the masks have 4 column"):
            MMPClassifier(**FAST).fit(data, split=4)

    @pytest.mark.parametrize(
        ("masks", "message"),
        [
            (
                {"train": (0, 50), "val": (40, 60), "test": (60, 90)},
                "train_mask and val_mask share",
            ),
            ({"train": (0, 60), "test": (50, 90)}, "train_mask and test_mask share 10 node"),
            ({"train": (0, 60), "val": (60, 60), "test": (60, 90)}, "val_mask is empty"),
            ({"train": (0, 60), "val": (60, 90)}, "has train_mask and val_mask alone"),
            ({"test": (60, 90)}, "has test_mask alone; give it train_mask and test_mask"),
        ],
    )
    def test_masks_that_cannot_be_meant_are_refused(self, masks, message):
        with pytest.raises(UsageError, match=message):
            MMPClassifier(**FAST).fit(with_masks(**masks))

    def test_a_ranking_needs_test_nodes_of_both_classes(self):
        data = with_masks(train=(0, 60), test=(60, 90))
        data.y = torch.where(data.test_mask, 0, data.y % 2)
        with pytest.raises(UsageError, match="metric='roc_auc' needs test nodes of both classes"):
            MMPClassifier(metric="roc_auc", **FAST).fit(data)

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

    @pytest.mark.parametrize("missing", [None, float("nan")])
    def test_strings_with_gaps(self, fitted, missing):
        data, _ = fitted
        names = np.array(["ant", "bee", "cow", missing], dtype=object)
        y = names[np.where(np.arange(90) % 3, data.y.numpy(), 3)]
        found = MMPClassifier(**FAST).fit(data.x.numpy(), y, edges=data.edge_index)
        assert found.classes_.tolist() == ["ant", "bee", "cow"]
        assert set(found.predict()) <= {"ant", "bee", "cow"}
        assert found.report_.labelled == 60

    def test_numbers_with_gaps_and_minus_one_as_a_class(self, fitted):
        data, _ = fitted
        y = np.where(data.y.numpy() == 0, -1.0, 1.0)
        y[:30] = np.nan
        found = MMPClassifier(**FAST).fit(data.x.numpy(), y, edges=data.edge_index)
        assert found.classes_.tolist() == [-1, 1]
        assert found.report_.labelled == 60

    def test_no_label_one_class_and_labels_that_cannot_be_sorted(self):
        x = np.zeros((6, 1))
        for y, message in (
            ([None] * 6, "no label at all"),
            (["a"] * 5 + [None], "y has one class, 'a'"),
            (["a", 1, "a", 1, "a", 1], "cannot be sorted"),
            (["a", "a", "b", "b", "c", None], "fewer than two classes have the 3 labelled nodes"),
        ):
            with pytest.raises(UsageError, match=message):
                MMPClassifier(**FAST).fit(x, np.array(y, dtype=object))

    def test_a_tiny_class_is_trained_on_and_never_tested(self):
        y = torch.tensor([0] * 10 + [1] * 10 + [2] * 2 + [-1] * 4)
        with pytest.warns(SmallClassWarning, match=r"class 'c' \(2\) has fewer than 3"):
            train, val, test = partition(y, np.array(["a", "b", "c"]), splits=3, seed=0)
        assert train[20:22].all()
        assert not (val | test)[20:].any()
        assert not train[22:].any()
        assert (train.int() + val.int() + test.int())[:22].eq(1).all()
        assert [int(mask.sum()) for mask in (train, val, test)] == [14 * 3, 4 * 3, 4 * 3]


class TestScores:
    def test_the_report_adds_up(self, fitted):
        _, classifier = fitted
        report = classifier.report_
        assert [score.model for score in report.scores] == ["gcn+mmp", "mlp", "gcn"]
        for score in report.scores:
            assert score.mean == pytest.approx(np.mean(score.test))
            assert score.std == pytest.approx(np.std(score.test, ddof=1))
        ours = np.array(report.score().test)
        for model, gap in report.differences.items():
            assert gap.mean == pytest.approx(np.mean(ours - report.score(model).test))
        assert (report.train, report.val, report.test) == (54, 18, 18)
        assert report.class_sizes == {"0": 30, "1": 30, "2": 30}

    def test_the_test_scores_are_those_of_the_networks_that_are_kept(self, fitted):
        data, classifier = fitted
        for split, score in enumerate(classifier.report_.score().test):
            held_out = data.y[classifier.graph_.test_mask[:, split]]
            network = classifier.model_.networks()[split]
            logits = network(data.x, network.prepare(data.edge_index, 90)).logits
            found = logits.argmax(1)[classifier.graph_.test_mask[:, split]]
            assert (found == held_out).double().mean() == pytest.approx(score)

    @pytest.mark.parametrize(
        ("metric", "expected"),
        [
            ("accuracy", lambda y, p: accuracy_score(y, p > 0.5)),
            ("roc_auc", roc_auc_score),
            ("average_precision", average_precision_score),
        ],
    )
    def test_score_is_the_metric_on_labelled_nodes(self, metric, expected):
        data = graph(classes=2)
        labelled = (data.y >= 0) & (torch.arange(90) % 4 > 0)
        data.y = data.y.masked_fill(~labelled, -1)
        classifier = MMPClassifier(metric=metric, class_weight="balanced", **FAST).fit(data)
        probability = classifier.predict_proba()[labelled, 1]
        assert classifier.score(data) == pytest.approx(expected(data.y[labelled], probability))

    def test_a_metric_of_two_classes_is_refused_for_three(self):
        with pytest.raises(UsageError, match="metric='roc_auc' is for two classes and there are 3"):
            MMPClassifier(metric="roc_auc", **FAST).fit(graph())

    def test_the_random_state_decides(self, fitted):
        data, classifier = fitted
        again = clone(classifier).fit(data)
        other = clone(classifier).set_params(random_state=1).fit(data)
        assert (again.predict_proba() == classifier.predict_proba()).all()
        assert (other.predict_proba() != classifier.predict_proba()).any()

    @pytest.mark.parametrize(
        ("argument", "value"),
        [("trials", 0), ("splits", 1), ("epochs", 0), ("time", -1), ("metric", "f1")],
    )
    def test_bad_arguments_are_named(self, argument, value):
        with pytest.raises(UsageError, match=argument):
            MMPClassifier(**FAST | {argument: value}).fit(graph())

    @pytest.mark.parametrize(
        ("differences", "words"),
        [
            ((0.2, 0.21), "The graph helps: gcn+mmp is 20.5 points better"),
            ((-0.2, -0.21), "The graph hurts: gcn+mmp is 20.5 points worse"),
            ((0.02, -0.01), "It is not clear that the graph helps"),
            ((0.2, -0.1), "Whether the graph helps is not known: 2 splits with 18 test node(s)"),
        ],
    )
    def test_the_verdict_goes_by_the_interval(self, fitted, differences, words):
        from dataclasses import replace

        from memohop.intervals import corrected_interval

        gap = corrected_interval(differences, test_to_train=0)
        report = replace(fitted[1].report_, differences={"mlp": gap})
        assert report.verdict().startswith(words)

    def test_epochs_that_time_was_too_short_for_are_told(self, fitted):
        from dataclasses import replace

        report = replace(fitted[1].report_, epochs=9, epochs_cut=191)
        assert "every network got 9 epoch(s) at most instead of 200" in report.verdict()
        assert "Time was short" not in fitted[1].report_.verdict()


INTERRUPTED = """
import signal, torch, memohop
signal.signal(signal.SIGINT, signal.default_int_handler)  # ignored in what a shell runs behind
torch.set_num_threads(1)
data = memohop.load("csbm", nodes=90, classes=3, channels=8, splits=1)
classifier = memohop.MMPClassifier(trials=10**6, splits=2, epochs=8)
told = []
def progress(done, total):
    told.append(done)
    if len(told) == 8:
        print("under way", flush=True)
classifier.fit(data, progress=progress)
print(classifier.report_.stopped, classifier.report_.trials, classifier.predict().shape)
"""


def test_ctrl_c_keeps_the_best_so_far():
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    with subprocess.Popen(
        [sys.executable, "-c", INTERRUPTED],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment,
    ) as process:
        try:
            assert process.stdout.readline() == "under way\n"
            process.send_signal(signal.SIGINT)
            out, err = process.communicate(timeout=60)
        finally:
            process.kill()
    assert process.returncode == 0, err
    stopped, trials, shape = out.strip().split(" ", 2)
    assert stopped == "interrupted"
    assert int(trials) >= 1
    assert shape == "(90,)"
