"""The app that all commands belong to: exit codes, output, and the options that several share."""

from __future__ import annotations

import json
import os
import re
import sys
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, fields
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, get_args

from cyclopts import App, CycloptsError, Parameter, Token, convert

from memohop.data.read_options import ReadOptions
from memohop.errors import MemohopError, MemohopWarning, UsageError, whole_number
from memohop.outputs import printable
from memohop.ram import keep_freed_ram, reporting_out_of_memory
from memohop.version import __version__

if TYPE_CHECKING:
    from memohop.data.tables import OwnGraph

_EXAMPLES = """Examples:
  memohop demo
      see in under two minutes what it does, on random graphs
  memohop data list
      list the datasets
  memohop train texas --model gcn+mmp --lam 0,0.1,0.2
      train on ten splits; validation chooses the best of three settings
  memohop fit --nodes nodes.csv --edges edges.csv --label kind
      fit a model to a graph of your own

For more on a command: memohop COMMAND --help"""


def _convert(kind: Any, tokens: Sequence[Token]) -> Any:
    """Convert as Cyclopts does, but refuse 1.5 for a whole number instead of rounding it."""
    if int in (kind, *get_args(kind)):
        for token in tokens:
            if not re.fullmatch(r"[+-]?\d{1,30}", token.value):
                raise ValueError(f"{token.value!r} is not a whole number")
    return convert(kind, tokens)


def make_app(name: str, *, help: str, examples: str) -> App:
    """An app without commands, which behaves as all of ours do."""
    return App(
        name=name,
        help=help,
        help_epilogue=examples,
        help_format="plaintext",
        version=__version__,
        default_parameter=Parameter(negative=(), converter=_convert),
        result_action="return_value",
        suppress_keyboard_interrupt=False,
    )


