r"""The cost in accuracy for nodes that come later, measured by hiding what such nodes lack.

A model may have a row of weights for each node of the graph of ``fit`` (an address), and it may use
the labels of neighbours. A node that is appended to the graph later has no row of weights of its
own; in another graph no node has one, and no label is known. Both are imitated with the test nodes
and the models of one split of the search, which have not learned from them:

- *appended*: the rows of the test nodes are 0;
- *elsewhere*: all rows are 0, and all labels are hidden.

The difference between the scores with and without is the cost, with the interval of
:func:`~memohop.fit.paired.paired_interval`. It takes one prediction of the parts that lose
something. The models have seen the arcs of the test nodes while they learned, and columns and arcs
of another graph may differ: the true cost may be higher.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from memohop.fit.candidates.family import Part
from memohop.fit.candidates.linear import Linear
from memohop.fit.candidates.network import Network
from memohop.fit.candidates.trees import Trees
from memohop.fit.ensemble import outputs_of
from memohop.fit.finish import Chosen
from memohop.fit.paired import paired_interval
from memohop.fit.problem import Inputs, Outputs, Problem
from memohop.training import Enough
from memohop.training.metrics import Interval, Metric

_ARCS = 2_000_000  # of the largest graph for which this is measured


@dataclass(frozen=True)
class LaterNodes:
    """Differences of the score on the test nodes; None if nothing that the model uses is lost.

    Attributes:
        appended: For nodes that are appended to the graph of ``fit``.
        elsewhere: For nodes of another graph.
    """

    appended: Interval | None
    elsewhere: Interval | None

    def text(self, metric: Metric) -> str:
        """Both in a sentence."""
        if self.appended is None and self.elsewhere is None:
            return (
                "Nodes that come later lose nothing, in this graph or in another one: the model "
                "has no weights for single nodes, and uses no labels."
            )

        def cost(gap: Interval | None) -> str:
            if gap is None:
                return "nothing is lost"
            mean, low, high = map(metric.signed_text, (gap.mean, gap.low, gap.high))
            few = f"{mean}, by too few test nodes to tell,"
            return few if gap.says_nothing else f"{mean} ({low} to {high})"

        return (
            f"Nodes that come later: {cost(self.appended)} if they are appended to this graph, "
            f"{cost(self.elsewhere)} on another graph, where no label is known."
        )


def measure_later(
    problem: Problem,
    chosen: Chosen,
    splits: Sequence[int],
    look: Callable[[], None] = lambda: None,
) -> LaterNodes | None:
    """Hide what later nodes lack; None for a huge graph, or without the models, or the time.

    Args:
        problem: The problem of the search.
        chosen: The choice by validation.
        splits: The splits that the chosen candidates were fitted on.
        look: Called before each prediction; it may raise ``Enough``.
    """
    split, test = splits[0], np.flatnonzero(problem.masks.test)
    fits = [candidate.fits[split] for candidate in chosen.candidates]
    if problem.arcs.shape[1] > _ARCS or any(fit.part is None for fit in fits):
        return None

    def mean(outputs: Sequence[Outputs]) -> Outputs:
        total = sum(map(np.multiply, chosen.weights, outputs))
        return chosen.calibration.of(np.asarray(total))

    def cost(hidden: Inputs, *, labels: bool) -> Interval | None:
        said = []
        for fit in fits:
            look()
            assert fit.part is not None
            loses = _loses(fit.part, labels=labels)
            said.append(outputs_of(fit.part, hidden, test) if loses else fit.test)
        now, then = mean([fit.test for fit in fits]), mean(said)
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


def _loses(part: Part, *, labels: bool) -> bool:
    """Whether a part has rows for nodes, or, if that counts, uses labels of neighbours."""
    if isinstance(part, Network):
        return part.has_rows or (labels and part.takes_labels)
    assert isinstance(part, Linear | Trees)
    return part.view.sees in ("rows", "positions") or (labels and part.view.sees == "neighbours")
