"""What is checked when a prepared graph is opened, here and nowhere else.

NumPy, SciPy and PyTorch follow the indices that they are given, and a right digest proves only
that a file is as somebody wrote it. So shape, type, range, order and finiteness of everything are
checked before it is used, with a few megabytes of an array in RAM at a time.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import numpy as np
import pyarrow as pa
from numpy.typing import DTypeLike, NDArray

from memohop.data.arcs import LARGEST_WEIGHT
from memohop.data.prepared._arrays import is_array, map_array
from memohop.data.prepared._folder import GRAPH_FOLDER, Manifest, file_name
from memohop.data.prepared._links import MOST_NODES
from memohop.data.tables.column import CLIP
from memohop.errors import UsageError
from memohop.folders import sha256_of

_CHUNK = 1 << 22  # values that are looked at together
_WHOLE = 2**63  # class names that are numbers are below this


def checked(folder: Path, *, contents: bool) -> Manifest:
    """The description of a graph, if its folder is as :func:`memohop.prepare` writes one.

    Without ``contents``, files are not read, and only their sizes and types are compared.
    """
    described = GRAPH_FOLDER.read(folder)
    with GRAPH_FOLDER.refused(folder / GRAPH_FOLDER.described):
        manifest = msgspec.json.decode(described, type=Manifest)
        _check_manifest(manifest)
        expected = _arrays_of(manifest)
        if manifest.files.keys() != expected.keys() | {"ids"}:
            raise UsageError(f"it lists {', '.join(sorted(manifest.files))}")
    paths = {name: folder / file_name(name, digest) for name, digest in manifest.files.items()}
    for name, path in paths.items():
        if not path.is_file() or (contents and sha256_of(path) != manifest.files[name]):
            raise GRAPH_FOLDER.damaged(path)
    arrays: dict[str, NDArray[Any]] = {}
    for name, (kind, shape, check, beside) in expected.items():
        with GRAPH_FOLDER.refused(paths[name]):
            if not is_array(paths[name], kind, shape):
                raise UsageError(f"it is no array of type {np.dtype(kind)} and shape {list(shape)}")
            arrays[name] = map_array(paths[name])
            if contents:
                check(arrays[name], *(arrays[other] for other in beside))
    with GRAPH_FOLDER.refused(paths["ids"]):
        _check_ids(paths["ids"], manifest.nodes, contents=contents)
    return manifest


class _Remembered(msgspec.Struct):
    """The options that a model remembers."""

    id: str | None
    source: str | None
    target: str | None
    weight: str | None = None


def _check_manifest(manifest: Manifest) -> None:
    """Refuse counts and names that contradict each other."""
    nodes, arcs, classes = manifest.nodes, manifest.arcs, manifest.classes
    if not 1 <= nodes <= MOST_NODES or arcs < 0:
        raise UsageError(f"it counts {nodes} nodes and {arcs} arcs")
    if manifest.features != len(manifest.encoder.feature_names):
        raise UsageError(f"its columns do not make {manifest.features} features")
    is_one_kind = len({type(name) for name in classes}) <= (manifest.task == "classes")
    are_whole = all(isinstance(name, str) or abs(name) < _WHOLE for name in classes)
    if not is_one_kind or not are_whole or len(set(classes)) < len(classes):
        raise UsageError(f"it has classes={classes[:9]} and task={manifest.task!r}")
    msgspec.convert(manifest.options, _Remembered)


class _Expected(NamedTuple):
    """Type and shape of an array, the check of what is in it, and the arrays which that needs."""

    kind: DTypeLike
    shape: tuple[int, ...]
    check: Callable[..., None]
    beside: tuple[str, ...] = ()


def _arrays_of(manifest: Manifest) -> dict[str, _Expected]:
    """What each array must be; those that a check needs come before."""
    nodes, arcs, files = manifest.nodes, manifest.arcs, manifest.files
    are_weights = partial(_check_values, 0, LARGEST_WEIGHT)
    are_features = partial(_check_values, -CLIP, CLIP)
    matrices = {"out": (arcs, nodes), **({"in": (arcs, nodes)} if manifest.directed else {})}
    if manifest.stored is not None:
        matrices["features"] = manifest.stored, manifest.features
    arrays: dict[str, _Expected] = {}
    for name, (entries, width) in matrices.items():
        bounds = f"{name}-indptr"
        arrays[bounds] = _Expected(np.int64, (nodes + 1,), partial(_check_bounds, entries))
        arrays[f"{name}-indices"] = _Expected(
            np.int32, (entries,), partial(_check_places, width), (bounds,)
        )
        if name == "features":
            arrays["features-data"] = _Expected(np.float32, (entries,), are_features)
        elif "out-weights" in files:
            arrays[f"{name}-weights"] = _Expected(np.float32, (entries,), are_weights)
    if manifest.stored is None:
        arrays["features"] = _Expected(np.float32, (nodes, manifest.features), are_features)
    if manifest.task == "numbers":
        most = float(np.finfo(np.float64).max)
        are_labels = partial(_check_values, -most, most, optional=True)
        arrays["labels"] = _Expected(np.float64, (nodes,), are_labels)
    else:
        are_labels = partial(_check_values, -1, len(manifest.classes) - 1)
        arrays["labels"] = _Expected(np.int64, (nodes,), are_labels)
    if "groups" in files:
        arrays["groups"] = _Expected(np.int64, (nodes,), partial(_check_values, 0, nodes - 1))
    if "sets" in files:
        arrays["sets"] = _Expected(np.bool_, (nodes, 3), _check_sets, ("labels",))
    return arrays


def _check_values(
    least: float, most: float, values: NDArray[Any], *, optional: bool = False, start: int = 0
) -> None:
    """Refuse values outside a range, or NaN unless optional; the first one is entry ``start``."""
    at_once = max(1, _CHUNK // max(1, values[:1].size))
    for first in range(0, len(values), at_once):
        part = values[first : first + at_once]
        if optional:
            part = np.where(np.isnan(part), 0, part)
        if part.size and not (least <= part.min() and part.max() <= most):  # NaN is neither
            wrong = ~((part >= least) & (part <= most))
            row, *column = np.argwhere(wrong)[0]
            entry = ", ".join(map(str, (start + first + row, *column)))
            value = part[(row, *column)]
            raise UsageError(f"entry {entry} is {value}, which is not from {least} to {most}")


def _check_bounds(stored: int, bounds: NDArray[np.int64]) -> None:
    """Refuse rows that do not follow one another from the first value to the last."""
    if bounds[0] != 0 or bounds[-1] != stored:
        raise UsageError(f"rows go from {bounds[0]} to {bounds[-1]}, not from 0 to {stored}")
    for first in range(0, len(bounds) - 1, _CHUNK):
        part = bounds[first : first + _CHUNK + 1]
        falls = part[1:] < part[:-1]
        if falls.any():
            raise UsageError(f"row {first + int(falls.argmax())} ends before it begins")


def _check_places(width: int, places: NDArray[np.int32], bounds: NDArray[np.int64]) -> None:
    """Refuse places outside a row, or not in ascending order within one.

    The bounds of the rows must have been checked.
    """
    for start in range(0, len(places), _CHUNK):
        before = max(start - 1, 0)  # the first is compared with the one before it
        part = places[before : start + _CHUNK]
        _check_values(0, width - 1, part, start=before)
        rises = part[1:] > part[:-1]
        begins = bounds[slice(*bounds.searchsorted([before + 1, before + len(part)]))]
        rises[begins - before - 1] = True  # the first of a row follows on no other
        if not rises.all():
            row = bounds.searchsorted(before + 1 + int(rises.argmin()), side="right") - 1
            raise UsageError(f"the entries of row {row} are not in ascending order")


def _check_sets(sets: NDArray[np.bool_], labels: NDArray[Any]) -> None:
    """Refuse sets that overlap, hold a node without a label, or lack one to learn from or test."""
    some = np.zeros(3, dtype=bool)
    for first in range(0, len(sets), _CHUNK):
        part, y = sets[first : first + _CHUNK], labels[first : first + _CHUNK]
        _check_values(0, 1, part.view(np.uint8), start=first)
        is_labelled = ~np.isnan(y) if y.dtype.kind == "f" else y >= 0
        wrong = part.sum(axis=1) > is_labelled
        if wrong.any():
            row = first + int(wrong.argmax())
            raise UsageError(f"the node of row {row} is in two sets, or has no label")
        some |= part.any(axis=0)
    if not (some[0] and some[2]):
        raise UsageError("no node is for training, or none for testing")


def _check_ids(path: Path, nodes: int, *, contents: bool) -> None:
    """Refuse ids that are no strings or whole numbers, or not one for each node."""
    count = 0
    with pa.memory_map(str(path)) as file, pa.ipc.open_file(file) as reader:
        if reader.schema.names != ["id"] or reader.schema.types[0] not in (pa.int64(), pa.string()):
            raise UsageError(f"it holds columns {reader.schema.names}, of {reader.schema.types}")
        for number in range(reader.num_record_batches):
            batch = reader.get_batch(number)
            count += len(batch)
            if contents:
                batch.validate(full=True)
                if batch.column(0).null_count:
                    raise UsageError("a node has no id")
    if count != nodes:
        raise UsageError(f"it holds {count} ids for {nodes} nodes")
