"""The facts about a dataset, counted once its files are read."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from memohop.data.check import as_columns
from memohop.data.datasets.registry import DatasetInfo
from memohop.pyg import Data


@dataclass(frozen=True)
class DatasetFacts:
    """What the graph itself has, beside what the registry says about it.

    Attributes:
        info: What the registry says.
        nodes: Number of nodes.
        arcs: Number of columns of `edge_index`.
        features: Number of feature columns.
        homophily: Share of the arcs whose two ends have the same class.
        class_sizes: Number of nodes of each class.
        train: Number of training nodes of each split.
        val: Number of validation nodes of each split.
        test: Number of test nodes of each split.
    """

    info: DatasetInfo
    nodes: int
    arcs: int
    features: int
    homophily: float
    class_sizes: tuple[int, ...]
    train: tuple[int, ...]
    val: tuple[int, ...]
    test: tuple[int, ...]

    def row(self) -> dict[str, Any]:
        """A flat object for JSON."""
        return {
            "dataset": self.info.id,
            "description": self.info.description,
            "nodes": self.nodes,
            "arcs": self.arcs,
            "directed": self.info.directed,
            "features": self.features,
            "classes": len(self.class_sizes),
            "class_sizes": self.class_sizes,
            "homophily": self.homophily,
            "splits": len(self.train),
            "train_sizes": self.train,
            "val_sizes": self.val,
            "test_sizes": self.test,
            "metric": self.info.metric,
            "source": self.info.source,
            "note": self.info.note,
        }


def dataset_facts(data: Data, info: DatasetInfo) -> DatasetFacts:
    """Count them."""
    source, target = data.edge_index
    train, val, test = (tuple(mask.sum(dim=0).tolist()) for mask in as_columns(data))
    return DatasetFacts(
        info=info,
        nodes=data.num_nodes,
        arcs=data.num_edges,
        features=data.num_features,
        homophily=float((data.y[source] == data.y[target]).double().mean()),
        class_sizes=tuple(data.y[data.y >= 0].bincount().tolist()),
        train=train,
        val=val,
        test=test,
    )
