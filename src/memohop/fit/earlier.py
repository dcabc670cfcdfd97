"""Models that earlier versions saved, formats 1 and 2, as models of today.

Those were networks of ``gcn+mmp``, one for each split, on features as they are, and a report that
compared them with ``mlp`` and ``gcn``. Networks of today also take the logarithm of each node's
degree: an earlier network gets a weight of 0 for it, and predicts what it predicted.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated, Any

import msgspec
from msgspec import Meta
from torch import Tensor, cat

from memohop.data.tables.columns import ColumnEncoder
from memohop.errors import UsageError
from memohop.fit.candidate import Stop
from memohop.fit.described import DescribedComponent, DescribedModel, DescribedPart, Scalar, Whole
from memohop.fit.record import FamilyScore, FitRecord, KeptPart
from memohop.fit.verdict import Answer
from memohop.intervals import Interval

LAST = 2
"""The last format that is translated."""

_MODEL = "gcn+mmp"
_AGAINST = {"graph": "mlp", "memory": "gcn"}  # the model without it
_FIRST = "input.weight"  # of the layer on the features, [features, channels]


class _Score(msgspec.Struct, frozen=True):
    """The best setting of one model, and its scores."""

    model: str
    options: dict[str, Scalar]
    numbers: dict[str, float]
    val: float  # mean over the splits
    mean: float  # of the test scores over the splits


class _Report(msgspec.Struct, frozen=True):
    """How the networks were made."""

    nodes: int
    arcs: int
    labelled: int
    class_sizes: dict[str, int]
    metric: str
    scores: Annotated[tuple[_Score, ...], Meta(min_length=1)]  # gcn+mmp first
    differences: dict[str, Interval]  # of the test scores, from gcn+mmp to the other models
    trials: Annotated[int, Meta(ge=1)]  # of each model
    splits: int
    train: int  # nodes in each part of a split
    val: int
    test: int
    stopped: Stop
    seconds: float
    own_test: bool = False  # whether all splits have the test nodes that came with the graph
    notes: tuple[str, ...] = ()


class _Described(msgspec.Struct, frozen=True):
    """The content of ``model.json``."""

    parameters: dict[str, Scalar]
    features: Annotated[int, Meta(ge=1)]
    feature_names: list[str] | None
    classes: Annotated[list[bool | Whole | float | str], Meta(min_length=2)]
    has_arcs: bool
    options: dict[str, Scalar]
    encoder: ColumnEncoder | None
    reading: dict[str, bool | str | None] | None
    report: _Report


def translate(
    content: bytes, weights: Mapping[str, Tensor]
) -> tuple[DescribedModel, dict[str, Tensor]]:
    """Description and tensors as they are read today.

    Args:
        content: Of ``model.json``.
        weights: Parameters by name, which begins with the number of the network.
    """
    found = msgspec.json.decode(content, type=_Described)
    networks = {name.partition(".")[0] for name in weights}
    if networks != {str(number) for number in range(len(networks))} or not networks:
        raise UsageError(f"there are weights of the networks {sorted(networks)[:9]}")
    if found.report.splits != len(networks):
        raise UsageError(
            f"there are {found.report.splits} splits and weights of {len(networks)} networks"
        )
    about: dict[str, Any] = {"model": _MODEL, "options": found.options}
    about |= {"scale": 1.0, "arc_scale": 1.0, "mean": 0.0, "spread": 1.0}
    record = _record(found)
    labelled = max(found.report.labelled, 1)
    described = DescribedModel(
        estimator="MMPClassifier",
        parameters=dict(found.parameters),
        features=found.features,
        feature_names=found.feature_names,
        classes=found.classes,
        overall=[size / labelled for size in found.report.class_sizes.values()],
        directed=False,  # one degree for each node; options say which way messages go
        has_arcs=found.has_arcs,
        encoder=found.encoder,
        reading=found.reading,
        views=[],
        components=(
            DescribedComponent(
                family=_MODEL,
                options=found.options,
                numbers=dict(record.kept[0].numbers),
                weight=1.0,
                models=tuple(DescribedPart("network", about) for _ in networks),
            ),
        ),
        temperature=1.0,
        report=record,
    )
    return described, {f"0.{name}": _with_degree(name, one) for name, one in weights.items()}


def graph_of_today(tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """The tensors of the graph of ``fit`` as they are read today; masks are not needed any more."""
    names = {"edge_index": "arcs", "x": "x", "y": "y", "ids": "ids"}
    masks = {"train_mask", "val_mask", "test_mask"}
    if tensors.keys() != names.keys() | masks:
        raise UsageError(f"it holds {', '.join(sorted(tensors))}")
    return {new: tensors[old] for old, new in names.items()}


def _with_degree(name: str, weight: Tensor) -> Tensor:
    if not re.fullmatch(rf"\d+\.{re.escape(_FIRST)}", name) or weight.dim() != 2:
        return weight
    return cat([weight, weight.new_zeros(1, weight.shape[1])])


def _record(found: _Described) -> FitRecord:
    report, gaps = found.report, found.report.differences
    models = [score.model for score in report.scores]
    if models[0] != _MODEL or len(set(models)) != len(models) or not gaps.keys() <= set(models):
        raise UsageError(f"the report has scores of {models}, and compares with {[*gaps]}")
    kept = report.scores[0]
    families = [
        FamilyScore(
            family=one.model,
            tried=report.trials,
            seconds=report.seconds / len(models),  # they took turns
            val=one.val,
            test=one.mean,
            options=one.options,
            numbers=one.numbers,
            behind=gaps.get(one.model),
        )
        for one in report.scores
    ]
    where = "with the test nodes of the graph" if report.own_test else "each with other test nodes"
    return FitRecord(
        nodes=report.nodes,
        arcs=report.arcs,
        labelled=report.labelled,
        class_sizes=report.class_sizes,
        metric=report.metric,
        families=tuple(sorted(families, key=lambda one: -one.val)),
        kept=(KeptPart(_MODEL, 1.0, found.options, kept.numbers),),
        val=kept.val,
        test=kept.mean,
        answers=tuple(
            Answer(question, _MODEL, than, gaps[than])
            for question, than in _AGAINST.items()
            if report.arcs and than in gaps
        ),
        reliability=(),
        temperature=1.0,
        rare=None,
        splits=report.splits,
        train=report.train,
        val_nodes=report.val,
        test_nodes=report.test,
        own_test=report.own_test,
        candidates=report.trials * len(models),
        stopped=report.stopped,
        seconds=report.seconds,
        notes=(
            *report.notes,
            f"an earlier version fitted it: test scores are means over {report.splits} splits, "
            f"{where}, and intervals are those of their differences",
        ),
    )
