"""Options that several commands share, and what their texts mean."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from cyclopts import Parameter, Token

from memohop.cli.app import remark
from memohop.data.tables import ReadOptions
from memohop.errors import UsageError, unknown_name
from memohop.training.numbers import RATES

if TYPE_CHECKING:
    from memohop.data.tables.own_graph import OwnGraph

_DIGITS = 18  # of a whole number: more can only be a mistake
_MOST_NUMBERS = 100_000  # of a list
_TRUTHS = {"true": True, "yes": True, "false": False, "no": False}


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
Encoding = Annotated[
    str | None,
    Parameter(
        help="How the letters of text files are stored, such as utf-8, cp1252 or utf-16; by "
        "default as they look."
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
        label: The column of the node table with the labels, empty where unknown.
        id: The column with the ids; by default id, node or node_id, or else the first.
        source: The column where an edge starts; by default source, src or from, or else the first.
        target: The column where it ends; by default target, dst or to, or else the second.
        weight: The column of the edge table with weights; by default all edges count alike.
        directed: Whether edges have a direction; by default as they look.
        drop_unknown: Leave out edges that name a node missing from the node table.
        categorical: Columns to read as categories, with commas.
        numeric: Columns to read as numbers.
        text: Columns to read as texts.
        drop: Columns to leave out.
        verbose: Show how the tables were read and what became of each column.
    """

    directed: Annotated[bool | None, Parameter(negative="--undirected")] = None
    task: _NoOption = "auto"
    split: _NoOption = None
    time_column: _NoOption = None
    group: _NoOption = None
    categorical: Names = ()
    numeric: Names = ()
    text: Names = ()
    drop: Names = ()
    encoding: Encoding = None
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
class LearningOptions(TableOptions):
    """How tables to learn from are read.

    Attributes:
        task: Whether the labels are classes or numbers; by default as the column looks.
        split: The column of the node table that says train, val or test.
        time_column: The column with times, for a split by time: the latest nodes are for testing.
        group: The column with groups of nodes that no split tears apart, and that count as one each
            in intervals.
    """

    task: Literal["auto", "classes", "numbers"] = "auto"
    split: str | None = None
    time_column: str | None = None
    group: str | None = None


def model_options(
    model: str,
    known: dict[str, Any],
    given: list[str] | None,
    numbers: Mapping[str, Sequence[Any]],
) -> dict[str, Any]:
    """The options of a model; they are checked, and so are numbers that only some models have."""
    for name in RATES:
        if name in numbers and name not in known:
            raise UsageError(f"{model} has no {name}; leave out --{name.replace('_', '-')}")
    if any(numbers.get("lam", ())) and "decoupling" not in known:
        raise UsageError(
            f"--lam weights the decoupling loss, which {model} does not have; leave it out, or "
            "use a model with memory, such as gcn+mmp"
        )
    options = {}
    for name, text in name_value_pairs("option", given):
        if name in RATES:
            raise UsageError(f"--option {name}={text}: give --{name.replace('_', '-')} {text}")
        if name not in known:
            raise unknown_name(f"option of {model}", name, known)
        options[name] = value_of(name, text, like=known[name])
    return options


def name_value_pairs(flag: str, given: list[str] | None) -> list[tuple[str, str]]:
    """The names and values of an option given as ``name=value``, once or several times."""
    for text in given or ():
        if "=" not in text:
            raise UsageError(f"--{flag} {text}: give it as name=value")
    return [(name, text) for name, _, text in (pair.partition("=") for pair in given or ())]


def value_of(name: str, text: str, *, like: Any = None) -> Any:
    """The value of a text: of the type of ``like``, or else of the type it looks like."""
    if isinstance(like, str):
        return text
    if isinstance(like, bool):
        if text.lower() not in _TRUTHS:
            raise UsageError(f"{name}={text}: give true or false")
        return _TRUTHS[text.lower()]
    for kind in (int, float):
        try:
            numbers = [kind(part) for part in text.split(",")]
        except ValueError:
            continue
        if like is not None and (len(numbers) > 1 or (isinstance(like, int) and kind is float)):
            break
        return tuple(numbers) if len(numbers) > 1 else numbers[0]
    if like is not None:
        raise UsageError(f"{name}={text}: give a {'whole ' * isinstance(like, int)}number")
    return _TRUTHS.get(text.lower(), text)


def number_list(flag: str, text: str) -> list[float]:
    """Numbers separated by commas, without repetitions."""
    try:
        numbers = list(dict.fromkeys(float(part) for part in text.split(",")))
    except ValueError:
        numbers = [math.nan]
    if not all(map(math.isfinite, numbers)):
        raise UsageError(
            f"--{flag} {text}: give a number, or several separated by commas, such as 0,0.1"
        )
    return numbers


def id_list(flag: str, text: str, *, count_alone: bool = False) -> list[int]:
    """Whole numbers such as ``0,3`` or ``0-4``; with ``count_alone`` a single 3 means 0, 1, 2."""
    if count_alone and re.fullmatch(rf"[1-9]\d{{,{_DIGITS - 1}}}", text):
        ranges = [range(int(text))]
    else:
        whole = rf"(\d{{1,{_DIGITS}}})"
        matches = [re.fullmatch(f"{whole}(?:-{whole})?", part) for part in text.split(",")]
        ranges = [
            range(int(match[1]), int(match[2] or match[1]) + 1) if match else range(0)
            for match in matches
        ]
        if not all(ranges) or (count_alone and text == "0"):
            raise UsageError(f"--{flag} {text}: give whole numbers such as 0,3 or a range like 0-4")
    for numbers in ranges:
        if len(numbers) > _MOST_NUMBERS:
            raise UsageError(
                f"--{flag} {text}: that is {len(numbers)} numbers; give {_MOST_NUMBERS} at most"
            )
    return list(dict.fromkeys(number for numbers in ranges for number in numbers))


def byte_count(text: str | None) -> int | None:
    """A number of bytes, given as ``4GB``; None if there is none."""
    if text is None:
        return None
    units = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9, "ki": 2**10, "mi": 2**20, "gi": 2**30}
    match = re.fullmatch(r"(\d{1,18}(?:\.\d+)?) ?([kmg]i?)?b?", text.lower())
    if not match or not float(match[1]):
        raise UsageError(f"--memory {text}: give an amount such as 4GB or 500MB")
    return int(float(match[1]) * units[match[2] or ""])
