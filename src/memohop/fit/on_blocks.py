"""What a model says of a prepared graph: in RAM, or in blocks, each read by a worker.

A block is a graph to predict on like any other: its nodes have columns and a neighbourhood, whose
products fetch what they need from the workers that hold the other blocks.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import copy
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from scipy import sparse

from memohop.data.prepared import GIVE_WORKERS, Prepared, open_prepared
from memohop.errors import UsageError
from memohop.fit._graph import Inputs
from memohop.fit._inputs import how_to_read, unknown_targets
from memohop.fit._neighbourhood import EVERY, MERGED, Matrix, Neighbourhood, Rows, Way
from memohop.fit._problem import Outputs
from memohop.jobs.executor import Lost
from memohop.nn import in_part
from memohop.parts.folder import as_rows, matrix_rows, read_block, starts_of
from memohop.parts.graph import GraphPart
from memohop.parts.halo import Group
from memohop.parts.worker import inputs_of

if TYPE_CHECKING:
    from memohop.fit.estimator import GraphEstimator
    from memohop.jobs.executor import Pool


def outputs_of_prepared(
    model: GraphEstimator, graph: Prepared, workers: int | None = None, pool: Pool | None = None
) -> Outputs:
    """Probabilities of the classes, or the number, of all nodes.

    The processes of a pool share a graph, unless it is that of ``fit``, which the model holds in
    RAM; without a pool, all of it is brought into RAM. On other graphs no labels are used.
    """
    if how_to_read(model)["encoder"] != graph.encoder:
        raise UsageError(
            f"{graph.folder} was prepared with other features than the model knows; prepare it "
            "again with --model and the folder of the model"
        )
    if model.arc_attributes_:
        raise UsageError(
            f"the model learned from what its edge table says of each edge, such as "
            f"{model.arc_attributes_[0].name!r}, which a prepared graph does not have; predict "
            "from the tables themselves"
        )
    own = getattr(model, "graph_", None)
    sizes = None if own is None else (own.nodes, own.arcs.shape[1])
    if pool is None or workers is None or sizes == (graph.nodes, graph.arcs):
        return model.outputs(graph.in_ram(GIVE_WORKERS))
    if any(part.models[0].needs_whole_graph for part in model.model_.components):
        raise UsageError(
            "this model looks at the structure of the whole graph, or at the extremes of "
            "neighbours, which no worker sees: predict without workers"
        )
    task = Prediction.of(model, graph)
    ((_, outputs),) = pool(predict_share, [task], together=workers)
    if isinstance(outputs, Lost):
        raise outputs.error
    return np.concatenate(outputs)


class Prediction(NamedTuple):
    """What is to be predicted; the same for all processes."""

    model: GraphEstimator  # without the graph of fit
    folder: str  # of the prepared graph

    @classmethod
    def of(cls, model: GraphEstimator, graph: Prepared) -> Prediction:
        """What a model is to say of a graph."""
        model = copy(model)
        for name in vars(model).keys() & {"graph_", "ids_"}:
            delattr(model, name)
        return cls(model, str(graph.folder))

    def share(self, rank: int) -> Prediction:
        """What the process of a rank is given."""
        return self


def predict_share(task: Prediction, where: Mapping[str, Any]) -> list[Outputs]:
    """What a process does: it predicts its block; the first one returns the outputs of all."""
    group = Group.join("cpu", **where)
    outputs = group.gather(predict_block(task, group))
    group.leave()
    return outputs if group.rank == 0 else []


def predict_block(task: Prediction, group: Group) -> Outputs:
    """The outputs of the nodes of this process's block."""
    graph = open_prepared(task.folder, check=False)  # which was checked when it was opened first
    return task.model.model_.outputs(BlockInputs.of(task.model, graph, group))


class BlockNeighbourhood(Neighbourhood):
    """The neighbourhood of the nodes of one block, without labels.

    Args:
        graph: The prepared graph.
        group: The processes, each of which has a block.
        directed: Whether directions count.
        unit: The number by which weights of arcs are divided; None if none count.
    """

    def __init__(self, graph: Prepared, group: Group, directed: bool, unit: float | None) -> None:
        self.graph, self.group, self.directed, self.unit = graph, group, directed, unit
        self.starts = starts_of(graph, group.size)
        self.nodes = slice(*self.starts[group.rank : group.rank + 2])

    def matrix(self, way: Way) -> sparse.csr_array:
        """The rows of the matrix, with columns for all nodes, made anew each time."""
        direction = "undirected" if way.direction == "both" else way.direction
        return matrix_rows(
            self.graph, self.nodes, direction=direction, self_loops="remove", unit=self.unit
        )

    @cached_property
    def _averaging_parts(self) -> dict[Way, GraphPart]:
        return {}

    def mean(self, x: Matrix, rows: Rows = EVERY, way: Way = MERGED) -> Matrix:
        """As of a whole graph; columns that are mostly zeros are those of the graph itself."""
        if not sparse.issparse(x):
            if way not in self._averaging_parts:
                direction = "undirected" if way.direction == "both" else way.direction
                policies = {"direction": direction, "self_loops": "remove", "norm": "row"}
                own = as_rows(self.matrix(way), self.group, policies)
                part = GraphPart.of(own, self.starts, self.group, torch.device("cpu"))
                self._averaging_parts[way] = part
            dense = torch.from_numpy(np.ascontiguousarray(x))
            return (self._averaging_parts[way] @ dense).numpy()[rows]
        near = self.matrix(way)
        reached = np.unique(near.indices)
        sums = np.repeat(near.sum(axis=1), np.diff(near.indptr))
        near.data = near.data / sums.astype(np.float32)
        return near[:, reached] @ self.graph.x[reached]

    def label_shares(
        self,
        y: NDArray[Any],
        classes: int,
        overall: NDArray[Any] | None = None,
        rows: Rows = EVERY,
        ways: Sequence[Way] | None = None,
    ) -> NDArray[np.float32]:
        """Those of nodes without labelled neighbours, which are all alike."""
        alone = Neighbourhood(np.empty((2, 0), dtype=np.int64), 1, directed=self.directed)
        shares = alone.label_shares(y[:1], classes, overall, ways=ways)
        return np.repeat(shares, len(y[rows]), axis=0)


class BlockInputs(Inputs):
    """One block of a graph to predict on."""

    @classmethod
    def of(cls, model: GraphEstimator, graph: Prepared, group: Group) -> BlockInputs:
        """The block of this process, of a graph that a model is to predict."""
        near = BlockNeighbourhood(graph, group, model.directed_, model.mean_weight_)
        x, directed, overall = graph.features_of(near.nodes), model.directed_, model.overall_
        arcs, unknown = np.empty((2, 0), dtype=np.int64), unknown_targets(model, x.shape[0])
        block = cls(
            x, arcs, unknown, directed=directed, overall=overall, value_labels=model.value_labels_
        )
        vars(block)["neighbourhood"] = near  # instead of that of the arcs
        return block

    def passed(self, network: Any, data: Any) -> Any:
        """What a network in evaluation mode returns for the block's nodes."""
        near = self.neighbourhood
        assert isinstance(near, BlockNeighbourhood)
        block = read_block(
            near.graph, network, near.group, x=data.x, num_nodes=self.nodes, unit=near.unit
        )
        inputs, part = inputs_of(block, near.group, torch.device("cpu"))
        with in_part(part):
            return network(*inputs)
