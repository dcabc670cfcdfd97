"""The command itself: what all commands share, and how one ends."""

from __future__ import annotations

import json
import os
import re
import sys
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any, get_args

from cyclopts import App, CycloptsError, Parameter, Token, convert

from memohop.allocator import keep_freed_memory
from memohop.errors import MemohopError, UsageError
from memohop.out_of_memory import telling_of_memory
from memohop.printable import printable
from memohop.version import __version__

_EXAMPLES = """Examples:
  memohop demo
      what it is about, in under two minutes, on graphs made on the spot
  memohop data list
      the datasets
  memohop train texas --model gcn+mmp --lam 0,0.1,0.2
      ten splits; the best of three settings is chosen on validation
  memohop run table1 --only dataset=texas
      the paper's Table 1; what the store already has is not trained again
  memohop fit --nodes nodes.csv --edges edges.csv --label kind
      a graph of your own

memohop COMMAND --help tells more."""

Json = Annotated[bool, Parameter(name="--json", show_default=False)]
Folder = Annotated[Path | None, Parameter(name="--data")]


def _convert(kind: Any, tokens: Sequence[Token]) -> Any:
    """As Cyclopts does, but a whole number must be one: 1.5 is not rounded."""
    if int in (kind, *get_args(kind)):
        for token in tokens:
            if not re.fullmatch(r"[+-]?\d{1,30}", token.value):
                raise ValueError(f"{token.value!r} is not a whole number")
    return convert(kind, tokens)


app = App(
    name="memohop",
    help="Memory-based message passing: graph networks for graphs whose neighbours disagree.",
    help_epilogue=_EXAMPLES,
    help_format="plaintext",
    version=__version__,
    default_parameter=Parameter(negative=(), converter=_convert),
    result_action="return_value",
    suppress_keyboard_interrupt=False,
)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; the exit code is 0, 1 for a failure, 2 for bad usage, 130 for Ctrl-C."""
    keep_freed_memory()
    words = sys.argv[1:] if arguments is None else arguments
    doing = " ".join(["memohop", *words[:1]])
    try:
        with telling_of_memory(
            f"running {doing}", lower="--memory, --jobs or the size of the data"
        ):
            app(arguments, exit_on_error=False, print_error=False)
        sys.stdout.flush()
    except (CycloptsError, UsageError) as error:
        return _fail(str(error), 2)
    except MemohopError as error:
        return _fail(str(error), 1)
    except KeyboardInterrupt:
        return _fail("interrupted", 130)
    except BrokenPipeError:  # `memohop data list | head`: whoever reads has read enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except OSError as error:
        return _fail(str(error), 1)
    return 0


def print_json(rows: list[dict[str, Any]]) -> None:
    """Rows for programs, on standard output."""
    print(printable(json.dumps(rows, indent=2, ensure_ascii=False), lines=True))


def remark(text: str) -> None:
    """A line for people, on standard error."""
    print(f"memohop: {printable(text)}", file=sys.stderr)


@contextmanager
def warnings_as_remarks() -> Iterator[None]:
    """Show our own warnings as one line each, and what is said twice once."""
    from memohop.data.check import MissingClassWarning
    from memohop.training.objective import TargetScaleWarning, UndefinedScoreWarning
    from memohop.training.trainer import AloneWarning, DivergedWarning

    said: set[str] = set()

    def show(message: Warning | str, *_: Any, **__: Any) -> None:
        if str(message) not in said:
            said.add(str(message))
            remark(str(message))

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


def _fail(text: str, code: int) -> int:
    remark(text)
    return code
