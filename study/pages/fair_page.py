"""The sections of the report on the fair table."""

from __future__ import annotations

from functools import partial
from typing import Any

from memohop.report.environment import both_widths, on_page
from study.pages import fair_tables
from study.pages.fair_charts import cost_chart, gain_chart
from study.pages.ranks import rank_diagram
from study.runs.tuned import Tuned
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
from study.statistics.leaderboard import KINDS, Leaderboard, family_of

MEMORY = "+mmp"
"""The plug-in that the question is about."""


def fair_part(tuned: Tuned) -> dict[str, Any]:
    """Everything that the template needs."""
    board, flawed = Leaderboard(tuned), Leaderboard(tuned, flawed=True)
    found = effects(board) if board.cells else []
    of_memory = [effect for effect in found if effect.plug_in == MEMORY and effect.gains]
    boards = [one for one in (board, flawed) if one.cells]
    return {
        "boards": [
            {
                "flawed": one.flawed,
                "board": fair_tables.board_table(one),
                "legend": fair_tables.legend(one, marks="Not grey"),
                "cells": fair_tables.cell_tables(one),
            }
            for one in boards
        ],
        "kinds": KINDS,
        "families": sorted(
            {family_of(cell.dataset) for one in boards for cell in one.of_column.values()}
        ),
        "comparison": board.comparison,
        "diagram": {
            name: on_page(
                rank_diagram(board.comparison, title="Average ranks of all models", width=width),
                f"ranks {name}",
            )
            for name, width in (("wide", 720), ("narrow", 370))
        }
        if board.comparison
        else None,
        "cost": both_widths(partial(cost_chart, board), wide=420, narrow=400)
        if board.comparison and any(cell.seconds for cell in board.cells.values())
        else None,
        "gains": both_widths(partial(gain_chart, of_memory), wide=460, narrow=420)
        if of_memory
        else None,
        "answers": answers(board, found),
        "effects": fair_tables.effects_table(found) if found else None,
        "effects_legend": fair_tables.effects_legend(),
        "published": fair_tables.published_table(board) if board.cells else None,
        "published_legend": fair_tables.published_legend(board),
    }


def answers(board: Leaderboard, found: list[Effect]) -> list[str]:
    """What memory adds, in a sentence or two for each way of using it, and beside residuals."""
    texts = []
    for effect in found:
        if not effect.plug_in.startswith(MEMORY) or effect.backbone != ALL:
            continue
        own = [one for one in found if one.plug_in == effect.plug_in and one.gains]
        wins, ties, losses = (sum(one.count(verdict) for one in own) for verdict in (1, 0, -1))
        alone = ", ".join(f"{one.backbone} {one.posterior.better:.2f}" for one in own)
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
    texts += [
        f"{one.backbone}{one.plug_in} less {one.backbone}{RESIDUALS}: {one.mean:+.2f} points on "
        f"average over {len(one.points)} datasets. The probability that memory is better than "
        f"residuals by more than {MARGIN:g} point is {one.posterior.better:.2f}, that it is worse "
        f"by as much {one.posterior.worse:.2f}."
        for one in beside_residuals(board, MEMORY)
    ]
    return texts
