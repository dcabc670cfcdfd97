"""From tables of any size to a folder of arrays."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from memohop.data.prepared.arrays import write_array
from memohop.data.prepared.columns import Fitted, fit_in_passes, known_types, write_features
from memohop.data.prepared.folder import (
    MANIFEST,
    check_target,
    keep,
    known_input,
    working_folder,
)
from memohop.data.prepared.ids import IdDatabase, are_whole, import_duckdb
from memohop.data.prepared.many_files import Files, find_files, open_files
from memohop.data.prepared.reading import Prepared, is_prepared, open_prepared
from memohop.data.prepared.rows import MOST_NODES, ArcFiles, Sorted
from memohop.data.tables.columns import ColumnEncoder
from memohop.data.tables.labels import Labels, read_labels
from memohop.data.tables.links import tell_unknown, unused
from memohop.data.tables.options import ReadOptions, Roles, find_roles
from memohop.data.tables.read import no_labels, read_sets
from memohop.errors import DataError, whole_number
from memohop.folders import disk_errors
from memohop.outputs import listed
from memohop.version import __version__

_RAM = 4 * 2**30
_LEAST_RAM = 512 * 2**20


def prepare(
    nodes: Files,
    edges: Files,
    folder: str | os.PathLike[str],
    *,
    memory: int = _RAM,
    progress: Callable[[str], None] = lambda doing: None,
    **how: Any,
) -> Prepared:
    r"""Turn tables that need not fit in RAM into a folder of arrays, as ``read_graph`` would.

    Files are streamed: ids are numbered by DuckDB, arcs are sorted in parts, and features are
    encoded some rows at a time. A few columns of the node table, whole, must fit in RAM. A folder
    that was made from the same files with the same options is used again; files are known by path,
    size, time of change and the SHA-256 of their first and last mebibyte.

    Args:
        nodes: The node table: a CSV, TSV or Parquet file, a folder of such files, a pattern such as
            ``nodes/*.csv``, or a list of these. Nodes are numbered in the order of files and rows.
        edges: The edge table, likewise.
        folder: Where to write; made if needed.
        memory: The most bytes that the process should hold, roughly.
        progress: Called with what is done next.
        **how: The arguments of :class:`~memohop.data.tables.ReadOptions`: ``label``, None if there
            are no labels, which column is for what, and how columns are read.

    Example:
        >>> import tempfile
        >>> from pathlib import Path
        >>> import memohop
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     here = Path(folder)
        ...     _ = (here / "nodes.csv").write_text("id,size,kind\n1,3,a\n2,5,b\n3,4,a\n")
        ...     _ = (here / "edges.csv").write_text("source,target\n1,2\n2,3\n")
        ...     graph = memohop.prepare(here / "nodes.csv", here / "edges.csv", here / "graph")
        ...     graph.nodes, graph.arcs, graph.out.indices.tolist()
        (3, 4, [1, 0, 2, 1])
    """
    options = ReadOptions(**how)
    plain = msgspec.json.decode(msgspec.json.encode(options))
    whole_number("memory", memory, least=_LEAST_RAM)
    home = check_target(folder)
    node_files, edge_files = find_files(nodes, "nodes"), find_files(edges, "edges")
    inputs = [known_input(path) for path in (*node_files, *edge_files)]
    older = _usable(home)
    if older and (older.manifest.inputs, older.manifest.options) == (inputs, plain):
        progress(f"{home} was made from these files, and is used again")
        return older
    opened = [open_files(paths, options.encoding) for paths in (node_files, edge_files)]
    roles = find_roles(opened[0], opened[1], options)
    duckdb = import_duckdb()
    with disk_errors(home, "graph", MANIFEST, duckdb.Error), working_folder(home) as work:
        described = _write(work, roles, options, memory, progress)
        progress("computing the digests")
        files = sorted([*work.glob("*.npy"), *work.glob("*.arrow")])
        described |= {"memohop": __version__, "options": plain, "inputs": inputs}
        keep(home, work, files, described)
    return open_prepared(home, check=False)


def _write(
    work: Path,
    roles: Roles,
    options: ReadOptions,
    memory: int,
    progress: Callable[[str], None],
) -> dict[str, Any]:
    """Write all arrays into the working folder, and describe them."""
    whole = are_whole(roles.nodes, [roles.id]) and are_whole(roles.edges, roles.ends)
    scratch = work / "scratch"
    scratch.mkdir()
    database = IdDatabase(scratch, memory // 2, whole=whole)
    try:
        progress("numbering the nodes")
        count = database.add_nodes(roles.nodes, roles.id, work / "ids.arrow")
        if count > MOST_NODES:
            raise DataError(f"{roles.nodes.name} has {count} nodes; the most is {MOST_NODES}")
        progress(f"reading labels and columns of {count} nodes")
        labels = _labels(roles, options, count)
        write_array(work / "labels.npy", labels.y)
        of_sets = _write_sets(work, roles, labels)
        fitted, told = _fit(roles, options.encoder, count, memory // 4)
        is_sparse, notes = write_features(roles.nodes, fitted, work)
        progress("numbering and sorting the edges")
        arcs, warnings = _arcs(work, scratch, database, roles, options, count)
    finally:
        database.close()
    more = [name for name in roles.edges.columns if name not in (*roles.ends, roles.weight)]
    weighted = roles.weight is not None
    warnings += unused(more, "column", f"{roles.edges.name}: ", weighted=weighted)
    warnings = [*roles.nodes.warnings, *roles.edges.warnings, *warnings]
    return {
        "nodes": count,
        "arcs": arcs.arcs,
        "directed": arcs.directed,
        "features": len(fitted.encoder.feature_names),
        "sparse": is_sparse,
        "task": labels.task,
        "classes": labels.classes,
        "label": roles.label,
        "encoder": fitted.encoder.to_json(),
        "notes": [
            *roles.nodes.notes,
            *roles.edges.notes,
            f"{count} nodes, column {roles.id!r} is their id",
            *arcs.notes,
            *labels.notes,
            *of_sets,
            *told,
            *notes,
        ],
        "warnings": [*warnings, *labels.warnings, *fitted.warnings],
    }


def _labels(roles: Roles, options: ReadOptions, count: int) -> Labels:
    if roles.label is None:
        return no_labels(count, options.classes, options.task)
    column = roles.nodes.read([roles.label], text=[roles.label])[roles.label]
    return read_labels(column, roles.label, options.task, options.classes)


def _write_sets(work: Path, roles: Roles, labels: Labels) -> list[str]:
    """Write the user's own split and groups, if there are any; the notes on them."""
    if not roles.sets:
        return []
    names = list(roles.sets.values())
    words = [name for role, name in roles.sets.items() if role != "time_column"]
    table = roles.nodes.read(names, text=words)
    masks, groups, notes = read_sets(table, roles.sets, labels)
    if masks is not None:
        write_array(work / "sets.npy", np.stack(masks, axis=1))
    if groups is not None:
        write_array(work / "groups.npy", groups)
    return notes


def _fit(
    roles: Roles, encoder: ColumnEncoder | None, count: int, memory: int
) -> tuple[Fitted, list[str]]:
    """How columns become features, and the notes on it."""
    if encoder is not None:
        return known_types(roles.nodes, encoder, rows=count, memory=memory), []
    fitted = fit_in_passes(roles.nodes, roles.columns, roles.readings, rows=count, memory=memory)
    told = [f"dropped as asked: {listed(roles.dropped)}"] if roles.dropped else []
    return fitted, told + fitted.encoder.describe()


def _arcs(
    work: Path,
    scratch: Path,
    database: IdDatabase,
    roles: Roles,
    options: ReadOptions,
    count: int,
) -> tuple[Sorted, list[str]]:
    """Write the rows; return what became of the edges, and warnings."""
    database.check_header(roles.edges, roles.ends)
    edges = 0
    with closing(ArcFiles(scratch, count, weighted=roles.weight is not None)) as files:
        for begin, end, weight in database.edges(roles.edges, roles.ends, roles.weight):
            known = (begin >= 0) & (end >= 0)
            edges += len(known)
            files.add(begin[known], end[known], None if weight is None else weight[known])
    if not edges:
        raise DataError(f"{roles.edges.name} has column names and no rows; give at least one row")
    warnings: list[str] = []
    if lost := edges - files.edges:
        named = database.unknown(roles.edges, roles.ends)
        name, drop = roles.edges.name, options.drop_unknown
        warnings = tell_unknown(name, lost, edges, named, drop_unknown=drop)
    return files.write(work, directed=options.directed), warnings


def _usable(folder: Path) -> Prepared | None:
    """The graph of an earlier preparation, if it is there and nobody changed it."""
    if not is_prepared(folder):
        return None
    try:
        return open_prepared(folder)
    except DataError:
        return None
