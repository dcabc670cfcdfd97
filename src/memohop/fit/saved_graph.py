"""The graph of ``fit`` as tensors, and its checks when it is read."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import msgspec
import numpy as np
import torch
from numpy.typing import NDArray
from scipy import sparse
from torch import Tensor

from memohop.data.arcs import check_arcs
from memohop.data.tables.links import id_array
from memohop.errors import UsageError
from memohop.fit.described import Ids
from memohop.fit.problem import Inputs
from memohop.fit.saved import Saved, Sizes


def graph_tensors(graph: Inputs, ids: NDArray[Any]) -> dict[str, Tensor]:
    """The graph of ``fit`` and its ids, for safetensors."""
    x = graph.x
    if sparse.issparse(x):
        parts = {"x.data": x.data, "x.indices": x.indices, "x.indptr": x.indptr}
    else:
        parts = {"x": x}
    parts |= {"arcs": graph.arcs, "y": graph.y}
    if graph.weights is not None:
        parts["weights"] = graph.weights
    tensors = {name: torch.from_numpy(np.ascontiguousarray(one)) for name, one in parts.items()}
    return tensors | {"ids": _ids_as_tensor(ids)}


def checked_graph(tensors: Mapping[str, Tensor], sizes: Sizes) -> tuple[Inputs, NDArray[Any]]:
    """The graph of ``fit`` and its ids; a ``UsageError`` if it does not match the model."""
    columns = {"x"} if "x" in tensors else {"x.data", "x.indices", "x.indptr"}
    if tensors.keys() - {"weights"} != {*columns, "arcs", "y", "ids"}:
        raise UsageError(f"it holds {', '.join(sorted(tensors))}")
    ids = msgspec.json.decode(tensors["ids"].numpy().tobytes(), type=Ids)
    x = Saved({}, tensors).array("x", (sizes.nodes, sizes.features)) if "x" in tensors else None
    if x is None:
        parts = tuple(tensors[name].numpy() for name in ("x.data", "x.indices", "x.indptr"))
        try:
            x = sparse.csr_array(parts, shape=(sizes.nodes, sizes.features))
            x.check_format(full_check=True)
        except (ValueError, TypeError, IndexError) as error:
            raise UsageError(f"x is not a sparse matrix ({error})") from error
        if x.dtype != np.float32 or not np.isfinite(x.data).all():
            raise UsageError(f"x is of type {x.dtype}, or not finite")
    check_arcs(tensors["arcs"], sizes.nodes)
    weights = None
    if "weights" in tensors:
        weights = Saved({}, tensors).array("weights", (tensors["arcs"].shape[1],))
        if (weights < 0).any():
            raise UsageError("there are arcs with a negative weight")
    y = tensors["y"]
    if list(y.shape) != [sizes.nodes] or y.dtype != (
        torch.int64 if sizes.classes else torch.float64
    ):
        raise UsageError(f"y has shape {list(y.shape)} and type {y.dtype}")
    if sizes.classes and not -1 <= int(y.min()) <= int(y.max()) < sizes.classes:
        raise UsageError(f"y goes from {int(y.min())} to {int(y.max())}")
    known = y >= 0 if sizes.classes else ~y.isnan()
    if not known.any() or y.isinf().any():
        raise UsageError("y has no label, or one that is infinite")
    if len(ids) != sizes.nodes:
        raise UsageError(f"there are {sizes.nodes} nodes and {len(ids)} ids")
    graph = Inputs(
        x,
        tensors["arcs"].numpy(),
        y.numpy(),
        of_fit=sizes.nodes,
        directed=sizes.directed,
        weights=weights,
    )
    return graph, id_array(ids)


def _ids_as_tensor(ids: NDArray[Any]) -> Tensor:
    """The ids of nodes, which may be words, as bytes of JSON."""
    plain = [node if isinstance(node, int | str) else str(node) for node in ids.tolist()]
    text = json.dumps(plain, ensure_ascii=False).encode()
    return torch.from_numpy(np.frombuffer(text, dtype=np.uint8).copy())
