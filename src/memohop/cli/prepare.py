"""`memohop prepare`: tables that do not fit in RAM become a folder of arrays."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal

from cyclopts import Parameter

from memohop.cli.app import app, remark
from memohop.cli.options import BY_DEFAULT, OUTPUT, Reading
from memohop.cli.parsing import byte_count

_EXAMPLES = """Examples:
  memohop prepare nodes/ edges/ --label kind -o graph
  memohop prepare 'nodes-*.csv.gz' 'edges-*.parquet' --label kind --directed -o graph
  memohop prepare new-nodes.parquet new-edges.parquet --model model -o new-graph"""

_Tables = Annotated[
    str,
    Parameter(help="A CSV, TSV or Parquet file, a folder of such files, or a pattern in quotes."),
]


@app.command(help_epilogue=_EXAMPLES)
def prepare(
    nodes: _Tables,
    edges: _Tables,
    *,
    label: str | None = None,
    task: Literal["auto", "classes", "numbers"] = "auto",
    reading: Reading = BY_DEFAULT,
    split: str | None = None,
    time_column: str | None = None,
    group: str | None = None,
    model: Path | None = None,
    memory: str | None = None,
    output: Annotated[Path, OUTPUT] = Path("prepared"),
) -> None:
    """Read tables that need not fit in RAM, once, into a folder that others can use.

    Ids are numbered, edges sorted and columns turned into features, as memohop fit
    does, but out of core. Other commands take the folder instead of the tables. If the
    files are those that the folder was made from, nothing is done.

    Args:
        label: The column of the node table with the labels, empty where unknown.
        task: Whether the labels are classes or numbers; by default as the column looks.
        split: The column of the node table that says train, val or test.
        time_column: The column with times, for a split by time: the latest nodes are for testing.
        group: The column with groups of nodes that no split tears apart.
        model: The folder of a model, to make the features that it knows and read the columns that
            it read; other options for columns are then ignored.
        memory: About how much RAM to use; 4GB by default.
        output: The folder to write.
    """
    limit = byte_count(memory)

    import memohop

    options: dict[str, Any] = {
        "label": label,
        "task": task,
        "split": split,
        "time_column": time_column,
        "group": group,
        **reading.options(),
    }
    if model is not None:
        from memohop.fit.estimators import load_model
        from memohop.fit.inputs import how_to_read

        given = {} if reading.encoding is None else {"encoding": reading.encoding}
        options |= how_to_read(load_model(model)) | given
    if limit is not None:
        options["memory"] = limit
    found = memohop.prepare(nodes, edges, output, progress=remark, **options)
    for note in found.notes if reading.verbose else found.warnings:
        remark(note)
    remark(f"{output}: {found.nodes} nodes, {found.arcs} arcs, {found.features} features")
