"""A graph of your own, and how it is read from tables."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import torch
from msgspec.structs import replace
from numpy.typing import NDArray

from memohop.data.check import MASKS, check_graph
from memohop.data.read_options import Class, ReadOptions, Task, find_roles, read_alike
from memohop.data.sparse_features import as_matrix, is_sparse, sharing
from memohop.data.splits import OwnSplit
from memohop.data.tables.arc_attributes import arc_attributes
from memohop.data.tables.cells import Cells, Reading, spelled_whole
from memohop.data.tables.column import Matrix
from memohop.data.tables.columns import ColumnEncoder, fit_columns
from memohop.data.tables.edge_columns import EdgeStatistics
from memohop.data.tables.labels import Labels, no_labels, read_labels, read_sets
from memohop.data.tables.leaks import Target
from memohop.data.tables.links import Links, node_ids, read_edges
from memohop.data.tables.sources import TableLike, check_alike, open_table
from memohop.data.tables.times import TimeColumn, check_comparable
from memohop.errors import UsageError
from memohop.outputs import listed
from memohop.pyg import Data


@dataclass(frozen=True)
class OwnGraph:
    """A graph of your own, ready to be split and trained on.

    Attributes:
        data: ``x`` (``float32``, a sparse CSR tensor if it is mostly zeros), ``edge_index`` and
            ``y``: class numbers (``int64``, -1 for a node without a label), or numbers to predict
            (``float64``, NaN for a node without one). ``edge_weight`` (``float32``) if there are
            weights, ``edge_attr`` (``float32``, ``[arcs, attributes]``, described by the encoder)
            if columns of the edge table describe arcs or some arc comes again, and ``train_mask``,
            ``val_mask`` and ``test_mask`` if there are ``masks``.
        ids: The id of each node, in the order of the rows: ``int64``, or objects if not all are
            whole numbers.
        classes: What each class number stands for; empty if numbers are to be predicted.
        encoder: How columns became features; None if the features came as numbers.
        notes: What was done to the tables, in plain words.
        warnings: The notes on likely mistakes and on anything left out.
        task: Whether classes or numbers are to be predicted.
        directed: Whether an edge is one arc, or one each way.
        listed: If edges are listed once and it was not said whether they have a direction, the same
            graph with an arc for each edge, for those who want to find out; otherwise None.
        masks: The user's own training, validation and test nodes, or None.
        groups: The number of each node's group, ``int64``, or None. A split must not tear a group.
        times: The time of each node, NaN where missing, or None.
        reading: The arguments of :func:`~memohop.read_graph` that read other tables alike; None for
            arrays.
    """

    data: Data
    ids: NDArray[Any]
    classes: list[Class]
    encoder: ColumnEncoder | None
    notes: tuple[str, ...]
    warnings: tuple[str, ...] = ()
    task: Task = "classes"
    directed: bool = False
    listed: Data | None = None
    masks: OwnSplit | None = None
    groups: NDArray[np.int64] | None = None
    times: NDArray[np.float64] | None = None
    reading: Mapping[str, Any] | None = None

    @property
    def x(self) -> Matrix:
        """The features for models outside PyTorch: a NumPy array or a SciPy ``csr_array``.

        It shares the values of ``data.x``.
        """
        x = self.data.x
        return as_matrix(x, torch.float32) if is_sparse(x) else x.numpy()


def read_graph(
    nodes: TableLike, edges: TableLike | Sequence[TableLike], *, label: str | None, **options: Any
) -> OwnGraph:
    """A graph from a table of nodes and one or more tables of edges.

    A table is the path of a CSV or TSV file (also compressed as ``.gz``, with a first line of
    column names, separated by comma, tab, semicolon or bar) or of a Parquet file, or a table of
    pyarrow, pandas or polars. :class:`ColumnEncoder` turns columns into features. In a text file a
    value that is empty, NA, N/A, NaN or null is missing. Repeated edges count once, or add up their
    weights, and edges from a node to itself are kept.

    Args:
        nodes: One row for each node: its id, its label, and columns that become features.
        edges: One row for each edge; a list of tables with the same columns is read as one. Of
            columns other than ids and weights, statistics become columns of the nodes; those that
            are not used are named in a warning.
        label: The column of ``nodes`` with the labels, empty where they are to be predicted. With
            an ``encoder`` it may be None or a column that is not there: no node has a label then.
        **options: Which column is for what, and how columns are read: the other arguments of
            :class:`~memohop.data.tables.ReadOptions`.

    Example:
        >>> import memohop
        >>> nodes = {"id": ["a", "b", "c", "d", "e"], "size": [3, 1, 4, 1, 5]}
        >>> nodes["kind"] = ["big", "small", "big", "small", None]  # the last is to be predicted
        >>> edges = {"source": ["a", "b"], "target": ["b", "c"]}
        >>> graph = memohop.read_graph(nodes, edges, label="kind")  # or the names of two files
        >>> graph.data.num_nodes, graph.classes
        (5, ['big', 'small'])
    """
    how = ReadOptions(label=label, **options)
    if label is None and how.encoder is None:
        raise UsageError("label=None: name the column of the node table with the classes")
    several = isinstance(edges, list | tuple)
    if several and not edges:
        raise UsageError("edges is an empty list; give at least one table")
    node_table = open_table(nodes, "nodes", how.encoding)
    edge_tables = [
        open_table(table, f"edges[{index}]" if several else "edges", how.encoding)
        for index, table in enumerate(edges if several else [edges])
    ]
    roles = find_roles(node_table, edge_tables[0], how)
    if how.encoder is None:  # a column that some tables lack is not used
        names = [set(table.columns) for table in edge_tables]
        common = [name for name in roles.edge_columns if name in set.intersection(*names)]
        roles = roles._replace(edge_columns=common)
    check_alike(edge_tables, [*roles.of_edges, *roles.edge_columns])
    text_names = [] if how.encoder is None else how.encoder.text_names
    kept = [name for name in node_table.columns if name not in roles.dropped]
    table = node_table.read(kept, text=[*roles.spelled, *text_names])
    ids = node_ids(table[roles.id], roles.id, node_table.name)
    known, time, times = how.encoder and how.encoder.time, None, None
    if roles.time is not None:
        time = known or TimeColumn.fit(Cells(roles.time, table[roles.time]))
        times = time.read(table[roles.time], "time column")
    links, rows = read_edges(edge_tables, roles, ids, how, times)
    if time is not None and rows.time is not None:
        check_comparable(time, rows.time)
    of_edges = EdgeStatistics.of(rows, links, roles, how.encoder, len(ids))
    of_columns = of_edges.tell_columns(edge_tables, roles, again=how.encoder is not None)
    attributes, told = arc_attributes(of_edges.fitted, rows, links, len(ids))
    if links.listed is not None:
        of_listed, _ = arc_attributes(of_edges.fitted, rows, links.listed, len(ids))
        links = links._replace(listed=links.listed._replace(attributes=of_listed))
    del rows  # to make room for the features
    described = describe_nodes(
        of_edges.beside(table.drop_columns([roles.id, *([known.name] if known else [])])),
        roles.label,
        how,
        readings=roles.readings | dict.fromkeys(of_edges.made, "numeric"),
        sets=roles.sets,
        times=times,
        made_of=of_edges.made_of(),
    )
    if how.encoder is None and described.encoder is not None:
        encoder = replace(of_edges.known_to(described.encoder), time=time)
        described = described._replace(encoder=encoder)
    as_known = ids.cast(pa.int64()) if spelled_whole(ids) else ids
    return own_graph(
        described,
        links._replace(
            attributes=attributes,
            notes=[*links.notes, *dict.fromkeys([*of_edges.notes, *told])],
            warnings=[*links.warnings, *of_columns, *of_edges.warnings],
        ),
        as_known.to_numpy(zero_copy_only=False),
        notes=(
            *node_table.notes,
            *(note for edge_table in edge_tables for note in edge_table.notes),
            f"{len(ids)} nodes, column {roles.id!r} is their id",
            *([f"dropped as asked: {listed(roles.dropped)}"] if roles.dropped else []),
        ),
        warnings=node_table.warnings,
        reading=read_alike(vars(how)),
        times=times,
    )


class Described(NamedTuple):
    """Features and labels of the nodes, and how they were found."""

    x: Matrix
    labels: Labels
    encoder: ColumnEncoder | None = None
    notes: Sequence[str] = ()
    masks: OwnSplit | None = None
    groups: NDArray[np.int64] | None = None
    warnings: Sequence[str] = ()


def describe_nodes(
    table: pa.Table,
    label: str | None,
    how: ReadOptions,
    *,
    readings: Mapping[str, Reading] | None = None,
    sets: Mapping[str, str] | None = None,
    times: NDArray[np.float64] | None = None,
    made_of: Mapping[str, Sequence[str]] | None = None,
) -> Described:
    """Features, labels and sets from a table without ids; without an encoder, one is fitted.

    With times, it is fitted to the rows that are not later than all training nodes. ``made_of``
    says which columns are made of which of the edge table.
    """
    labels = no_labels(table.num_rows, how.classes, how.task)
    if label is not None:
        labels = read_labels(table[label], label, how.task, how.classes)
        table = table.drop_columns([label])
    masks, groups, notes, warnings = read_sets(table, sets or {}, labels)
    table = table.drop_columns([*(sets or {}).values()])
    encoder = how.encoder
    if encoder is None:
        columns, y = table.columns, labels.y
        if times is not None and masks is not None:
            early = ~(times > times[masks.train].max())
            columns, y = [column.filter(pa.array(early)) for column in columns], y[early]
        named = zip(table.column_names, columns, strict=True)
        target = None if label is None else Target(label, y, made_of or {})
        encoder, surprises = fit_columns(named, readings, target=target)
        warnings += surprises
        notes += encoder.describe()
    x, told = encoder.transform(table)
    notes += told
    if how.encoder is not None:
        used = {column.name for column in encoder.columns}
        more = [name for name in table.column_names if name not in used]
        notes += [f"not used: {listed(more)}"] if more else []
    return Described(x, labels, encoder, notes, masks, groups, warnings)


def own_graph(
    nodes: Described,
    links: Links,
    ids: NDArray[Any],
    *,
    notes: Iterable[str] = (),
    warnings: Iterable[str] = (),
    reading: Mapping[str, Any] | None = None,
    times: NDArray[np.float64] | None = None,
) -> OwnGraph:
    """Nodes and arcs, checked, with the notes and warnings on each, and how they were read."""
    x, labels = nodes.x, nodes.labels
    data = Data(x=sharing(x) if is_sparse(x) else torch.from_numpy(x), y=torch.from_numpy(labels.y))
    if nodes.masks is not None:
        for name, mask in zip(MASKS, nodes.masks, strict=True):
            data[name] = torch.from_numpy(mask)
    listed = None if links.listed is None else _with_arcs(data, links.listed)
    data = _with_arcs(data, links)
    check_graph(data, numbers=True)
    warnings = (*warnings, *links.warnings, *labels.warnings, *nodes.warnings)
    return OwnGraph(
        data,
        ids,
        labels.classes,
        nodes.encoder,
        notes=(*notes, *links.notes, *labels.notes, *nodes.notes, *warnings),
        warnings=warnings,
        task=labels.task,
        directed=links.directed,
        listed=listed,
        masks=nodes.masks,
        groups=nodes.groups,
        times=times,
        reading=reading and {**reading, "directed": links.directed, "task": labels.task},
    )


def _with_arcs(nodes: Data, links: Links) -> Data:
    data = copy(nodes)
    data.edge_index = torch.from_numpy(links.arcs)
    if links.weight is not None:
        data.edge_weight = torch.from_numpy(links.weight)
    if links.attributes is not None:
        data.edge_attr = torch.from_numpy(links.attributes)
    return data