app = make_app(
    "memohop",
    help="Memory-based message passing: graph networks for graphs whose neighbours disagree.",
    examples=_EXAMPLES,
)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command of the tool, with the exit codes of :func:`run_command`."""
    return run_command(app, arguments)


def run_command(app: App, arguments: Sequence[str] | None) -> int:
    """Run one command and return 0, 1 for a failure, 2 for bad usage, or 130 for Ctrl-C."""
    keep_freed_ram()
    words = sys.argv[1:] if arguments is None else arguments
    doing = " ".join([f"running {app.name[0]}", *words[:1]])
    try:
        with reporting_out_of_memory(doing, lower="--memory, --jobs or the size of the data"):
            app(arguments, exit_on_error=False, print_error=False)
        sys.stdout.flush()
    except (CycloptsError, UsageError) as error:
        remark(str(error))
        return 2
    except KeyboardInterrupt:
        remark("interrupted")
        return 130
    except BrokenPipeError:  # `memohop data list | head` closes the pipe early
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except (MemohopError, OSError) as error:
        remark(str(error))
        return 1
    return 0


def show(rows: list[dict[str, Any]], *shown: Any, as_json: bool) -> None:
    """Rows for programs, or tables and texts for people, on standard output."""
    if as_json:
        print_json(rows)
        return
    from memohop.report.terminal import output_console

    console = output_console()
    for table in shown:
        console.print(table, markup=False)


def print_json(rows: list[dict[str, Any]]) -> None:
    """Rows for programs, on standard output."""
    print(printable(json.dumps(rows, indent=2, ensure_ascii=False), lines=True))


def remark(text: str) -> None:
    """A line for people, on standard error."""
    print(f"memohop: {printable(text)}", file=sys.stderr)


@contextmanager
def warnings_as_remarks() -> Iterator[None]:
    """Show each of our own warnings once, as one line."""
    remark_once = cache(remark)

    def show(message: Warning | str, *_: Any, **__: Any) -> None:
        remark_once(str(message))

    with warnings.catch_warnings():
        warnings.simplefilter("always", MemohopWarning)
        warnings.showwarning = show
        yield


def _by_comma(kind: Any, tokens: Sequence[Token]) -> tuple[str, ...]:
    """Names with commas between them, or given one by one."""
    return tuple(name for token in tokens for name in token.value.split(","))


BY_COMMA = Parameter(converter=_by_comma, n_tokens=1)
OUTPUT = Parameter(name=["--output", "-o"])

Dataset = Annotated[str, Parameter(help="The id of a dataset; see memohop data list.")]
Device = Annotated[Literal["cpu", "cuda"], Parameter(help="The device to train on.")]
EdgesTable = Annotated[
    list[Path] | None,
    Parameter(
        help="The table of edges: the ids of both ends; give it several times for several tables."
    ),
]
Folder = Annotated[
    Path | None,
    Parameter(name="--data", help="A local folder with the data files, instead of a download."),
]
Json = Annotated[
    bool, Parameter(show_default=False, help="Print a list of JSON objects instead of the table.")
]
Memory = Annotated[
    str | None,
    Parameter(
        help="The most RAM that the process may hold, such as 4GB; by default what the device can "
        "spare."
    ),
]
ModelFolder = Annotated[Path, Parameter(help="The folder that memohop fit wrote.")]
Names = Annotated[tuple[str, ...], BY_COMMA]
NodesTable = Annotated[
    Path | None,
    Parameter(help="The table of nodes: an id, a label, and columns that become features."),
]
PreparedFolder = Annotated[Path, Parameter(help="A folder that memohop prepare wrote.")]
_NoOption = Annotated[Any, Parameter(parse=False)]


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class TableOptions(ReadOptions):
    """How a table of nodes and a table of edges are read.

    Attributes:
        categorical: Columns to read as categories, of either table, with commas.
        numeric: Columns to read as numbers.
        text: Columns to read as texts.
        drop: Columns to leave out, of either table.
        verbose: Show how the tables were read and what became of each column.
    """

    directed: Annotated[bool | None, Parameter(negative="--undirected")] = None
    task: Literal["auto", "classes", "numbers"] = "auto"
    categorical: Names = ()
    numeric: Names = ()
    text: Names = ()
    drop: Names = ()
    encoder: _NoOption = None
    classes: _NoOption = None
    verbose: bool = False

    def options(self) -> dict[str, Any]:
        """The same as arguments of ``read_graph`` and ``prepare``."""
        return {field.name: getattr(self, field.name) for field in fields(ReadOptions)}

    def read(self, nodes: Path, edges: Sequence[Path]) -> OwnGraph:
        """The graph; its warnings, or all notes on it, go to standard error."""
        from memohop.data.tables import read_graph

        graph = read_graph(nodes, edges, **self.options())
        self.tell(graph)
        return graph

    def tell(self, graph: Any) -> None:
        """What was read, as remarks."""
        for note in graph.notes if self.verbose else graph.warnings:
            remark(note)


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class AuditOptions(TableOptions):
    """How the tables of a graph of classes are read, to be looked at and not to learn from."""

    task: _NoOption = "auto"
    split: _NoOption = None
    time_column: _NoOption = None
    edge_time: _NoOption = None
    group: _NoOption = None


def check_workers(workers: int | None, ray: str | None) -> None:
    """Refuse no workers at all, and the address of a cluster without them."""
    if workers is not None:
        whole_number("--workers", workers, least=1)
    elif ray is not None:
        raise UsageError(f"--ray {ray} goes with --workers; give their number too")


def byte_count(text: str | None) -> int | None:
    """A number of bytes, given as ``4GB``; None if there is none."""
    if text is None:
        return None
    units = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9, "ki": 2**10, "mi": 2**20, "gi": 2**30}
    match = re.fullmatch(r"(\d{1,18}(?:\.\d+)?) ?([kmg]i?)?b?", text.lower())
    if not match or not float(match[1]):
        raise UsageError(f"--memory {text}: give an amount such as 4GB or 500MB")
    return int(float(match[1]) * units[match[2] or ""])
