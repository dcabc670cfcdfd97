"""The report: one page that needs no network, with every figure and the command behind it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from operator import itemgetter
from pathlib import Path
from typing import Any

from markdown_it import MarkdownIt
from markupsafe import Markup

from memohop.data.datasets.registry import describe
from memohop.report.environment import on_page, render
from memohop.version import __version__
from study import RESULTS, ROOT
from study.pages import fair
from study.pages.figures import (
    FIGURES,
    cost_chart,
    gain_chart,
    gates_chart,
    lambda_table,
    noise_table,
    rank_diagram,
)
from study.pages.table1 import lead_table, legend, ranks_table, scores_table
from study.pages.tables import Table, TableCell, duration, number
from study.paper.gates import Gates
from study.paper.table1 import Table1, difference, printed_comparison, tables_of
from study.runs.results import Results, SavedResults, grouped, measured
from study.runs.tuned import Tuned
from study.statistics.comparison import ALPHA, Comparison
from study.statistics.effects import effects
from study.statistics.leaderboard import KINDS, Leaderboard, family_of

_SECTIONS = (
    ("table1", "Table 1"),
    ("ranks", "Ranks"),
    ("leads", "Differences"),
    ("noise", "Added edges"),
    ("lambda", "Lambda"),
    ("gates", "Gates"),
    ("fair", "The fair table"),
    ("memory", "Does memory help?"),
    ("timings", "Timings"),
    ("data", "Data and software"),
    ("errata", "Errata"),
)
_REFERENCES = ("gcn+mmp", "gat+mmp")
_RANKS = "Average ranks of {}, and which of them may be equal"


@dataclass(frozen=True)
class Findings:
    """The results to report; None for those that have not been measured yet."""

    table1: Results | None = None
    noise: Results | None = None
    lambda_: Results | None = None
    gates: Gates | None = None
    fair: Tuned | None = None

    @classmethod
    def load(cls, folder: Path = RESULTS) -> Findings:
        """Read those of these files that a folder has."""
        there = {path.stem: path for path in folder.glob("*.json")}
        kinds: dict[str, type[SavedResults]] = dict.fromkeys(("table1", "noise", "lambda"), Results)
        kinds |= {"gates": Gates, "fair": Tuned}
        loaded: list[Any] = [
            kind.load(there[name]) if name in there else None for name, kind in kinds.items()
        ]
        return cls(*loaded)

    @property
    def results(self) -> list[Results]:
        """The results of the paper's experiments that are there."""
        return [results for results in (self.table1, self.noise, self.lambda_) if results]


def report_page(findings: Findings) -> str:
    """The whole page as text."""
    tables = tables_of(measured(findings.table1)) if findings.table1 else []
    everything: list[Results | Tuned] = [*findings.results]
    everything += [findings.fair] if findings.fair else []
    printed = printed_comparison()
    curves = findings.gates.curves if findings.gates else ()
    return render(
        "report.html",
        package="study.pages",
        version=__version__,
        sections=_SECTIONS,
        alpha=ALPHA,
        percent=f"{100 * ALPHA:g}\N{NO-BREAK SPACE}%",
        words={"cliques": cliques_in_words, "pairs": pairs_in_words},
        summary=[_summary(table) for table in tables],
        commands={
            "table1": _from_the_start("table", "table1"),
            "noise": _from_the_start("figure", "noise"),
            "lambda": _from_the_start("figure", "lambda"),
            "gates": ["python -m study bench gates --output study/results/gates.json"],
            "fair": _from_the_start("table", "fair"),
        },
        table1=[_table1_part(table) for table in tables],
        printed={
            "comparison": printed,
            "diagram": _ranks(printed, _RANKS.format("the printed means")),
        },
        noise=_figure_part("noise", findings.noise),
        lambda_=_figure_part("lambda", findings.lambda_),
        gates=findings.gates,
        gate_charts=[on_page(gates_chart(curve)) for curve in curves if curve.bins],
        fair=_fair_part(findings.fair) if findings.fair else None,
        timings=timing_table(findings.results) if findings.results else None,
        data=data_table(everything) if everything else None,
        sources=_sources(everything),
        errata=_errata(),
    )


def _from_the_start(command: str, name: str, protocol: str = "") -> list[str]:
    """The commands that make the results of an experiment, and its table or figure."""
    return [
        f"python -m study run {name}{protocol}",
        f"python -m study store export memohop-runs.sqlite {name}",
        f"python -m study {command} {name}{protocol} --results study/results/{name}.json",
    ]


def _table1_part(table: Table1) -> dict[str, Any]:
    there = [model for model in _REFERENCES if model in table.rows]
    return {
        "table": table,
        "scores": scores_table(table),
        "legend": legend(table),
        "ranks": ranks_table(table),
        "leads": [(model, lead_table(table, model)) for model in there],
        "diagram": _ranks(table.comparison, _RANKS.format(f"protocol {table.protocol}")),
        "commands": _from_the_start("table", "table1", f" --protocol {table.protocol}"),
    }


def _summary(table: Table1) -> str:
    """How close the measured means are to the printed ones."""
    distances = {key: difference(cell)[1] for key, cell in table.measured.items()}
    near = {key: abs(stds) <= 1 for key, stds in distances.items() if stds is not None}
    parts = [f"{sum(near.values())} of the {len(near)} cells with a printed deviation"]
    for model in _REFERENCES:
        own = [within for (name, _), within in near.items() if name == model]
        if own:
            parts.append(f"{model} on {sum(own)} of {len(own)} datasets")
    return (
        f"Protocol {table.protocol}, {len(table.measured)} cells. Within one printed standard "
        f"deviation of the printed mean: {', '.join(parts)}."
    )


