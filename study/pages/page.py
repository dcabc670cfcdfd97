"""The report: one page that needs no network, with every figure and the command behind it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from markdown_it import MarkdownIt
from markupsafe import Markup

from memohop.report.environment import on_page, render
from memohop.version import __version__
from study import RESULTS, ROOT
from study.pages import page_tables
from study.pages.fair_page import fair_part
from study.pages.figure import FIGURES
from study.pages.gates import gates_chart
from study.pages.ranks import rank_diagram
from study.pages.table import legend
from study.paper.gates import Gates
from study.paper.table1 import Table1, difference, printed_comparison, table1
from study.runs.measured import measured
from study.runs.results import Results
from study.runs.tuned import Tuned
from study.statistics.comparison import ALPHA, Comparison

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


@dataclass(frozen=True)
class Findings:
    """The results to report; None for those that have not been measured yet."""

    table1: Results | None = None
    noise: Results | None = None
    lambda_: Results | None = None
    gates: Gates | None = None
    fair: Tuned | None = None

    @classmethod
    def load(cls, folder: Path | None = None) -> Findings:
        """Read the files of a folder, by default those of the study."""
        folder = folder or RESULTS
        files = (folder / f"{name}.json" for name in ("table1", "noise", "lambda"))
        table1, noise, lambda_ = (Results.load(p) if p.is_file() else None for p in files)
        gates, fair = folder / "gates.json", folder / "fair.json"
        return cls(
            table1,
            noise,
            lambda_,
            Gates.load(gates) if gates.is_file() else None,
            Tuned.load(fair) if fair.is_file() else None,
        )

    @property
    def results(self) -> list[Results]:
        """The results of the paper's experiments that are there."""
        return [found for found in (self.table1, self.noise, self.lambda_) if found]

    @property
    def everything(self) -> list[Results | Tuned]:
        """All results that are there."""
        return [*self.results, *([self.fair] if self.fair else [])]


def report_page(findings: Findings) -> str:
    """The whole page as text."""
    tables = table1(measured(findings.table1)) if findings.table1 else []
    printed = printed_comparison()
    return render(
        "report.html",
        package="study.pages",
        version=__version__,
        sections=_SECTIONS,
        alpha=ALPHA,
        percent=f"{100 * ALPHA:g}\N{NO-BREAK SPACE}%",
        words={"cliques": page_tables.cliques_in_words, "pairs": page_tables.pairs_in_words},
        summary=[_summary(table) for table in tables],
        commands={
            "table1": _from_the_start("table1", "table table1"),
            "noise": _from_the_start("noise", "figure noise"),
            "lambda": _from_the_start("lambda", "figure lambda"),
            "gates": ["python -m study bench gates --output study/results/gates.json"],
            "fair": _from_the_start("fair", "table fair"),
        },
        table1=[_table1_part(table) for table in tables],
        printed={"comparison": printed, "diagram": _diagram(printed, "the printed means")},
        noise=_figure_part("noise", findings.noise),
        lambda_=_figure_part("lambda", findings.lambda_),
        gates=_gates_part(findings.gates),
        fair=fair_part(findings.fair) if findings.fair else None,
        timings=page_tables.timing_table(findings.results) if findings.results else None,
        data=page_tables.data_table(findings.everything) if findings.everything else None,
        sources=_sources(findings.everything),
        errata=_errata(),
    )


def _from_the_start(experiment: str, command: str, protocol: str = "") -> list[str]:
    """The commands that make the results of an experiment, and its table or figure."""
    return [
        f"python -m study run {experiment}{protocol}",
        f"python -m study store export memohop-runs.sqlite {experiment}",
        f"python -m study {command}{protocol} --results study/results/{experiment}.json",
    ]


def _table1_part(table: Table1) -> dict[str, Any]:
    there = [model for model in _REFERENCES if model in table.models]
    return {
        "table": table,
        "scores": page_tables.scores_table(table),
        "legend": legend(table),
        "ranks": page_tables.ranks_table(table),
        "leads": [(model, page_tables.lead_table(table, model)) for model in there],
        "diagram": _diagram(table.comparison, f"protocol {table.protocol}")
        if table.comparison
        else None,
        "commands": _from_the_start("table1", "table table1", f" --protocol {table.protocol}"),
    }


def _summary(table: Table1) -> str:
    """How close the measured means are to the printed ones."""
    distances = {key: difference(cell)[1] for key, cell in table.cells.items()}
    near = {key: abs(stds) <= 1 for key, stds in distances.items() if stds is not None}
    parts = [f"{sum(near.values())} of the {len(near)} cells with a printed deviation"]
    for model in _REFERENCES:
        own = [within for (name, _), within in near.items() if name == model]
        if own:
            parts.append(f"{model} on {sum(own)} of {len(own)} datasets")
    return (
        f"Protocol {table.protocol}, {len(table.cells)} cells. Within one printed standard "
        f"deviation of the printed mean: {', '.join(parts)}."
    )


def _diagram(found: Comparison, whose: str) -> dict[str, Markup]:
    title = f"Average ranks of {whose}, and which of them may be equal"
    return {
        name: on_page(rank_diagram(found, title=title, width=width), f"ranks {name}")
        for name, width in (("wide", 720), ("narrow", 370))
    }


def _figure_part(name: str, results: Results | None) -> dict[str, Any] | None:
    find, chart, _ = FIGURES[name]
    panels = find(results) if results else []
    if not panels:
        return None
    charts = [on_page(chart(panel)) for panel in panels]
    if name == "lambda":
        return {"charts": charts, "table": page_tables.lambda_table(panels)}
    return {"charts": charts, "tables": [page_tables.noise_table(panel) for panel in panels]}


def _gates_part(gates: Gates | None) -> dict[str, Any] | None:
    if gates is None:
        return None
    charts = [on_page(gates_chart(curve)) for curve in gates.curves if curve.bins]
    return {"charts": charts, "command": gates.command}


def _sources(results: list[Results | Tuned]) -> list[str]:
    texts = []
    for found in results:
        for source in found.sources:
            versions = ", ".join(f"{name} {version}" for name, version in source.versions.items())
            commit = f", commit {source.commit[:12]}" if source.commit else ""
            texts.append(f"{found.experiment}: {source.device}; {versions}{commit}")
    return texts


@cache
def _errata() -> Markup:
    """The errata as HTML, one heading lower and without their title."""
    text = (ROOT / "ERRATA.md").read_text(encoding="utf-8")
    body = text.partition("\n")[2].replace("\n## ", "\n### ")
    html = MarkdownIt("commonmark", {"xhtmlOut": True, "html": False}).enable("table").render(body)
    return Markup(
        html.replace("<table>", '<div class="scroll" tabindex="0"><table>').replace(
            "</table>", "</table></div>"
        )
    )
