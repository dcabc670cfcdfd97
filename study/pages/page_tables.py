"""The tables of the report, ready to be written as HTML."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from memohop.data.datasets.registry import describe
from study.pages.figure import Panel
from study.pages.table import distance, printed_rank, score
from study.paper.curves import Point
from study.paper.printed import printed_ranks, printed_table1
from study.paper.table1 import Table1, difference, printed_comparison, ranks_of
from study.runs.results import Results
from study.runs.tuned import Tuned
from study.statistics.comparison import ALPHA, Comparison

_NOTHING = "-"
_MINUS = "\N{MINUS SIGN}"


@dataclass(frozen=True)
class HtmlCell:
    """One cell.

    Attributes:
        notes: Smaller lines below the text.
        value: Sorts the column; the text does if None.
        strong: Whether the text is bold.
        soft: Whether it is grey.
        beside: Smaller text beside it.
    """

    text: str
    notes: tuple[str, ...] = ()
    value: float | None = None
    strong: bool = False
    soft: bool = False
    beside: str = ""


@dataclass(frozen=True)
class HtmlTable:
    """The names of the columns, the rows, each starting with its name, and an id on the page."""

    head: tuple[str, ...]
    rows: tuple[tuple[HtmlCell, ...], ...]
    id: str

    def is_text(self, column: int) -> bool:
        """Whether a column holds words."""
        cells = [row[column] for row in self.rows]
        return all(c.value is None for c in cells) and any(c.text != _NOTHING for c in cells)


def scores_table(table: Table1) -> HtmlTable:
    """Measured score, printed score and their difference in each cell; a row for each model."""
    return HtmlTable(
        head=("model", *table.datasets, "average rank"),
        rows=tuple(
            (
                HtmlCell(model),
                *(_score(table, model, dataset) for dataset in table.datasets),
                replace(_rank(table.ranks.get(model)), notes=(printed_rank(model),)),
            )
            for model in table.models
        ),
        id=f"scores-{table.protocol}",
    )


def lead_table(table: Table1, reference: str) -> HtmlTable:
    """How far a model is ahead of every other one, a column for each dataset."""
    leads = [table.against(reference, dataset) for dataset in table.datasets]
    rows = tuple(
        (HtmlCell(model), *(_lead(found.get(model)) for found in leads))
        for model in table.models
        if model != reference
    )
    return HtmlTable(("model", *table.datasets), rows, f"lead-{reference}-{table.protocol}")


def ranks_table(table: Table1) -> HtmlTable:
    """Average ranks: measured, recomputed from the printed means, and printed; the best first."""
    recomputed = ranks_of(printed_comparison())
    rows = tuple(
        (
            HtmlCell(model),
            _rank(rank),
            _rank(recomputed.get(model)),
            _rank(printed_ranks().get(model), digits=1),
        )
        for model, rank in sorted(table.ranks.items(), key=lambda pair: pair[1])
    )
    head = ("model", "measured", "recomputed", "printed")
    return HtmlTable(head, rows, f"ranks-{table.protocol}")


def noise_table(panel: Panel) -> HtmlTable:
    """The numbers of a noise panel, a row for each line of the figure."""
    levels = sorted({point.x for line in panel.lines for point in line.curve.points})
    rows = []
    for line in panel.lines:
        points = {point.x: point for point in line.curve.points}
        rows.append((HtmlCell(line.label), *(_mean(points.get(level)) for level in levels)))
    head = (panel.title, *(f"+{level:g} %" for level in levels))
    return HtmlTable(head, tuple(rows), "noise-" + re.sub(r"\W+", "-", panel.title))


def lambda_table(panels: Sequence[Panel]) -> HtmlTable:
    """What each lambda changes against the smallest one, a row for each dataset and model."""
    lines = [(panel.title, line) for panel in panels for line in panel.lines]
    levels = sorted({point.x for _, line in lines for point in line.curve.points})
    rows = []
    for dataset, line in lines:
        first, changes = line.curve.points[0], line.curve.against(levels[0])
        least = _mean(first if first.x == levels[0] else None)
        cells = (_lead(changes.get(level)) for level in levels[1:])
        rows.append((HtmlCell(dataset, (line.label,)), least, *cells))
    head = ("dataset", *(f"λ {level:g}" for level in levels))
    return HtmlTable(head, tuple(rows), "lambda-changes")


def timing_table(results: Iterable[Results]) -> HtmlTable:
    """How long the training took, a row for each experiment, protocol, dataset and device."""
    sums: dict[tuple[str, str, str, str], list[float]] = {}
    for found in results:
        for row in found.rows:
            key = found.experiment, row.protocol, row.dataset, found.sources[row.source].device
            total = sums.setdefault(key, [0, 0, 0.0])
            total[0] += 1
            total[1] += row.epochs
            total[2] += row.seconds
    rows = tuple(
        (
            *map(HtmlCell, key),
            *(HtmlCell(f"{value:,.0f}", value=value) for value in (networks, epochs)),
            HtmlCell(duration(seconds), value=seconds),
            HtmlCell(f"{1000 * seconds / epochs:.3f}", value=seconds / epochs),
        )
        for key, (networks, epochs, seconds) in sums.items()
    )
    head = ("experiment", "protocol", "dataset", "device", "networks", "epochs", "time", "ms each")
    return HtmlTable(head, rows, "timing-list")


def data_table(results: Iterable[Results | Tuned]) -> HtmlTable:
    """Which version of each dataset was used, by the digest of its files."""
    digests: dict[tuple[str, str], None] = {}
    for found in results:
        parts = found.cells if isinstance(found, Tuned) else found.rows
        for dataset in dict.fromkeys(part.dataset for part in parts):
            known = {source.datasets.get(dataset, "") for source in found.sources} - {""}
            digests |= dict.fromkeys((dataset, digest) for digest in sorted(known) or [""])
    rows = []
    for dataset, digest in digests:
        info = describe(dataset)
        rows.append(
            (
                HtmlCell(dataset),
                HtmlCell(digest[:12] or "not recorded"),
                HtmlCell(f"{info.nodes:,}", value=info.nodes),
                HtmlCell(f"{info.arcs:,}", value=info.arcs),
                HtmlCell(f"{info.homophily:.2f}", value=info.homophily),
                HtmlCell(info.source, (info.note,) if info.note else ()),
            )
        )
    head = ("dataset", "digest", "nodes", "arcs", "homophily", "source")
    return HtmlTable(head, tuple(rows), "data-versions")


def pairs_in_words(pairs: Sequence[tuple[str, str]]) -> str:
    """Pairs of models, the better one first, grouped by the better one."""
    if not pairs:
        return "no pair"
    by_first: dict[str, list[str]] = {}
    for better, worse in pairs:
        by_first.setdefault(better, []).append(worse)
    return "; ".join(f"{better} from {', '.join(worse)}" for better, worse in by_first.items())


def cliques_in_words(found: Comparison) -> str:
    """The groups of models between which there is no difference."""
    if not found.cliques:
        return "every pair of neighbours differs"
    if len(found.cliques[0]) == len(found.models):
        return f"all {len(found.models)} models together"
    return "; ".join(f"{clique[0]} to {clique[-1]} ({len(clique)})" for clique in found.cliques)


def _score(table: Table1, model: str, dataset: str) -> HtmlCell:
    printed = printed_table1().get((model, dataset))
    was = score(printed) if printed else "not printed"
    cell = table.cells.get((model, dataset))
    if cell is None:
        return HtmlCell(_NOTHING, (was,))
    away = (distance(*difference(cell)).replace("-", _MINUS),) if printed else ()
    return HtmlCell(
        f"{cell.mean:.2f}",
        (was, *away),
        value=cell.mean,
        strong=table.among_the_best(model, dataset),
        beside=plus_minus(cell.std),
    )


def _lead(found: tuple[float, float] | None) -> HtmlCell:
    if found is None:
        return HtmlCell(_NOTHING)
    points, p = found
    text = f"{points:+.1f}".replace("-", _MINUS)
    return HtmlCell(text, (f"p {p:.2g}" if p >= 0.001 else "p < 0.001",), points, strong=p < ALPHA)


def _mean(point: Point | None) -> HtmlCell:
    if point is None:
        return HtmlCell(_NOTHING)
    return HtmlCell(f"{point.mean:.1f}", value=point.mean, beside=plus_minus(point.std))


def _rank(rank: float | None, digits: int = 2) -> HtmlCell:
    return HtmlCell(_NOTHING) if rank is None else HtmlCell(f"{rank:.{digits}f}", value=rank)


def plus_minus(std: float | None) -> str:
    """A standard deviation beside its mean, if there is one."""
    return "" if std is None else f"± {std:.2f}"


def duration(seconds: float) -> str:
    """Seconds in the unit that suits them."""
    if seconds < 60:
        return f"{seconds:.1f} s"
    minutes = seconds / 60
    return f"{minutes:.1f} min" if minutes < 60 else f"{minutes / 60:.1f} h"
