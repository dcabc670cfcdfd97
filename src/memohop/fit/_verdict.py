r"""What a search is worth, on the test nodes, which were not used for any choice.

Each group of models, those of columns, of the graph and of memory, is represented by its best
candidate by validation, with the mean of its splits. Before the gain from one to another, there is
whether there is any value: a model may be no better than one that knows nothing.

Nodes may come later, and lack something. A model may have a row of weights for each node of the
graph of ``fit`` (an address), and it may use the labels of neighbours. A node that is appended to
the graph later has no row of weights of its own; in another graph no node has one, and no label is
known. Both are imitated with the test nodes and the models of one split of the search, which have
not learned from them:

- *appended*: the rows of the test nodes are 0;
- *elsewhere*: all rows are 0, and all labels are hidden.

The difference between the scores with and without is the cost, with the interval of
:func:`~memohop.fit._certainty.paired_interval`. It takes one prediction of the parts that lose
something. The models have seen the arcs of the test nodes while they learned, and columns and arcs
of another graph may differ: the true cost may be higher. With times, no training node has collected
from a later one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import precision_recall_curve

from memohop.fit._candidate import Candidate, Family, Search
from memohop.fit._certainty import (
    UNCHANGED,
    paired_interval,
    reliability,
    score_interval,
)
from memohop.fit._ensemble import Chosen
from memohop.fit._graph import Inputs
from memohop.fit._problem import Outputs, Problem
from memohop.fit._record import Answer, FamilyScore, FitRecord, KeptPart, LaterNodes, RarePositives
from memohop.fit._residual import residual_of
from memohop.training import Enough
from memohop.training.metrics import Interval

_ARCS = 2_000_000  # of the largest graph for which the cost for later nodes is measured
_TOPS = (0.01, 0.05, 0.1)
_TINY = 1e-12
_RARE = 0.1  # share of the positive class below which the top of the ranking matters


def make_record(
    problem: Problem,
    families: Mapping[str, Family],
    search: Search,
    chosen: Chosen,
    *,
    classes: Sequence[str],
    notes: tuple[str, ...],
    named: bool = False,
    look: Callable[[], None] = lambda: None,
) -> FitRecord:
    """Score the test nodes, once, and record the results; less if ``look`` raises ``Enough``.

    ``named`` says that the user named the positive class.
    """
    masks, metric, splits = problem.masks, problem.objective.metric, search.splits
    test = np.flatnonzero(masks.test)
    said, (val_said, val_y) = chosen.of_test(splits), chosen.of_validation(problem, splits)
    uncalibrated = replace(chosen, calibration=UNCHANGED).of_test(splits)
    labelled = masks.train[:, 0] | masks.val[:, 0] | masks.test
    sizes = np.bincount(problem.y[labelled], minlength=len(classes)).tolist() if classes else []
    groups, val_groups, positives = problem.groups, None, None
    if groups is not None:
        val_groups = np.concatenate([groups[masks.val[:, split]] for split in splits])
    if metric.id == "average_precision":
        positives = int((problem.y[test] == metric.positive).sum())
    return FitRecord(
        nodes=problem.nodes,
        arcs=problem.arcs.shape[1],
        labelled=int(labelled.sum()),
        class_sizes=dict(zip(classes, sizes, strict=True)),
        metric=metric.id,
        families=tuple(_family_scores(problem, families, search, said)),
        kept=tuple(
            KeptPart(**vars(candidate.setting), weight=float(weight))
            for candidate, weight in chosen.weights.items()
        ),
        val=chosen.val(problem, splits),
        test=problem.score(said, test),
        interval=score_interval(problem, masks.test, said),
        test_groups=None if groups is None else len(np.unique(groups[test])),
        test_positives=positives,
        answers=tuple(answers(problem, families, search)),
        reliability=tuple(reliability(val_said, val_y)) if classes else (),
        calibration=chosen.calibration,
        rare=rare_positives(problem, val_said, val_y, said, named=named),
        positive=metric.positive,
        over_constant=over_constant(problem, said, sizes),
        reclassified=int((said.argmax(axis=1) != uncalibrated.argmax(axis=1)).sum()),
        splits=len(splits),
        train=int(masks.train[:, 0].sum()),
        val_nodes=int(masks.val[:, 0].sum()),
        test_nodes=len(test),
        own_test=not (masks.end_train | masks.end_val)[test].any(),
        candidates=len(search.candidates),
        stopped=search.stopped,
        seconds=search.seconds,
        notes=notes,
        residual=None if classes else residual_of(problem, val_said, val_y, val_groups),
        has_columns=problem.has_columns,
        later=measure_later(problem, chosen, splits, look),
        left_out=search.left_out,
    )


def _family_scores(
    problem: Problem, families: Mapping[str, Family], search: Search, kept: Outputs
) -> list[FamilyScore]:
    """The best candidate of each kind, of those whose outputs are at hand if there are any."""
    scores = []
    for name in families:
        own = [each for each in search.candidates if each.setting.family == name and each.scores]
        if not own:
            continue
        best = max(
            [candidate for candidate in own if candidate.fits] or own,
            key=lambda candidate: [candidate.mean(s) for s in (search.splits, search.splits[:1])],
        )
        test = behind = None
        if best in search.complete():
            said, mask = on_test_nodes(best), problem.masks.test
            test, behind = problem.score(said, mask), paired_interval(problem, mask, kept, said)
        scores.append(
            FamilyScore(
                **vars(best.setting),
                tried=len(own),
                seconds=sum(candidate.spent for candidate in own),
                val=float(np.mean(list(best.scores.values()))),
                test=test,
                behind=behind,
            )
        )
    return sorted(scores, key=lambda score: -score.val)


def answers(problem: Problem, families: Mapping[str, Family], search: Search) -> list[Answer]:
    """The gain from the graph over the columns, and from memory over the best without it."""
    answered = []
    for question, uses in (
        ("graph", {name for name, family in families.items() if family.sees_graph}),
        ("memory", {name for name, family in families.items() if family.has_memory}),
    ):
        ranked = search.complete()
        better = next((each for each in ranked if each.setting.family in uses), None)
        than = next((each for each in ranked if each.setting.family not in uses), None)
        if better is not None and than is not None:
            said = on_test_nodes(better), on_test_nodes(than)
            gain = paired_interval(problem, problem.masks.test, *said)
            behind = better if gain.mean < 0 else than
            cut = not behind.unfinished.isdisjoint(search.splits)
            pair = better.setting.family, than.setting.family
            answered.append(Answer(question, *pair, gain, short_of_time=cut))
    return answered


def over_constant(problem: Problem, said: Outputs, class_sizes: Sequence[int]) -> Interval:
    """The lead over saying the same of every test node: the most frequent class, or the mean.

    ``class_sizes`` says how many nodes have each class; if numbers are predicted, it is empty.
    """
    masks, constant = problem.masks, np.zeros_like(said)
    if class_sizes:
        constant[:, np.argmax(class_sizes)] = 1
    else:
        constant[:] = problem.y[masks.train[:, 0] | masks.val[:, 0]].mean()
    return paired_interval(problem, masks.test, said, constant)


def measure_later(
    problem: Problem,
    chosen: Chosen,
    splits: Sequence[int],
    look: Callable[[], None] = lambda: None,
) -> LaterNodes | None:
    """Hide what later nodes lack; None for a huge graph, or without the models, or the time.

    ``look`` is called before each prediction, and may raise ``Enough``.
    """
    split, test = splits[0], np.flatnonzero(problem.masks.test)
    fits = [candidate.fits[split] for candidate in chosen.weights]
    if problem.arcs.shape[1] > _ARCS or any(fit.part is None for fit in fits):
        return None

    def cost(hidden: Inputs, *, labels: bool) -> Interval | None:
        said = []
        for fit in fits:
            look()
            assert fit.part is not None
            loses = fit.part.has_rows or (labels and fit.part.takes_labels)
            said.append(fit.part.outputs(hidden, test) if loses else fit.test)
        now, then = chosen.mean(fit.test for fit in fits), chosen.mean(said)
        if np.array_equal(now, then):
            return None
        return paired_interval(problem, problem.masks.test, then, now)

    try:
        return LaterNodes(
            appended=cost(problem.with_rows_hidden(split), labels=False),
            elsewhere=cost(problem.as_another_graph(split), labels=True),
        )
    except Enough:
        return None


def on_test_nodes(candidate: Candidate) -> Outputs:
    """The outputs of a candidate for the test nodes: the mean over its splits."""
    return np.mean([fit.test for fit in candidate.fits.values()], axis=0)


def rare_positives(
    problem: Problem, said: Outputs, y: NDArray[Any], tested: Outputs, *, named: bool
) -> RarePositives | None:
    """What the ranking of the test nodes is worth; None if there is no class to be found.

    ``said`` and ``y`` are the outputs of the chosen models for validation nodes, and their classes;
    ``tested`` are the outputs for the test nodes. A positive class that the user named matters even
    if it is not rare.
    """
    if problem.classes != 2:
        return None
    positive = problem.objective.metric.positive
    share = float((y == positive).mean())
    if share >= _RARE and not named:
        return None
    truth = problem.y[problem.masks.test] == positive
    ranked = truth[np.argsort(-tested[:, positive], kind="stable")]
    counts = [max(1, round(top * len(ranked))) for top in _TOPS]
    precision, recall, thresholds = precision_recall_curve(y == positive, said[:, positive])
    f1 = 2 * precision * recall / np.maximum(precision + recall, _TINY)
    return RarePositives(
        share=share,
        threshold=float(thresholds[int(np.argmax(f1[:-1]))]),
        tops=_TOPS,
        precision=tuple(float(ranked[:count].mean()) for count in counts),
    )
