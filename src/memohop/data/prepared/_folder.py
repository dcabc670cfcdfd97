"""The folder of a prepared graph: plain arrays, and a description with their digests.

========================  ======================================================================
``prepared.json``         what the graph is, from which files it was made, the SHA-256 of each
                          other file, and its own
``out-indptr-*.npy``      rows of the adjacency matrix: node ``u`` points to
``out-indices-*.npy``     ``indices[indptr[u]:indptr[u + 1]]``, in ascending order
``out-weights-*.npy``     the weights of these arcs, ``float32``, if edges have weights
``in-*.npy``              all of these for the nodes that point to ``u``, if the graph is directed
``features-*.npy``        ``float32``, dense or the three arrays of a sparse matrix
``labels-*.npy``          class numbers, -1 without a label; or numbers, NaN without one
``sets-*.npy``            whether a node is for training, validation or test, if a column says so
``groups-*.npy``          the number of each node's group, if a column has groups
``ids-*.arrow``           the ids, whole numbers or strings
========================  ======================================================================

The star stands for the beginning of the file's SHA-256. How the folder is written, and what in it
may be replaced or removed, is in :mod:`memohop.folders`; how it is checked, in :mod:`_checking`.
"""

from __future__ import annotations

import re
from typing import Annotated, Any

import msgspec
import pyarrow as pa

from memohop.data.read_options import Class, Task
from memohop.data.tables.columns import ColumnEncoder
from memohop.folders import Layout, named

GRAPH_FOLDER = Layout(
    what="prepared graph",
    command="prepare",
    described="prepared.json",
    format=2,
    names=re.compile(
        r"(out|in|features|labels|sets|groups|ids)(-[a-z]+)?-(?P<digest>[0-9a-f]{16})\.(npy|arrow)"
    ),
    again="prepare the graph again",
    anew="prepare it again",
    errors=(pa.ArrowException, OSError),
)


class Manifest(msgspec.Struct, frozen=True, kw_only=True, eq=False, dict=True):
    """The content of ``prepared.json``.

    Attributes:
        format: How the folder is laid out.
        sha256: That of this description, and so of the whole graph.
        memohop: The version that wrote it.
        nodes: The number of nodes.
        arcs: The number of arcs, of which an edge without a direction has two.
        directed: Whether an edge is one arc, or one each way.
        features: The number of features.
        stored: How many of their values are stored, if they are mostly zeros; otherwise None.
        task: Whether the labels are classes or numbers.
        classes: What each class number stands for; empty if numbers are to be predicted.
        label: The column of the labels, or None.
        encoder: How columns became features.
        notes: What was done to the tables, in plain words.
        warnings: The notes on likely mistakes and on anything left out.
        options: How the tables were read.
        inputs: What identifies the files of the tables.
        files: The SHA-256 of each file of the folder, by name.
    """

    format: int
    sha256: str
    memohop: str
    nodes: int
    arcs: int
    directed: bool
    features: int
    stored: int | None
    task: Task
    classes: list[Class]
    label: str | None
    encoder: ColumnEncoder
    notes: list[str]
    warnings: list[str]
    options: dict[str, Any]
    inputs: list[str]
    files: dict[str, Annotated[str, msgspec.Meta(pattern=r"\A[0-9a-f]{64}\Z")]]


def file_name(name: str, digest: str) -> str:
    """How the file of an array, or of the ids, is called in the folder."""
    return named(name, digest, ".arrow" if name == "ids" else ".npy")
