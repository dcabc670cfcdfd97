"""What a model says of a prepared graph, block by block.

Linear models and trees, with and without neighbours, ``mlp`` and ``gcn+mmp`` read the graph from
the disk. Other networks take the whole graph in RAM.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import torch
from numpy.typing import NDArray
from scipy import sparse

from memohop.data.arcs import in_unit
from memohop.data.prepared import Prepared
from memohop.data.prepared.arrays import ArrayFile, map_array
from memohop.errors import UsageError
from memohop.fit.candidates.linear import Linear
from memohop.fit.candidates.network import DEGREE, Network
from memohop.fit.candidates.trees import Trees
from memohop.fit.estimator import GraphEstimator
from memohop.fit.inputs import unknown_targets
from memohop.fit.neighbourhood import Matrix, Neighbourhood
from memohop.fit.predictions import table_of
from memohop.fit.problem import Inputs, Outputs
from memohop.fit.views import View, side_by_side
from memohop.inference.from_disk import DiskMatrix, logits_from_disk, slices
from memohop.networks import MemoryNetwork, build

_ROWS = 1 << 16
_FROM_DISK = "gcn+mmp"

Speaker = Callable[[slice], Outputs]
"""From a slice of nodes to their outputs."""


def outputs_by_block(
    model: GraphEstimator,
    graph: Prepared,
    scratch: Path,
    tell: Callable[[str], None] = lambda text: None,
) -> Iterator[tuple[slice, Outputs]]:
    """Probabilities of the classes, or the number, of some nodes at a time.

    On any graph other than that of ``fit``, which the model holds in RAM, no labels are used.

    Args:
        model: A fitted model.
        graph: A graph that was prepared with the columns of the model.
        scratch: An empty folder, for means over neighbours.
        tell: Called with remarks.
    """
    check_columns(model, graph)
    sizes = (model.report_.nodes, model.report_.arcs)
    if (graph.nodes, graph.arcs) == sizes and model.is_graph_of_fit(graph.in_ram()):
        own = model.outputs()
        yield from ((rows, own[rows]) for rows in slices(graph.nodes, _ROWS))
        return
    about = _Graph(model, graph, scratch)
    ensemble = model.model_
    speakers: list[tuple[float, Speaker]] = []
    total: NDArray[np.float32] | None = None  # of networks, which compute all nodes at once
    whole = set()
    for component in ensemble.components:
        weight = component.weight / len(component.models)
        for part in component.models:
            assert isinstance(part, Linear | Trees | Network)
            if not isinstance(part, Network) or part.model == "mlp":
                speakers.append((weight, about.speaker(part)))
            else:
                if part.model != _FROM_DISK and part.model not in whole:
                    whole.add(part.model)
                    tell(f"{part.model} is part of the model and needs the whole graph in RAM")
                said = about.say(part)
                total = weight * said if total is None else total + weight * said
    for rows in slices(graph.nodes, _ROWS):
        found = 0 if total is None else total[rows]
        for weight, speaker in speakers:
            found = found + weight * speaker(rows)
        yield rows, ensemble.calibration.of(np.asarray(found))


def tables_by_block(
    model: GraphEstimator,
    graph: Prepared,
    scratch: Path,
    tell: Callable[[str], None] = lambda text: None,
) -> Iterator[pa.Table]:
    """The predictions of some nodes at a time, as tables; arguments as above."""
    for rows, outputs in outputs_by_block(model, graph, scratch, tell):
        ids = graph.ids.slice(rows.start, rows.stop - rows.start)
        yield table_of(model, ids, outputs)


def check_columns(model: GraphEstimator, graph: Prepared) -> None:
    """Refuse a graph whose features are not those of the model."""
    if model.encoder_ is None:
        raise UsageError(
            "this model was fitted on arrays, not on tables; predict from Python instead"
        )
    if model.encoder_ != graph.encoder:
        raise UsageError(
            f"{graph.folder} was prepared with other features than the model knows; prepare it "
            "again with --model and the folder of the model"
        )


class _Graph:
    """A prepared graph as the parts of one model see it; means are computed once."""

    def __init__(self, model: GraphEstimator, graph: Prepared, scratch: Path) -> None:
        self._model, self._graph, self._scratch = model, graph, scratch
        self._directed = bool(model.directed_)
        self._whole: Inputs | None = None
        self._means: dict[Any, tuple[NDArray[Any], NDArray[Any]]] = {}
        self._degrees: NDArray[np.float32] | None = None
        self._unit = model.mean_weight_
        self._near = self._matrix("undirected", norm="row")

    def speaker(self, part: Linear | Trees | Network) -> Speaker:
        """What a model says that needs no other nodes than those in the means."""
        if isinstance(part, Network):
            no_arcs = np.empty((2, 0), dtype=np.int64)
            return lambda rows: part.outputs(self._inputs(self._graph.features_of(rows), no_arcs))
        if part.view.sees == "columns":
            return lambda rows: part.of_features(self._graph.features_of(rows))
        return lambda rows: part.of_features(self._features(part.view, rows))

    def say(self, part: Network) -> Outputs:
        """What a network says of all nodes."""
        if part.model != _FROM_DISK:
            if self._whole is None:
                found = self._graph.in_ram()
                data = found.data
                weights = data.edge_weight.numpy() if "edge_weight" in data else None
                weights = in_unit(weights, self._unit)
                self._whole = self._inputs(found.x, data.edge_index.numpy(), weights)
            return part.outputs(self._whole)
        options = {**part.options, "address": "none"}  # nodes of another graph have no rows
        network = build(part.model, *part.sizes[:2], **options)
        assert isinstance(network, MemoryNetwork)
        network.load_state_dict(
            {name: value for name, value in part.state.items() if not name.startswith("address.")}
        )

        def features(rows: slice) -> Matrix:
            x = self._graph.features_of(rows) / np.float32(part.scale)
            return side_by_side([x, self.degrees()[rows] / np.float32(DEGREE)])

        unit = None if self._unit is None else self._unit * part.arc_scale
        logits = logits_from_disk(network.eval(), self._graph, features, unit)
        if logits.shape[1] == 1:
            return part.standard.restore(logits).numpy()
        return torch.softmax(logits, dim=-1).numpy()

    def degrees(self) -> NDArray[np.float32]:
        """As :meth:`Neighbourhood.degrees`."""
        if self._degrees is None:
            ways = ["undirected", *(["out", "in"] if self._directed else [])]
            sums = [self._matrix(way).sums for way in ways]
            self._degrees = np.log1p(np.stack(sums, axis=1)).astype(np.float32)
        return self._degrees

    def _matrix(self, way: str, norm: str = "none") -> DiskMatrix:
        return DiskMatrix(
            self._graph, direction=way, self_loops="remove", norm=norm, unit=self._unit
        )

    def _features(self, view: View, rows: slice) -> Matrix:
        """As :meth:`View.features`, without known labels."""
        x = self._graph.features_of(rows)
        one, two = self._means_of(view)
        parts = [x, self.degrees()[rows], np.array(one[rows]), np.array(two[rows])]
        if view.components is not None and view.one_hop_apart:
            parts.append(self._near.rows(rows) @ self._graph.x)
        count = x.shape[0]
        node = Neighbourhood(np.empty((2, 0), dtype=np.int64), 1, directed=self._directed)
        shares = node.label_shares(self._nothing(1), view.classes, self._model.overall_)
        parts.append(np.repeat(shares, count, axis=0))
        if view.sees == "rows":
            parts.append(sparse.csr_array((count, view.nodes), dtype=np.float32))
        if view.basis is not None:
            parts.append(np.zeros((count, view.basis.shape[1]), dtype=np.float32))
        return side_by_side(parts)

    def _means_of(self, view: View) -> tuple[NDArray[Any], NDArray[Any]]:
        """The means over one hop and over two hops, in files."""
        key = None if view.components is None else view.components.tobytes()
        if key not in self._means:
            number = len(self._means)
            few = self._graph.x
            if view.components is not None:
                few = self._write(f"few-{number}", self._combine(view.components))
            one = self._write(f"one-{number}", self._mean(few))
            self._means[key] = one, self._write(f"two-{number}", self._mean(one))
        return self._means[key]

    def _combine(self, components: NDArray[np.float32]) -> Iterator[NDArray[Any]]:
        for rows in slices(self._graph.nodes, _ROWS):
            yield self._graph.features_of(rows) @ components.T

    def _mean(self, of: Matrix) -> Iterator[NDArray[Any]]:
        for rows in slices(self._graph.nodes, _ROWS):
            found = self._near.rows(rows) @ of
            yield found if isinstance(found, np.ndarray) else found.toarray()

    def _write(self, name: str, blocks: Iterator[NDArray[Any]]) -> NDArray[Any]:
        path = self._scratch / f"{name}.npy"
        first = next(blocks)
        with ArrayFile(path, np.float32, first.shape[1]) as file:
            file.append(first)
            for block in blocks:
                file.append(block)
        return map_array(path)

    def _inputs(
        self, x: Matrix, arcs: NDArray[np.int64], weights: NDArray[np.float32] | None = None
    ) -> Inputs:
        return Inputs(
            x,
            arcs,
            self._nothing(x.shape[0]),
            directed=self._directed,
            overall=self._model.overall_,
            weights=weights,
        )

    def _nothing(self, count: int) -> NDArray[Any]:
        return unknown_targets(self._model, count)
