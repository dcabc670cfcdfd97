"""The app that all commands belong to, its exit codes, and its output."""

from __future__ import annotations

import json
import os
import re
import sys
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from importlib.util import find_spec
from typing import Any, get_args

from cyclopts import App, CycloptsError, Parameter, Token, convert

from memohop.errors import MemohopError, UsageError
from memohop.outputs import printable
from memohop.ram import keep_freed_ram, reporting_out_of_memory
from memohop.version import __version__

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


def print_json(rows: list[dict[str, Any]]) -> None:
    """Rows for programs, on standard output."""
    print(printable(json.dumps(rows, indent=2, ensure_ascii=False), lines=True))


def remark(text: str) -> None:
    """A line for people, on standard error."""
    print(f"memohop: {printable(text)}", file=sys.stderr)


def recommend_extras(device: str) -> None:
    """Say what the extra ``fast`` would add, before a training on a CPU without it."""
    if device == "cpu" and find_spec("numba") is None:
        remark("training on a CPU is faster with Numba: pip install 'memohop[fast]'")


@contextmanager
def warnings_as_remarks() -> Iterator[None]:
    """Show each of our own warnings once, as one line."""
    from memohop.data.check import MissingClassWarning
    from memohop.training.objective import TargetScaleWarning, UndefinedScoreWarning
    from memohop.training.trainer import AloneWarning, DivergedWarning

    remark_once = cache(remark)

    def show(message: Warning | str, *_: Any, **__: Any) -> None:
        remark_once(str(message))

    with warnings.catch_warnings():
        for category in (
            MissingClassWarning,
            AloneWarning,
            DivergedWarning,
            TargetScaleWarning,
            UndefinedScoreWarning,
        ):
            warnings.simplefilter("always", category)
        warnings.showwarning = show
        yield
