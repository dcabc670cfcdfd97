"""The sections of the report on the fair table."""

from __future__ import annotations

from functools import partial
from typing import Any

from memohop.report.environment import both_widths, on_page
from study.pages import fair_tables
from study.pages.fair_charts import cost_chart, gain_chart
from study.pages.ranks import rank_diagram
from study.runs.tuned import Tuned
from study.statistics.effects import ALL, MARGIN, Effect, effects
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
        "answers": answers(found),
        "effects": fair_tables.effects_table(found) if found else None,
        "effects_legend": fair_tables.effects_legend(),
        "published": fair_tables.published_table(board) if board.cells else None,
        "published_legend": fair_tables.published_legend(board),
    }


def answers(found: list[Effect]) -> list[str]:
    """What memory adds, in a sentence for each way of using it."""
    texts = []
    for effect in found:
        if not effect.plug_in.startswith(MEMORY) or effect.backbone != ALL:
            continue
        own = [one for one in found if one.plug_in == effect.plug_in and one.gains]
        wins, ties, losses = (sum(one.count(verdict) for one in own) for verdict in (1, 0, -1))
        points = sum(effect.points) / len(effect.points)
        texts.append(
            f"{effect.plug_in}: {points:+.2f} points on average over {len(effect.points)} datasets "
            f"and {len(own)} backbones. Of {wins + ties + losses} cases it is significantly better "
            f"than its backbone in {wins}, worse in {losses}, and neither in {ties}. The "
            f"probability that it makes a backbone better by more than {MARGIN:g} point is "
            f"{effect.posterior.better:.2f}, that it makes it worse by as much "
            f"{effect.posterior.worse:.2f}, and that it makes no such difference "
            f"{effect.posterior.same:.2f}."
        )
    return texts
