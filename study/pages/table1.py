"""Table 1, measured beside printed, as Markdown, LaTeX and HTML; and the paper's second claim."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from memohop.errors import UsageError
from study.pages.tables import (
    NOTHING,
    Table,
    TableCell,
    aligned,
    mean_and_std,
    number,
    points,
    score,
    signed,
)
from study.paper.table1 import (
    COMPARABLE,
    HOMOPHILOUS,
    Lead,
    Table1,
    comparable_on,
    difference,
    leads,
    printed_comparison,
    printed_ranks,
    printed_table1,
)
from study.statistics.comparison import ALPHA


def scores_table(table: Table1) -> Table:
    """A row for each model: in each cell the measured score, the printed one, their difference."""
    rows = tuple(
        (
            TableCell(model),
            *(_score(table, model, dataset) for dataset in table.columns),
            number(table.ranks.get(model), notes=(_printed_rank(model), "")),
        )
        for model in table.rows
    )
    return Table(("model", *table.columns, "average rank"), rows, f"scores-{table.protocol}")


def _score(table: Table1, model: str, dataset: str) -> TableCell:
    printed = printed_table1().get((model, dataset))
    cell = table.measured.get((model, dataset))
    away = distance(*difference(cell)) if cell else NOTHING
    notes = (score(printed) if printed else NOTHING, away if away == NOTHING else signed(away))
    return mean_and_std(cell, notes=notes, strong=table.among_the_best(model, dataset))


def _printed_rank(model: str) -> str:
    """The printed average rank, and in brackets that of the printed means."""
    if model not in printed_ranks():
        return NOTHING
    return f"{printed_ranks()[model]:.1f} ({printed_comparison().by_model[model]:.2f})"


def distance(points: float | None, stds: float | None) -> str:
    """A difference in points, and in printed standard deviations."""
    if points is None:
        return NOTHING
    return f"{points:+.2f}" if stds is None else f"{points:+.2f} ({stds:+.1f} s)"


def lines(table: Table1, bold: str) -> Iterator[list[str]]:
    """Three lines for each model: measured, printed, and their difference.

    A line has the model (in the first of its lines alone), the kind of line, a text for each
    dataset, and the average rank; measured scores among the best of their column are bold.
    """
    for name, *cells in scores_table(table).rows:
        texts = [bold.format(cell.line) if cell.strong else cell.line for cell in cells]
        yield [name.text, "measured", *texts]
        for place, kind in enumerate(("printed", "difference")):
            notes = (cell.notes[place] for cell in cells)
            yield ["", kind, *(note.replace("\N{MINUS SIGN}", "-") for note in notes)]


def legend(table: Table1) -> list[str]:
    """How to read the table, in paragraphs of a sentence or two."""
    splits = {len(cell.scores) for cell in table.measured.values()}
    seeds = {cell.seeds for cell in table.measured.values()}
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
        head = ["model", "", *table.columns, "average rank"]
        rows = [head, *lines(table, "**{}**")]
        parts += [aligned(rows), *legend(table)]
    return "\n\n".join(parts) + "\n"


def latex(tables: Sequence[Table1]) -> str:
    """A LaTeX table for each protocol; it needs the package ``booktabs``."""
    parts = []
    for table in tables:
        names = " & ".join(_escaped(dataset) for dataset in table.columns)
        parts += [
            r"\begin{table*}",
            r"\scriptsize\centering\setlength{\tabcolsep}{3pt}",
            rf"\caption{{{_escaped(' '.join(legend(table)))}}}",
            rf"\begin{{tabular}}{{ll{'r' * len(table.columns)}r}}",
            r"\toprule",
            rf"model & & {names} & average rank \\",
        ]
        for line in lines(table, r"\textbf{{{}}}"):
            if line[0]:
                parts.append(r"\midrule")
            parts.append(rf"{' & '.join(map(_escaped, line))} \\")
        parts += [r"\bottomrule", r"\end{tabular}", r"\end{table*}"]
    return "\n".join(parts) + "\n"


def lead_table(table: Table1, reference: str) -> Table:
    """How far a model is ahead of every other one, a column for each dataset."""
    leads = [table.leads(reference, dataset) for dataset in table.columns]
    rows = tuple(
        (TableCell(model), *(lead_cell(of_dataset.get(model)) for of_dataset in leads))
        for model in table.rows
        if model != reference
    )
    return Table(("model", *table.columns), rows, f"lead-{reference}-{table.protocol}")


def lead_cell(lead: tuple[float, float] | None) -> TableCell:
    """A lead in points with its p-value below it."""
    if lead is None:
        return TableCell()
    of_points, p = lead
    note = f"p {p:.2g}" if p >= 0.001 else "p < 0.001"
    return points(of_points, "+.1f", notes=(note,), strong=p < ALPHA)


def ranks_table(table: Table1) -> Table:
    """Average ranks: measured, recomputed from the printed means, and printed; the best first."""
    recomputed = printed_comparison().by_model
    rows = tuple(
        (
            TableCell(model),
            number(rank),
            number(recomputed.get(model)),
            number(printed_ranks().get(model), ".1f"),
        )
        for model, rank in sorted(table.ranks.items(), key=lambda pair: pair[1])
    )
    head = ("model", "measured", "recomputed", "printed")
    return Table(head, rows, f"ranks-{table.protocol}")


def claim2(tables: Sequence[Table1]) -> str:
    """The paper's second claim as Markdown: the verdict, a table for each protocol, a legend."""
    by_protocol = {table.protocol: of_all for table in tables if (of_all := leads(table))}
    if not by_protocol:
        raise UsageError(
            f"the results have no gcn+mmp or gat+mmp on {', '.join(HOMOPHILOUS)} with what "
            "they are compared with; pass those of table1"
        )
    on = {protocol: comparable_on(of_all) for protocol, of_all in by_protocol.items()}
    everywhere = all(graphs == [*HOMOPHILOUS] for graphs in on.values())
    verdict = "Holds" if everywhere else "Holds in part" if any(on.values()) else "Does not hold"
    places = "; ".join(f"under {name} on {', '.join(on[name]) or 'none'}" for name in on)
    parts = [f"**{verdict}**: {places}."]
    for protocol, of_all in by_protocol.items():
        pairs = list(dict.fromkeys((backbone, other) for _, backbone, other in of_all))
        head = [f"{backbone}+mmp less {backbone}{other}" for backbone, other in pairs]
        rows = [
            [graph, *(_verdict(of_all.get((graph, *pair))) for pair in pairs)]
            for graph in dict.fromkeys(graph for graph, *_ in of_all)
        ]
        parts.append(aligned([[protocol, *head], *rows]))
    parts.append(
        f"In points. Comparable: shown to be less than {COMPARABLE:g} point behind (the "
        "lower one of two one-sided tests of equivalence; to be further ahead is no objection). "
        "Behind: significantly, with the p-value. Open: neither is shown. Corrected resampled "
        "t-tests with Holm's correction for the three comparisons of a model on a graph, "
        f"{100 * ALPHA:g} %."
    )
    return "\n\n".join(parts) + "\n"


def _verdict(lead: Lead | None) -> str:
    if lead is None:
        return NOTHING
    p = f" (p {lead.p:.3f})" if lead.verdict == "behind" else ""
    return f"{lead.points:+.1f} {lead.verdict}{p}"


def _escaped(text: str) -> str:
    for plain, escaped in (("%", r"\%"), ("_", r"\_"), ("±", r"$\pm$"), ("&", r"\&")):
        text = text.replace(plain, escaped)
    return text


def _count(numbers: set[int], name: str) -> str:
    """``10 splits``, or ``8 or 10 splits`` where not all cells have the same."""
    listed = " or ".join(map(str, sorted(numbers)))
    return f"{listed} {name}" if numbers == {1} else f"{listed} {name}s"
