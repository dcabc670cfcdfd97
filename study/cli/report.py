"""`python -m study table`, `figure`, `report`: show results of experiments, train nothing."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from memohop.cli import OUTPUT, print_json, remark
from memohop.errors import UsageError
from memohop.outputs import check_output, write_whole
from study import RESULTS
from study.cli.app import ResultsFile, app

if TYPE_CHECKING:
    from study.statistics.leaderboard import Board

_FORMATS = {
    "table1": ("md", "latex", "csv", "json"),
    "claim2": ("md",),
    "fair": ("md", "csv", "json"),
}
_TABLE_EXAMPLES = """Examples:
  python -m study table table1
  python -m study table table1 --protocol paper --format latex
  python -m study table table1 --results study/results/table1.json --format json
  python -m study table claim2
  python -m study table fair --results study/results/fair.json
  python -m study table fair --part best --part answers"""
_FIGURE_EXAMPLES = """Examples:
  python -m study figure noise
  python -m study figure lambda --output my-lambda.svg
  python -m study figure noise --results study/results/noise.json"""
_REPORT_EXAMPLES = """Examples:
  python -m study report
  python -m study report --results results --output my-report.html"""


@app.command(help_epilogue=_TABLE_EXAMPLES)
def table(
    name: Literal["table1", "claim2", "fair"],
    *,
    protocol: str | None = None,
    format: Literal["md", "latex", "csv", "json"] = "md",
    part: list[Literal["board", "flawed", "effects", "answers", "best"]] | None = None,
    results: ResultsFile = None,
) -> None:
    """Show Table 1 of the paper, measured beside printed, or the fair table of all models.

    Args:
        name: table1, claim2 (is memory comparable on homophilous graphs?) or fair.
        protocol: One of the protocols of the results; all of them by default.
        format: Markdown, LaTeX, CSV, or a list of JSON objects.
        part: Of fair in Markdown: the leaderboard, that of data with a flaw, what plug-ins add,
            the same in words, or the best beside published figures; all by default. May be
            repeated.
    """
    if part and (name != "fair" or format != "md"):
        raise UsageError(f"--part {part[0]} goes with table fair --format md; leave it out")
    if format not in (formats := _FORMATS[name]):
        raise UsageError(f"--format {format} is for table1; give {' or '.join(formats)} for {name}")

    from study.pages import fair, table1
    from study.pages.tables import comma_separated
    from study.paper.table1 import tables_of
    from study.runs.results import Results, measured
    from study.runs.tuned import Tuned
    from study.statistics.leaderboard import Leaderboard

    boards: Sequence[Board]
    if name == "fair":
        tuned = Tuned.load(results or "fair")
        if protocol not in (None, tuned.protocol):
            raise UsageError(
                f"--protocol {protocol} has no results; those with results: {tuned.protocol}"
            )
        boards = [Leaderboard(tuned), Leaderboard(tuned, flawed=True)]
        write = partial(fair.markdown, tuned, part or fair.PARTS)
    else:
        boards = tables_of(measured(Results.load(results or "table1")), protocol=protocol)
        writers = {"latex": table1.latex, "claim2": table1.claim2}
        write = partial(writers.get(format, writers.get(name, table1.markdown)), boards)
    if format in ("md", "latex"):
        print(write(), end="")
        return
    rows = [row for board in boards for row in board.flat()]
    if format == "json":
        print_json(rows)
    else:
        print(comma_separated(rows), end="")


@app.command(help_epilogue=_FIGURE_EXAMPLES)
def figure(
    name: Literal["noise", "lambda"],
    *,
    output: Annotated[Path | None, OUTPUT] = None,
    results: ResultsFile = None,
) -> None:
    """Draw a figure of the paper from measured results.

    Args:
        name: noise (accuracy against added edges) or lambda (accuracy against lambda).
        output: The SVG file to write; NAME.svg by default.
    """
    from study.pages.figures import figure_svg
    from study.runs.results import Results

    output = output or Path(f"{name}.svg")
    check_output(output, ".svg", inputs=[results])
    write_whole(output, figure_svg(name, Results.load(results or name)))
    remark(f"wrote {output}")


@app.command(help_epilogue=_REPORT_EXAMPLES)
def report(
    *,
    output: Annotated[Path, OUTPUT] = Path("memohop-report.html"),
    results: Path | None = None,
) -> None:
    """Write one page with all tables and figures; it needs no network.

    Where results are missing, the page gives the command that measures them.

    Args:
        output: The page to write.
        results: A folder with any of table1.json, noise.json, lambda.json, gates.json and
            fair.json; by default those of the study.
    """
    from study.pages.page import Findings, report_page

    check_output(output, ".html")
    if results is not None and not results.is_dir():
        raise UsageError(f"--results {results}: there is no such folder; give one with results")
    write_whole(output, report_page(Findings.load(results or RESULTS)))
    remark(f"wrote {output}; open it in a browser")
