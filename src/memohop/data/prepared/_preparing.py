"""From tables of any size to a folder of arrays."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import duckdb
import msgspec
import numpy as np

from memohop.data.prepared._columns import fit_in_passes, write_features
from memohop.data.prepared._folder import GRAPH_FOLDER, Manifest, file_name
from memohop.data.prepared._links import LinkDatabase
from memohop.data.prepared._many_files import Files, find_files, open_files
from memohop.data.prepared._reading import Prepared, open_prepared
from memohop.data.read_options import ReadOptions, Roles, find_roles
from memohop.data.tables.labels import Labels, no_labels, read_labels, read_sets
from memohop.data.tables.leaks import Target
from memohop.data.tables.links import unused
from memohop.errors import DataError, UsageError, whole_number
from memohop.folders import NO_DIGEST, sealed, sha256_of, working_folders
from memohop.outputs import listed
from memohop.version import __version__

_RAM = 4 * 2**30
_LEAST_RAM = 512 * 2**20
_ENDS = 1 << 20  # bytes at either end of a file that its digest is of


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

    Files are streamed: DuckDB numbers the ids and sorts the arcs, and features are encoded some
    rows at a time. A few columns of the node table, whole, must fit in RAM. A folder that was made
    from the same files with the same options is used again; files are known by path, size, time of
    change and the SHA-256 of their first and last mebibyte.

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
    whole_number("memory", memory, least=_LEAST_RAM)
    if options.encoder is not None and options.encoder.edges.columns:
        names = [column.name for column in options.encoder.edges.columns]
        raise UsageError(
            f"the model learned from {listed(names)} of its edge table, which a prepared graph "
            "does not use; predict from the tables themselves, or fit again with "
            f"--drop {','.join(names)}"
        )
    if options.edge_time is not None:
        raise UsageError(
            f"edge_time={options.edge_time!r}: a prepared graph does not keep times; leave it out, "
            "or fit the tables themselves"
        )
    if options.encoder is not None and options.encoder.time is not None:
        raise UsageError(
            f"the model learned with times, column {options.encoder.time.name!r}, which a prepared "
            "graph does not keep; predict from the tables themselves, or fit a prepared graph"
        )
    home = GRAPH_FOLDER.check_target(folder)
    node_files, edge_files = find_files(nodes, "nodes"), find_files(edges, "edges")
    inputs = [_identify(path) for path in (*node_files, *edge_files)]
    if (home / GRAPH_FOLDER.described).is_file():
        try:
            older = open_prepared(home)
        except DataError:  # it was damaged, or made by another version
            pass
        else:
            if (older.inputs, older.options) == (inputs, _plain(options)):
                progress(f"{home} was made from these files, and is used again")
                return older
    opened = [open_files(paths, options.encoding) for paths in (node_files, edge_files)]
    roles = find_roles(opened[0], opened[1], options)
    _check_alone(home)
    with GRAPH_FOLDER.replaced(home, duckdb.Error) as work:
        manifest = _write(work, roles, options, memory, progress)
        progress("computing the digests")
        digests = {}
        for path in sorted([*work.glob("*.npy"), *work.glob("*.arrow")]):
            digests[path.stem] = digest = sha256_of(path)
            path.rename(work / file_name(path.stem, digest))
        manifest = msgspec.structs.replace(manifest, inputs=inputs, files=digests)
        text = msgspec.json.format(msgspec.json.encode(manifest), indent=1)
        (work / GRAPH_FOLDER.described).write_bytes(sealed(text.decode()))
    return open_prepared(home, check=False)


def _identify(path: Path) -> str:
    """Path, size, time of change and the SHA-256 of the first and the last mebibyte of a file.

    A file for which these are what they were counts as unchanged.
    """
    status, digest = path.stat(), hashlib.sha256()
    with path.open("rb") as file:
        digest.update(file.read(_ENDS))
        file.seek(max(0, status.st_size - _ENDS))
        digest.update(file.read(_ENDS))
    return f"{path.resolve()} {status.st_size} {status.st_mtime_ns} {digest.hexdigest()}"


def _check_alone(folder: Path) -> None:
    """Refuse a folder that another process is writing."""
    for path, process in working_folders(folder).items():
        if process is not None:
            raise DataError(
                f"process {process} is preparing {folder} already; wait for it, give another "
                f"name, or remove {path} if it is something else"
            )


def _write(
    work: Path,
    roles: Roles,
    options: ReadOptions,
    memory: int,
    progress: Callable[[str], None],
) -> Manifest:
    """Write all arrays into the working folder, and describe them."""
    table, edges = roles.nodes, roles.edges
    scratch = work / "scratch"
    scratch.mkdir()
    share = max(_LEAST_RAM // 4, memory // 4)  # with an eighth, DuckDB gives up at 16 million arcs
    with closing(LinkDatabase(scratch, roles, share)) as links:
        progress("numbering the nodes")
        count = links.add_nodes(work / "ids.arrow")
        progress(f"reading labels and columns of {count} nodes")
        labels = _write_targets(work, roles, options, count)
        target = None if roles.label is None else Target(roles.label, labels.y)
        encoding = fit_in_passes(roles, options.encoder, target, rows=count, memory=memory // 4)
        stored, of_values = write_features(table, encoding, work)
        progress("numbering and sorting the edges")
        lost = links.add_edges(drop_unknown=options.drop_unknown)
        arcs, directed, of_arcs = links.write(work, count, directed=options.directed)
    more = [name for name in edges.columns if name not in (*roles.of_edges, *roles.dropped)]
    warnings = [
        *table.warnings,
        *edges.warnings,
        *lost,
        *unused(more, "column", f"{edges.name}: ", weighted=roles.weight is not None),
        *labels.warnings,
        *_tell_time(roles),
        *encoding.warnings,
    ]
    notes = [
        *table.notes,
        *edges.notes,
        f"{count} nodes, column {roles.id!r} is their id",
        *of_arcs,
        *labels.notes,
        *([f"dropped as asked: {listed(roles.dropped)}"] if roles.dropped else []),
        *(encoding.encoder.describe() if options.encoder is None else []),
        *of_values,
        *warnings,
    ]
    return Manifest(
        format=GRAPH_FOLDER.format,
        sha256=NO_DIGEST,
        memohop=__version__,
        nodes=count,
        arcs=arcs,
        directed=directed,
        features=len(encoding.encoder.feature_names),
        stored=stored,
        task=labels.task,
        classes=labels.classes,
        label=roles.label,
        encoder=encoding.encoder,
        notes=notes,
        warnings=warnings,
        options=_plain(options),
        inputs=[],
        files={},
    )


def _tell_time(roles: Roles) -> list[str]:
    """A line on what a time column does not do here."""
    if roles.time is None:
        return []
    return [
        f"column {roles.time!r} decides the split alone: a prepared graph does not keep times, so "
        "that nodes learn from later ones too; fit of the tables themselves prevents that"
    ]


def _plain(options: ReadOptions) -> dict[str, Any]:
    """Options as ``prepared.json`` has them."""
    return msgspec.json.decode(msgspec.json.encode(options))


def _write_targets(work: Path, roles: Roles, options: ReadOptions, count: int) -> Labels:
    """Write the labels, and the user's own sets and groups, if there are some."""
    if roles.label is None:
        labels = no_labels(count, options.classes, options.task)
    else:
        column = roles.nodes.read([roles.label], text=roles.spelled)[roles.label]
        labels = read_labels(column, roles.label, options.task, options.classes)
    np.save(work / "labels.npy", labels.y)
    if not roles.sets:
        return labels
    table = roles.nodes.read([*roles.sets.values()], text=roles.spelled)
    masks, groups, notes, warnings = read_sets(table, roles.sets, labels)
    if masks is not None:
        np.save(work / "sets.npy", np.stack(masks, axis=1))
    if groups is not None:
        np.save(work / "groups.npy", groups)
    return labels._replace(notes=[*labels.notes, *notes], warnings=[*labels.warnings, *warnings])
