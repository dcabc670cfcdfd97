"""Table 1 as text: Markdown, LaTeX and CSV, with measured and printed scores; the second claim."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from memohop.errors import UsageError
from study.paper import homophilous
from study.paper.printed import Printed, printed_ranks, printed_table1
from study.paper.table1 import Table1, difference, printed_comparison, ranks_of
from study.runs.measured import MeanAndStd
from study.statistics.comparison import ALPHA

_NOTHING = "-"


def lines(table: Table1, bold: Callable[[str], str]) -> Iterator[list[str]]:
    """Three lines for each model: measured, printed, and their difference.

    A line has the model (in the first of its lines alone), the kind of line, a text for each
    dataset, and the average rank; measured scores among the best of their column are bold.
    """
    for model in table.models:
        measured, printed, differences = [], [], []
        for key in ((model, dataset) for dataset in table.datasets):
            cell, was = table.cells.get(key), printed_table1().get(key)
            text = score(cell) if cell else _NOTHING
            measured.append(bold(text) if table.among_the_best(*key) else text)
            printed.append(score(was) if was else _NOTHING)
            differences.append(distance(*difference(cell)) if cell else _NOTHING)
        rank = f"{table.ranks[model]:.2f}" if table.ranks else _NOTHING
        yield [model, "measured", *measured, rank]
        yield ["", "printed", *printed, printed_rank(model)]
        yield ["", "difference", *differences, ""]


def printed_rank(model: str) -> str:
    """The printed average rank, and in brackets that of the printed means."""
    if model not in printed_ranks():
        return _NOTHING
    return f"{printed_ranks()[model]:.1f} ({ranks_of(printed_comparison())[model]:.2f})"


def score(found: MeanAndStd | Printed) -> str:
    """Mean and standard deviation, where there is one."""
    return f"{found.mean:.2f}" if found.std is None else f"{found.mean:.2f} ± {found.std:.2f}"


def distance(points: float | None, stds: float | None) -> str:
    """A difference in points, and in printed standard deviations."""
    if points is None:
        return _NOTHING
    return f"{points:+.2f}" if stds is None else f"{points:+.2f} ({stds:+.1f} s)"


def legend(table: Table1) -> list[str]:
    """How to read the table, in paragraphs of a sentence or two."""
    splits = {len(cell.scores) for cell in table.cells.values()}
    seeds = {cell.seeds for cell in table.cells.values()}
    texts = [
        f"Protocol {table.protocol}. Test accuracy in percent, mean ± sample standard deviation "
        f"(ddof=1) over {_count(splits, 'split')}, with {_count(seeds, 'seed')} each; settings are "
        "chosen by mean validation accuracy.",
        "Difference: measured less printed, in points and in printed standard deviations (s). "
        "Printed Cornell is compared with cornell-legacy, the faulty file that it was run on.",
        "Bold: the best mean of a column and all that are not significantly worse (corrected "
        f"resampled t-test with Holm's correction, {100 * ALPHA:g} %).",
    ]
    if table.comparison:
        texts.append(
            f"Average rank: over {len(table.ranked)} datasets, equals share a rank. Printed, and "
            "in brackets recomputed from the printed means."
        )
    return texts


def markdown(tables: Sequence[Table1]) -> str:
    """A Markdown table for each protocol."""
    parts = []
    for table in tables:
        head = ["model", "", *table.datasets, "average rank"]
        rows = [head, *lines(table, lambda text: f"**{text}**")]
        parts += [aligned(rows), *legend(table)]
    return "\n\n".join(parts) + "\n"


def claim2(tables: Sequence[Table1]) -> str:
    """The paper's second claim as Markdown: the verdict, a table for each protocol, a legend."""
    found = {table.protocol: homophilous.leads(table) for table in tables}
    found = {protocol: leads for protocol, leads in found.items() if leads}
    if not found:
        raise UsageError(
            f"the results have no gcn+mmp or gat+mmp on {', '.join(homophilous.GRAPHS)} with what "
            "they are compared with; pass those of table1"
        )
    on = {protocol: homophilous.comparable_on(leads) for protocol, leads in found.items()}
    everywhere = all(graphs == [*homophilous.GRAPHS] for graphs in on.values())
    verdict = "Holds" if everywhere else "Holds in part" if any(on.values()) else "Does not hold"
    places = "; ".join(f"under {name} on {', '.join(on[name]) or 'none'}" for name in on)
    parts = [f"**{verdict}**: {places}."]
    for protocol, leads in found.items():
        pairs = list(dict.fromkeys((backbone, other) for _, backbone, other in leads))
        head = [f"{backbone}+mmp less {backbone}{other}" for backbone, other in pairs]
        rows = [
            [graph, *(_lead(leads.get((graph, *pair))) for pair in pairs)]
            for graph in dict.fromkeys(graph for graph, *_ in leads)
        ]
        parts.append(aligned([[protocol, *head], *rows]))
    parts.append(
        f"In points. Comparable: shown to be less than {homophilous.MARGIN:g} point behind (the "
        "lower one of two one-sided tests of equivalence; to be further ahead is no objection). "
        "Behind: significantly, with the p-value. Open: neither is shown. Corrected resampled "
        "t-tests with Holm's correction for the three comparisons of a model on a graph, "
        f"{100 * ALPHA:g} %."
    )
    return "\n\n".join(parts) + "\n"


def _lead(found: homophilous.Lead | None) -> str:
    if found is None:
        return _NOTHING
    p = f" (p {found.p:.3f})" if found.verdict == "behind" else ""
    return f"{found.points:+.1f} {found.verdict}{p}"


def aligned(rows: Sequence[Sequence[str]]) -> str:
    """A Markdown table; the first row is its head."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    ruled = [rows[0], ["-" * width for width in widths], *rows[1:]]
    body = (" | ".join(map(str.ljust, row, widths)) for row in ruled)
    return "\n".join(f"| {row} |" for row in body)


def latex(tables: Sequence[Table1]) -> str:
    """A LaTeX table for each protocol; it needs the package ``booktabs``."""
    parts = []
    for table in tables:
        names = " & ".join(_escaped(dataset) for dataset in table.datasets)
        parts += [
            r"\begin{table*}",
            r"\scriptsize\centering\setlength{\tabcolsep}{3pt}",
            rf"\caption{{{_escaped(' '.join(legend(table)))}}}",
            rf"\begin{{tabular}}{{ll{'r' * len(table.datasets)}r}}",
            r"\toprule",
            rf"model & & {names} & average rank \\",
        ]
        for line in lines(table, lambda text: rf"\textbf{{{text}}}"):
            if line[0]:
                parts.append(r"\midrule")
            parts.append(rf"{' & '.join(map(_escaped, line))} \\")
        parts += [r"\bottomrule", r"\end{tabular}", r"\end{table*}"]
    return "\n".join(parts) + "\n"


def comma_separated(rows: Sequence[dict[str, Any]]) -> str:
    """Flat objects as CSV, with every key that any of them has."""
    names = list(dict.fromkeys(name for row in rows for name in row))
    text = io.StringIO()
    writer = csv.DictWriter(text, names, lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue()


def _escaped(text: str) -> str:
    for plain, escaped in (("%", r"\%"), ("_", r"\_"), ("±", r"$\pm$"), ("&", r"\&")):
        text = text.replace(plain, escaped)
    return text


def _count(numbers: set[int], name: str) -> str:
    """``10 splits``, or ``8 or 10 splits`` where not all cells have the same."""
    listed = " or ".join(map(str, sorted(numbers)))
    return f"{listed} {name}" if numbers == {1} else f"{listed} {name}s"
