"""Table 1 as text: Markdown, LaTeX and CSV, measured and printed in one."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from memohop.bench.statistics import ALPHA
from memohop.paper.printed import printed_ranks, printed_table1
from memohop.paper.table1 import Table1, difference, printed_comparison, ranks_of

_NOTHING = "-"


@dataclass(frozen=True)
class TextLine:
    """One line of the table as text.

    Attributes:
        model: Its id.
        kind: `measured`, `printed` or `difference`.
        texts: One for each dataset, and the average rank.
        best: Which of them are among the best of their column.
    """

    model: str
    kind: str
    texts: tuple[str, ...]
    best: tuple[bool, ...]


def lines(table: Table1) -> list[TextLine]:
    """Three lines for each model."""
    found = []
    for model in table.models:
        cells = [table.cells.get((model, dataset)) for dataset in table.datasets]
        shown = [printed_table1().get((model, dataset)) for dataset in table.datasets]
        ranks = {
            "measured": f"{table.ranks[model]:.2f}" if table.ranks else _NOTHING,
            "printed": printed_rank(model),
            "difference": "",
        }
        texts = {
            "measured": [score(cell.mean, cell.std) if cell else _NOTHING for cell in cells],
            "printed": [score(p.mean, p.std) if p else _NOTHING for p in shown],
            "difference": [distance(*difference(cell)) if cell else _NOTHING for cell in cells],
        }
        best = tuple(table.among_the_best(model, dataset) for dataset in table.datasets)
        for kind, row in texts.items():
            marks = best if kind == "measured" else (False,) * len(best)
            found.append(TextLine(model, kind, (*row, ranks[kind]), (*marks, False)))
    return found


def printed_rank(model: str) -> str:
    """The printed average rank, and in brackets that of the printed means."""
    if model not in printed_ranks():
        return _NOTHING
    return f"{printed_ranks()[model]:.1f} ({ranks_of(printed_comparison())[model]:.2f})"


def score(mean: float, std: float | None) -> str:
    """Mean and standard deviation."""
    return f"{mean:.2f}" if std is None else f"{mean:.2f} ± {std:.2f}"


def distance(points: float | None, stds: float | None) -> str:
    """A difference in points, and in printed standard deviations."""
    if points is None:
        return _NOTHING
    return f"{points:+.2f}" if stds is None else f"{points:+.2f} ({stds:+.1f} s)"


def legend(table: Table1) -> list[str]:
    """How to read the table, a sentence or two in each text."""
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
        rows = [["model", "", *table.datasets, "average rank"]]
        for line in lines(table):
            texts = [
                f"**{text}**" if best else text
                for text, best in zip(line.texts, line.best, strict=True)
            ]
            first = line.model if line.kind == "measured" else ""
            rows.append([first, line.kind, *texts])
        widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
        rows.insert(1, ["-" * width for width in widths])
        body = (
            "| " + " | ".join(text.ljust(width) for text, width in zip(row, widths, strict=True))
            for row in rows
        )
        parts.append("\n".join(f"{row} |" for row in body))
        parts += legend(table)
    return "\n\n".join(parts) + "\n"


def latex(tables: Sequence[Table1]) -> str:
    """A LaTeX table for each protocol; it needs the package `booktabs`."""
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
        for line in lines(table):
            first = line.model if line.kind == "measured" else ""
            texts = [
                rf"\textbf{{{_escaped(text)}}}" if best else _escaped(text)
                for text, best in zip(line.texts, line.best, strict=True)
            ]
            if first:
                parts.append(r"\midrule")
            parts.append(rf"{_escaped(first)} & {line.kind} & {' & '.join(texts)} \\")
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
    """`10 splits`, or `8 or 10 splits` where not all cells have the same."""
    listed = " or ".join(str(number) for number in sorted(numbers))
    return f"{listed} {name}" if numbers == {1} else f"{listed} {name}s"
