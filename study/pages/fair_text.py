"""The fair table in words, and as Markdown: leaderboards, and the tables that documents quote."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import fmean
from typing import Literal

from memohop.data.datasets.registry import describe
from study.pages.fair import (
    LABELS,
    SIDES,
    effects_table,
    name_of,
    published_table,
    score_cell,
)
from study.pages.tables import aligned, markdown_table, number, signed
from study.runs.results import Measured
from study.runs.tuned import Tuned
from study.statistics.best_published import PUBLISHED
from study.statistics.comparison import ALPHA
from study.statistics.effects import (
    ALL,
    MARGIN,
    RESIDUALS,
    Effect,
    beside_residuals,
    effects,
    homophily_correlation,
    on_other_real_graphs,
)
from study.statistics.leaderboard import Leaderboard, Side

MEMORY = "+mmp"
"""The plug-in that the question is about."""

Part = Literal["board", "flawed", "effects", "answers", "best"]
PARTS: tuple[Part, ...] = ("board", "flawed", "effects", "answers", "best")
"""Both leaderboards, what plug-ins add, the same in words, and the best beside published ones."""

_WITH_MEMORY: Mapping[Side, str] = {
    "plain memory": "Plain memory",
    "with memory": "Memory of any kind",
}
_TAKES_LABELS = f"{LABELS} takes training labels as input."


def markdown(tuned: Tuned, parts: Sequence[Part] = PARTS) -> str:
    """Parts of the fair table, one below the other; those without any figure are left out."""
    boards = {flawed: Leaderboard(tuned, flawed=flawed) for flawed in (False, True)}
    texts = []
    for part in parts:
        board = boards[part == "flawed"]
        if not board.cells:
            continue
        if part == "effects":
            texts += [markdown_table(effects_table(effects(board))), effects_legend()]
        elif part == "answers":
            texts += [f"- {text}" for text in answers(board, effects(board))]
        elif part == "best":
            texts += [markdown_table(published_table(board)), *published_legend(board)]
            texts += unfinished(board)
        else:
            texts += [_board(board), *legend(board, marks="With a star")]
    return "\n\n".join(texts) + "\n"


def _board(board: Leaderboard) -> str:
    rows = [["model", *(["average rank"] if board.ranks else []), *board.columns]]
    for row in board.rows:
        rank = [number(board.ranks.get(row)).text] if board.ranks else []
        texts = [_score(board, row, column) for column in board.columns]
        rows.append([name_of(board.of_row[row]), *rank, *texts])
    return aligned(rows)


def _score(board: Leaderboard, row: str, column: str) -> str:
    cell = score_cell(board, row, column)
    if cell.strong:
        return f"**{cell.line}**"
    return cell.line if cell.soft or cell.value is None else f"{cell.line}*"


def legend(board: Leaderboard, *, marks: str) -> list[str]:
    """How to read the leaderboard, in paragraphs of a sentence or two.

    Args:
        board: The leaderboard.
        marks: How it shows that a score is not significantly worse than the best.
    """
    shapes = {(len(cell.scores), cell.seeds) for cell in board.measured.values()}
    counts = " or ".join(
        f"{splits} splits" + (f" with {seeds} seeds" if seeds > 1 else "")
        for splits, seeds in sorted(shapes)
    )
    metrics = sorted({describe(board.of_column[column].dataset).metric for column in board.columns})
    auc = [c for c in board.columns if describe(board.of_column[c].dataset).metric == "roc_auc"]
    texts = [
        f"Protocol {board.tuned.protocol}. Test accuracy in percent"
        + (f" (ROC-AUC on {', '.join(auc)})" if "roc_auc" in metrics else "")
        + f", mean ± sample standard deviation (ddof=1) over {counts}"
        + ("; a split counts with the mean over its seeds" if max(s for _, s in shapes) > 1 else "")
        + ". Settings are chosen on validation alone, with the same budget for every model.",
        f"Bold: significantly better than every other model. {marks}: not significantly worse than "
        f"the best mean (corrected resampled t-test with Holm's correction, {100 * ALPHA:g} %).",
    ]
    if any(cell.takes_labels for cell in board.of_row.values()):
        texts.append(_TAKES_LABELS)
    if board.comparison:
        texts.append(
            f"Average rank and mean: over {len(board.ranked)} datasets, for models that have a "
            "score on all of them; equals share a rank."
        )
    if not board.flawed:
        texts += unfinished(board)
    else:
        flawed = dict.fromkeys(cell.dataset for cell in board.of_column.values())
        texts.append(
            "These data have a flaw, and scores on them mislead: "
            + "; ".join(f"{name} {describe(name).note}" for name in flawed)
            + "."
        )
    return texts


def unfinished(board: Leaderboard) -> list[str]:
    """A sentence on the datasets that are left out, if there are any."""
    names = ", ".join(board.tuned.unfinished)
    return [f"Not measured to the end yet, and left out: {names}."] if names else []


def effects_legend() -> str:
    """How to read the table of effects."""
    return (
        "Wins and losses: datasets on which the plug-in is significantly better or worse than its "
        "model without it (corrected resampled t-test, with Holm's correction for all plug-ins and "
        f"backbones of a dataset, {100 * ALPHA:g} %). p: the probability that over datasets the "
        f"plug-in makes the model better by more than {MARGIN:g} point, worse by as much, or "
        "neither (Bayesian signed-rank test). all seven: the mean gain over the backbones."
    )


def published_legend(board: Leaderboard) -> list[str]:
    """How to read the table beside published figures, and how often which side is ahead."""
    best = {
        side: {column: cell for column in board.columns if (cell := board.best(column, side))}
        for side in SIDES
    }
    counts = {side: len(board.of_side(side)) for side in SIDES}
    chosen = [board.of_row[cell.model] for cell in best["with memory"].values()]
    known = {
        column: cell.mean - PUBLISHED[column].points
        for column, cell in best["with memory"].items()
        if column in PUBLISHED
    }
    met = [column for column, away in known.items() if away >= -MARGIN]
    sources = {PUBLISHED[c].method: PUBLISHED[c].source for c in board.columns if c in PUBLISHED}
    texts = [
        "Of each side the model whose validation score is best, of "
        f"{counts['with memory']} with memory and {counts['without']} without. Of the former, "
        f"{counts['plain memory']} are plain; the others also take training labels or rows of the "
        "adjacency matrix as input, as do "
        f"{sum(cell.row != cell.model for cell in chosen)} of the {len(chosen)} chosen."
        + "".join(_ahead(name, best[side], best["without"]) for side, name in _WITH_MEMORY.items()),
        "The one with memory is above the best published figure or at most "
        f"{MARGIN:g} point below it on {len(met)} of {len(known)} datasets"
        + (f": {', '.join(met)}." if met else ".")
        + (f" {_TAKES_LABELS}" if any(cell.takes_labels for cell in chosen) else ""),
    ]
    if sources:
        listed = "; ".join(f"{method}: {source}" for method, source in sources.items())
        texts.append(f"Published: the best figure that we know on these splits. {listed}.")
    return texts


def _ahead(name: str, best: Mapping[str, Measured], reference: Mapping[str, Measured]) -> str:
    """How often and how far the best of one side are ahead of those of another, in a sentence."""
    leads = [best[column].mean - reference[column].mean for column in best if column in reference]
    if not leads:
        return ""
    return (
        f" {name} is ahead of the best without on {sum(lead > 0 for lead in leads)} of "
        f"{len(leads)} datasets, and {signed(f'{fmean(leads):+.2f}')} points on average."
    )


def answers(board: Leaderboard, of_all: list[Effect]) -> list[str]:
    """What memory adds, in a sentence or two for each way of using it, and beside residuals."""
    texts = []
    for effect in of_all:
        if not effect.plug_in.startswith(MEMORY) or effect.backbone != ALL:
            continue
        own = [each for each in of_all if each.plug_in == effect.plug_in and each.gains]
        wins, ties, losses = (sum(each.count(verdict) for each in own) for verdict in (1, 0, -1))
        alone = ", ".join(f"{each.backbone} {each.posterior.better:.2f}" for each in own)
        texts.append(
            f"{effect.plug_in}: {effect.mean:+.2f} points on average over {len(effect.points)} "
            f"datasets and {len(own)} backbones. Of {wins + ties + losses} cases it is "
            f"significantly better than its backbone in {wins}, worse in {losses}, and neither in "
            f"{ties}. The probability that it makes the mean of the {len(own)} backbones better by "
            f"more than {MARGIN:g} point is {effect.posterior.better:.2f}, that it makes it worse "
            f"by as much {effect.posterior.worse:.2f}, and that it makes no such difference "
            f"{effect.posterior.same:.2f}. That it makes a single one better by as much: {alone}."
        )
        elsewhere = on_other_real_graphs(board, effect)
        if len(elsewhere.points) > 2:
            rho, p = homophily_correlation(board, elsewhere)
            texts.append(
                f"{effect.plug_in} on the {len(elsewhere.points)} real graphs that are not web "
                f"graphs: {elsewhere.mean:+.2f} points on average. The probability that it makes "
                f"the mean of the {len(own)} backbones better by more than {MARGIN:g} point is "
                f"{elsewhere.posterior.better:.2f}. Rank correlation of gain and homophily there: "
                f"{rho:+.2f} (p {p:.2g}); over all {len(effect.points)} datasets: "
                "{:+.2f} (p {:.2g}).".format(*homophily_correlation(board, effect))
            )
    for effect in beside_residuals(board, MEMORY):
        given = effect.posterior
        texts.append(
            f"{effect.backbone}{effect.plug_in} less {effect.backbone}{RESIDUALS}: "
            f"{effect.mean:+.2f} points on average over {len(effect.points)} datasets. The "
            f"probability that memory is better than residuals by more than {MARGIN:g} point is "
            f"{given.better:.2f}, that it is worse by as much {given.worse:.2f}."
        )
    return texts
