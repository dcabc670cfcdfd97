"""Do the intervals of ``fit`` hold what they promise? On made-up graphs, of which all is known.

    python benchmarks/intervals.py [--fits 200] [--seed 0] [--parts claims,halves,numbers,precision]

*Claims*: labels that are chance, one for each node or one for each group, and how often the verdict
says that the graph helps. *Halves*: the interval on some hidden nodes, and whether the value on
thousands of other hidden nodes is in it, for the score of what would be kept and for the gain from
the graph. *Numbers*: how many hidden numbers are in their 90 % interval. *Precision*: how much too
high average precision of few positive nodes is on average, at most. Prints tables in Markdown.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from memohop.data.folds import make_masks
from memohop.data.splits import OwnSplit
from memohop.fit._certainty import paired_interval, score_interval, too_high
from memohop.fit._ensemble import choose
from memohop.fit._portfolio import search
from memohop.fit._problem import Problem
from memohop.fit._residual import reach
from memohop.fit._verdict import answers, on_test_nodes
from memohop.fit.candidates.catalogue import families
from memohop.training import DEFAULT_RULES
from memohop.training.metrics import METRICS, Interval, metrics_for
from memohop.training.objective import Classification, Regression

_KINDS = ("linear", "linear+neighbours", "lightgbm", "lightgbm+neighbours")
_RANDOM = 300  # nodes of a graph with random labels
_LEARNED, _HIDDEN = 240, 4000
_HALVES, _NODES, _GROUPS = 10, 200, 33  # hidden halves of a graph, and the size of each


def made_up(seed: int, nodes: int, *, grouped: bool) -> tuple[Any, ...]:
    """Columns, arcs, groups and what the two say of a node, a number."""
    draw = np.random.default_rng(seed)
    groups = np.repeat(np.arange(nodes), draw.integers(4, 9, nodes))[:nodes]
    x = draw.normal(size=(nodes, 5))
    if grouped:
        x = 0.7 * x + draw.normal(size=(nodes, 5))[groups]
    ends = draw.integers(nodes, size=(2, 3 * nodes))
    near = np.clip(ends[0] + draw.integers(1, 4, 3 * nodes), 0, nodes - 1)
    ends[1] = np.where(draw.random(3 * nodes) < 0.5, near, ends[1])  # of the same group, often
    arcs = np.unique(np.hstack([ends, ends[::-1]]), axis=1)
    around = np.bincount(arcs[0], x[arcs[1], 1], nodes) / np.maximum(
        np.bincount(arcs[0], minlength=nodes), 1
    )
    shared = draw.normal(size=nodes)[groups] if grouped else 0.0
    meaning = x[:, 0] + 1.5 * around + shared + draw.normal(size=nodes)
    return x.astype(np.float32), arcs, groups if grouped else None, meaning


def problem_of(
    metric: str, y: NDArray[Any], seed: int, rest: tuple[Any, ...], **of: Any
) -> Problem:
    """The problem of ``fit``, with two splits."""
    x, arcs, groups = rest
    kind = Regression if METRICS[metric].is_regression else Classification
    masks = make_masks(
        y, splits=2, seed=seed, groups=groups, both_classes=METRICS[metric].is_ranking, **of
    )
    return Problem(x, arcs, y, objective=kind(METRICS[metric]), masks=masks, groups=groups)


def searched(problem: Problem, seed: int) -> tuple[Any, Any, Any]:
    """The kinds of model, the search, and what it would keep."""
    kinds = families(_KINDS, rules=DEFAULT_RULES, seed=seed, device="cpu", memory=None)
    runs = search(problem, kinds, time=None, trials=1, seed=seed)
    return {kind.id: kind for kind in kinds}, runs, choose(problem, runs)


def claims(fits: int, first: int = 0) -> None:
    """How often labels that are chance give a claim."""
    print("| random labels | fits | the graph helps | it does not help |\n|---|---|---|---|")
    for grouped in (False, True):
        above = below = 0
        for seed in range(first, first + fits):
            x, arcs, groups, _ = made_up(seed, _RANDOM, grouped=grouped)
            y = np.random.default_rng([seed, 1]).integers(2, size=_RANDOM)
            y = y[groups] if grouped else y
            problem = problem_of("accuracy", y, seed, (x, arcs, groups))
            kinds, runs, _ = searched(problem, seed)
            (graph,) = [
                answer for answer in answers(problem, kinds, runs) if answer.question == "graph"
            ]
            above, below = above + graph.gain.above_zero, below + graph.gain.below_zero
        name = "one for each group" if grouped else "one for each node"
        print(f"| {name} | {fits} | {above / fits:.1%} | {below / fits:.1%} |", flush=True)


def with_hidden(
    metric: str, seed: int, *, grouped: bool, learned: int = _LEARNED
) -> tuple[Problem, NDArray[np.bool_]]:
    """A problem of which thousands of nodes are hidden: they are its test nodes."""
    *rest, meaning = made_up(seed, learned + _HIDDEN, grouped=grouped)
    first = np.arange(len(meaning)) < learned
    if grouped:  # groups are whole
        first &= rest[2] < rest[2][learned]
    y = meaning
    if not METRICS[metric].is_regression:
        share = 0.7 if METRICS[metric].is_ranking else 0.5
        y = (meaning > np.quantile(meaning, share)).astype(np.int64)
    own = OwnSplit(first, np.zeros_like(first), ~first)
    return problem_of(metric, y, seed, tuple(rest), own=own), ~first


def halves(fits: int, first: int = 0) -> None:
    """How often the interval on some nodes holds the value on many others."""
    print("| metric | groups | intervals | of the score | of the gain |\n|---|---|---|---|---|")
    for metric in metrics_for(regression=False) + metrics_for(regression=True):
        for grouped in (False, True):
            held = np.zeros(2)
            for seed in range(first, first + fits):
                problem, hidden = with_hidden(metric, seed, grouped=grouped)
                kinds, runs, chosen = searched(problem, seed)
                kept = chosen.of_test(runs.splits)
                best = {
                    way: on_test_nodes(
                        next(
                            candidate
                            for candidate in runs.complete()
                            if kinds[candidate.setting.family].sees_graph is way
                        )
                    )
                    for way in (True, False)
                }
                rows, draw = np.flatnonzero(hidden), np.random.default_rng([seed, 2])
                unit = problem.groups[rows] if grouped else np.arange(len(rows))
                order, size = draw.permutation(np.unique(unit)), _GROUPS if grouped else _NODES
                if problem.classes and not grouped:  # class by class, as test nodes are drawn
                    order = order[np.argsort(problem.y[rows][order], kind="stable")]
                for half in range(_HALVES):
                    inside = np.isin(unit, order[half :: len(order) // size])
                    held += _holds(problem, rows, inside, kept, best[True], best[False])
            shares = [f"{count / fits / _HALVES:.1%}" for count in held]
            name = "yes" if grouped else "no"
            print(f"| {metric} | {name} | {fits * _HALVES} | {' | '.join(shares)} |", flush=True)


def _holds(
    problem: Problem,
    rows: NDArray[Any],
    inside: NDArray[np.bool_],
    kept: Any,
    with_graph: Any,
    without: Any,
) -> list[bool]:
    """Whether the interval of the score, and that of the gain, hold the value on other nodes."""
    mask = np.zeros(problem.nodes, dtype=bool)
    mask[rows[inside]] = True

    def value(said: Any) -> float:
        return problem.score(said[~inside], rows[~inside])

    def holds(interval: Interval, truth: float) -> bool:
        return interval.low <= truth <= interval.high

    return [
        holds(score_interval(problem, mask, kept[inside]), value(kept)),
        holds(
            paired_interval(problem, mask, with_graph[inside], without[inside]),
            value(with_graph) - value(without),
        ),
    ]


def numbers(fits: int, first: int = 0) -> None:
    """How many numbers of hidden nodes are within their interval."""
    print("| labelled nodes | groups | fits | numbers in their 90 % interval |\n|---|---|---|---|")
    for learned in (20, 60, 240):
        for grouped in (False, True):
            inside, endless = [], 0
            for seed in range(first, first + fits):
                problem, hidden = with_hidden("mae", seed, grouped=grouped, learned=learned)
                _, runs, chosen = searched(problem, seed)
                said, y = chosen.of_validation(problem, runs.splits)
                groups = None
                if grouped:
                    val = problem.masks.val
                    groups = np.concatenate([problem.groups[val[:, s]] for s in runs.splits])
                far = reach(np.abs(said[:, 0] - y), groups)
                endless += not np.isfinite(far)
                off = np.abs(chosen.of_test(runs.splits)[:, 0] - problem.y[hidden])
                inside.append(float((off <= far).mean()))
            text = "all are infinite" if endless == fits else f"{np.mean(inside):.1%}"
            text += f" ({endless} infinite)" if 0 < endless < fits else ""
            name = "yes" if grouped else "no"
            print(f"| {learned} | {name} | {fits} | {text} |", flush=True)


def precision(fits: int, first: int = 0) -> None:
    """How much too high average precision is on average, at most over shares and distances."""
    print("| positive nodes | points too high, at most | said at most |\n|---|---|---|")
    score, draw = METRICS["average_precision"].weighted, np.random.default_rng(first)

    def mean_of(positives: int, share: float, apart: float, times: int) -> float:
        truth = np.arange(round(positives / share)) < positives
        return float(
            np.mean(
                [
                    score(truth, draw.normal(size=len(truth)) + apart * truth, None)
                    for _ in range(times)
                ]
            )
        )

    ways = [(share, apart) for share in (0.01, 0.03, 0.1, 0.3) for apart in (0, 0.5, 1, 2, 3)]
    large = {way: mean_of(10_000, *way, 2) for way in ways}
    for positives in (3, 5, 10, 20, 30, 50):
        most = max(mean_of(positives, *way, 5 * fits) - large[way] for way in ways)
        print(f"| {positives} | {100 * most:.1f} | {too_high(positives)} |", flush=True)


_PARTS: dict[str, Callable[[int, int], None]] = {
    "claims": claims,
    "halves": lambda fits, first: halves(max(1, fits // 5), first),
    "numbers": lambda fits, first: numbers(max(1, fits // 4), first),
    "precision": precision,
}


def main() -> None:
    """Read the arguments, and print a table for each part."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--fits", type=int, default=200, help="graphs with random labels")
    parser.add_argument("--seed", type=int, default=0, help="of the first graph")
    parser.add_argument("--parts", default=",".join(_PARTS), help="some of them, with commas")
    given, begin = parser.parse_args(), time.monotonic()
    for name in given.parts.split(","):
        print(f"\n{name}\n")
        _PARTS[name](given.fits, given.seed)
    print(f"\n{time.monotonic() - begin:.0f} seconds")


if __name__ == "__main__":
    main()
