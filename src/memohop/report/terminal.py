"""Tables and a progress bar for the terminal."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, redirect_stdout

from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, Progress, ProgressColumn, Task, TaskProgressColumn, TextColumn
from rich.table import Table
from rich.text import Text

from memohop.outputs import printable

_PLAIN_WIDTH = 120  # of a table that goes to a file or a pipe


def output_console() -> Console:
    """Standard output."""
    return Console(width=None if sys.stdout.isatty() else _PLAIN_WIDTH, highlight=False)


@contextmanager
def progress_bar(text: str) -> Iterator[Callable[..., None]]:
    """A bar with the time left, on standard error; no bar if that is not a terminal.

    What others print meanwhile goes there too, such as Ray's notices of a lost worker: standard
    output is for results.
    Call it as ``update(done, total)``, or as ``update(done, total, text)`` to change the text.
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

    with redirect_stdout(sys.stderr), bar:
        task = bar.add_task(printable(text), total=None, end=None)
        yield update


class _TimeLeft(ProgressColumn):
    """Counts down to the end, estimated from all work done so far.

    Rich's own column looks only at the last seconds, which fails if tasks are long and finish two
    at a time.
    """

    def render(self, task: Task) -> Text:
        end = task.fields["end"]
        return Text("starting" if end is None else f"{clock(end - time.monotonic())} left")


def clock(seconds: float) -> str:
    """A time as ``5:07`` or ``1:05:07``."""
    minutes, rest = divmod(max(0, round(seconds)), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


def plain_table(first: str, *, numbers: Iterable[str]) -> Table:
    """An empty table without lines: a column of names, then columns of numbers."""
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column(first, no_wrap=True)
    for name in numbers:
        table.add_column(name, justify="right")
    return table


def fact_table(*groups: Mapping[str, str]) -> Table:
    """A row for each fact, its name in bold, and an empty row between the groups."""
    table = Table(box=None, show_header=False, pad_edge=False)
    table.add_column(style="bold", no_wrap=True)
    table.add_column(overflow="fold")
    for group in groups:
        if table.row_count:
            table.add_row()
        for name, value in group.items():
            table.add_row(name, escape(value))
    return table