def _ranks(comparison: Comparison | None, title: str) -> dict[str, Markup] | None:
    """The diagram of average ranks, for screens and for phones."""
    if comparison is None:
        return None
    widths = {"wide": 720, "narrow": 370}
    return {
        name: on_page(rank_diagram(comparison, title=title, width=width), f"ranks {name}")
        for name, width in widths.items()
    }


def _figure_part(name: str, results: Results | None) -> dict[str, Any] | None:
    panels = FIGURES[name](results) if results else []
    if not panels:
        return None
    tables = [lambda_table(panels)] if name == "lambda" else [noise_table(p) for p in panels]
    return {"charts": [on_page(panel.draw()) for panel in panels], "tables": tables}


def _fair_part(tuned: Tuned) -> dict[str, Any]:
    """Everything on the fair table."""
    board = Leaderboard(tuned)
    boards = [each for each in (board, Leaderboard(tuned, flawed=True)) if each.cells]
    of_all = effects(board) if board.cells else []
    of_memory = [effect for effect in of_all if effect.plug_in == fair.MEMORY and effect.gains]
    has_costs = board.comparison and any(cell.seconds for cell in board.cells.values())
    return {
        "boards": [
            {
                "flawed": each.flawed,
                "board": fair.board_table(each),
                "legend": fair.legend(each, marks="Not grey"),
                "cells": fair.cell_tables(each),
            }
            for each in boards
        ],
        "kinds": KINDS,
        "families": sorted({family_of(c.dataset) for b in boards for c in b.of_column.values()}),
        "comparison": board.comparison,
        "diagram": _ranks(board.comparison, "Average ranks of all models"),
        "cost": cost_chart(board).both_widths(wide=420, narrow=400) if has_costs else None,
        "gains": gain_chart(of_memory).both_widths(wide=460, narrow=420) if of_memory else None,
        "answers": fair.answers(board, of_all),
        "effects": fair.effects_table(of_all) if of_all else None,
        "effects_legend": fair.effects_legend(),
        "published": fair.published_table(board) if board.cells else None,
        "published_legend": fair.published_legend(board),
    }


def timing_table(results: Iterable[Results]) -> Table:
    """How long the training took, a row for each experiment, protocol, dataset and device."""
    trained = [
        ((of.experiment, row.protocol, row.dataset, of.sources[row.source].device), row)
        for of in results
        for row in of.rows
    ]
    rows = []
    for key, group in grouped(trained, itemgetter(0)).items():
        epochs, seconds = (
            sum(getattr(row, of) for _, row in group) for of in ("epochs", "seconds")
        )
        each = TableCell(f"{1000 * seconds / epochs:.3f}", value=seconds / epochs)
        counts = number(len(group), ",.0f"), number(epochs, ",.0f")
        rows.append((*map(TableCell, key), *counts, duration(seconds), each))
    head = ("experiment", "protocol", "dataset", "device", "networks", "epochs", "time", "ms each")
    return Table(head, tuple(rows), "timing-list")


def data_table(results: Iterable[Results | Tuned]) -> Table:
    """Which version of each dataset was used, by the digest of its files."""
    digests: dict[tuple[str, str], None] = {}
    for of_experiment in results:
        for dataset in of_experiment.datasets:
            known = {source.datasets.get(dataset, "") for source in of_experiment.sources} - {""}
            digests |= dict.fromkeys((dataset, digest) for digest in sorted(known) or [""])
    rows = []
    for dataset, digest in digests:
        info = describe(dataset)
        size = (number(info.nodes, ","), number(info.arcs, ","), number(info.homophily))
        source = TableCell(info.source, (info.note,) if info.note else ())
        rows.append((TableCell(dataset), TableCell(digest[:12] or "not recorded"), *size, source))
    head = ("dataset", "digest", "nodes", "arcs", "homophily", "source")
    return Table(head, tuple(rows), "data-versions")


def pairs_in_words(pairs: Sequence[tuple[str, str]]) -> str:
    """Pairs of models, the better one first, grouped by the better one."""
    by_first = grouped(pairs, itemgetter(0)).items()
    texts = (f"{better} from {', '.join(worse for _, worse in own)}" for better, own in by_first)
    return "; ".join(texts) or "no pair"


def cliques_in_words(comparison: Comparison) -> str:
    """The groups of models between which there is no difference."""
    if not comparison.cliques:
        return "every pair of neighbours differs"
    if len(comparison.cliques[0]) == len(comparison.models):
        return f"all {len(comparison.models)} models together"
    ends = ((clique[0], clique[-1], len(clique)) for clique in comparison.cliques)
    return "; ".join(f"{first} to {last} ({count})" for first, last, count in ends)


def _sources(results: list[Results | Tuned]) -> Iterator[str]:
    for of_experiment in results:
        for source in of_experiment.sources:
            versions = ", ".join(map(" ".join, source.versions.items()))
            commit = f", commit {source.commit[:12]}" if source.commit else ""
            yield f"{of_experiment.experiment}: {source.device}; {versions}{commit}"


@cache
def _errata() -> Markup:
    """The errata as HTML, one heading lower and without their title."""
    text = (ROOT / "ERRATA.md").read_text(encoding="utf-8")
    body = text.partition("\n")[2].replace("\n## ", "\n### ")
    html = MarkdownIt("commonmark", {"xhtmlOut": True, "html": False}).enable("table").render(body)
    wide = html.replace("<table>", '<div class="scroll" tabindex="0"><table>')
    return Markup(wide.replace("</table>", "</table></div>"))
