"""Tables, facts and a progress bar for the terminal."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.progress import BarColumn, Progress, ProgressColumn, Task, TaskProgressColumn, TextColumn
from rich.table import Table
from rich.text import Text

from memohop.printable import printable
from memohop.training.metrics import METRICS, Metric
from memohop.training.numbers import NUMBERS

if TYPE_CHECKING:  # PyTorch takes seconds to import, and a listing needs none of it
    from memohop.data.datasets.registry import DatasetInfo
    from memohop.demo import DemoResult
    from memohop.report.dataset import DatasetFacts
    from memohop.report.training import TrainingReport
    from memohop.training import Selection

_PLAIN_WIDTH = 120  # of a table in a file or a pipe, which have no width


def output_console() -> Console:
    """Standard output."""
    return Console(width=None if sys.stdout.isatty() else _PLAIN_WIDTH, highlight=False)


@contextmanager
def progress_bar(text: str) -> Iterator[Callable[..., None]]:
    """A bar with the time left, on standard error; no bar if that is not a terminal.

    It is called as `update(done, total)`, or `update(done, total, text)` to change the text.
    """
    console = Console(stderr=True)
    bar = Progress(
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        TaskProgressColumn(),
        _TimeLeft(),
        console=console,
        transient=True,
        disable=not console.is_terminal,
    )
    start = time.monotonic()

    def update(done: float, total: float, text: str | None = None) -> None:
        end = start + (time.monotonic() - start) * total / done if done else None
        bar.update(task, completed=done, total=total, end=end, description=text and printable(text))

    with bar:
        task = bar.add_task(printable(text), total=None, end=None)
        yield update


class _TimeLeft(ProgressColumn):
    """Counts down to the end, estimated from all work done so far.

    Rich's own column looks only at the last seconds, and goes wrong where pieces of work are
    long and finish two at a time.
    """

    def render(self, task: Task) -> Text:
        end = task.fields["end"]
        if end is None:
            return Text("starting")
        return Text(f"{clock(end - time.monotonic())} left")


def clock(seconds: float) -> str:
    """A time as `5:07` or `1:05:07`."""
    minutes, rest = divmod(max(0, round(seconds)), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


def listing(infos: Iterable[DatasetInfo]) -> Table:
    """A row for each dataset."""
    table = _table("dataset")
    for name in ("nodes", "arcs", "features", "classes", "homophily"):
        table.add_column(name, justify="right")
    table.add_column("metric")
    table.add_column("what it is", overflow="fold")
    for info in infos:
        counts = (info.nodes, info.arcs, info.features, info.classes)
        table.add_row(
            info.id,
            *(str(count) for count in counts),
            f"{info.homophily:.3f}",
            info.metric,
            info.description,
        )
    return table


def facts_sheet(facts: DatasetFacts) -> Table:
    """One dataset, with a row for each fact."""
    table = Table(box=None, show_header=False, pad_edge=False)
    table.add_column(style="bold")
    table.add_column(overflow="fold")
    info = facts.info
    arcs = "as published" if info.directed else "each edge both ways"
    rows = {
        "dataset": f"{info.id}: {info.description}",
        "nodes": str(facts.nodes),
        "arcs": f"{facts.arcs} ({'directed, ' if info.directed else 'undirected, '}{arcs})",
        "features": str(facts.features),
        "homophily": f"{facts.homophily:.3f} (measured: share of arcs within one class)",
        "classes": f"{len(facts.class_sizes)}, with {_listed(facts.class_sizes)} nodes",
        "splits": f"{len(facts.train)}",
        "  train": _sizes(facts.train),
        "  validation": _sizes(facts.val),
        "  test": _sizes(facts.test),
        "metric": info.metric,
        "source": info.source,
        "note": info.note or "none",
    }
    for name, value in rows.items():
        table.add_row(name, value)
    return table


def settings_table(report: TrainingReport) -> Table:
    """A row for each setting; only the one that validation chose shows its test score."""
    table = _table("")
    names = list(report.chosen.setting)
    for name in names:
        table.add_column(NUMBERS.get(name, name), justify="right")
    table.add_column("validation", justify="right")
    table.add_column("test", justify="right")
    for selection in report.settings:
        chosen = selection is report.chosen
        test = report.score() if chosen else ""
        table.add_row(
            "chosen" if chosen else "",
            *(_value(selection.setting[name]) for name in names),
            _validation(selection, METRICS[report.metric]),
            test,
            style="bold" if chosen else None,
        )
    return table


def _validation(selection: Selection, metric: Metric) -> str:
    """The mean score of a setting; it has none if one of its runs diverged."""
    if selection.diverged:
        return f"{selection.diverged} of {len(selection.results)} diverged"
    return metric.text(selection.val)


def demo_table(result: DemoResult) -> Table:
    """Test accuracy, a row for each graph and a column for each model."""
    table = _table("homophily", justify="right")
    for model in result.settings.models:
        table.add_column(model, justify="right")
    for homophily in result.settings.homophilies:
        cells = [result.cell(homophily, model) for model in result.settings.models]
        table.add_row(f"{homophily:.2f}", *(f"{cell.mean:.1f} ± {cell.std:.1f}" for cell in cells))
    return table


def _table(first: str, **column: Any) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column(first, no_wrap=True, **column)
    return table


def _value(value: Any) -> str:
    if value is None:
        return "-"
    return f"{value:g}" if isinstance(value, float) else str(value)


def _listed(numbers: Iterable[int]) -> str:
    return ", ".join(str(number) for number in numbers)


def _sizes(sizes: tuple[int, ...]) -> str:
    """One size if all splits have the same."""
    return f"{sizes[0]} nodes in each" if len(set(sizes)) == 1 else f"{_listed(sizes)} nodes"
