"""The app that all commands of the study belong to, and what several of them share."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from memohop.cli import make_app, run_command
from memohop.errors import UsageError

if TYPE_CHECKING:
    from memohop.jobs.executor import Executor

_EXAMPLES = """Examples:
  python -m study run table1 --only dataset=texas
      run a part of the paper's Table 1; nothing is trained twice
  python -m study table fair --part best
      what the committed results say
  python -m study report
      one page with all tables and figures

For more on a command: python -m study COMMAND --help"""

app = make_app(
    "python -m study",
    help="The study: the paper's table and figures, and the fair table of all models.",
    examples=_EXAMPLES,
)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command, with the exit codes of :func:`memohop.cli.run_command`."""
    return run_command(app, arguments)


ResultsFile = Annotated[
    Path | None,
    Parameter(
        help="A file that python -m study store export wrote; by default those of the study."
    ),
]


def check_counts(**counts: int | None) -> None:
    """Refuse numbers of options, by their names, that are below 1."""
    for name, count in counts.items():
        if count is not None and count < 1:
            raise UsageError(f"--{name} {count}: give at least 1")


def processes_of(jobs: int) -> Executor:
    """The executor that trains so many populations at once on this machine."""
    from memohop.jobs.executor import here
    from memohop.jobs.processes import Processes

    return Processes(jobs) if jobs > 1 else here
