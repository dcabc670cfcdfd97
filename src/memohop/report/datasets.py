"""The list of datasets, and the facts about one, counted once its files are read."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from rich.table import Table

from memohop.data.datasets.registry import DatasetInfo
from memohop.report.terminal import fact_table, plain_table

if TYPE_CHECKING:  # a listing need not wait for the import of PyTorch
    from memohop.pyg import Data


def listing(infos: Iterable[DatasetInfo]) -> Table:
    """A row for each dataset."""
    counts = ("nodes", "arcs", "features", "classes")
    table = plain_table("dataset", numbers=(*counts, "homophily"))
    table.add_column("metric")
    table.add_column("what it is", overflow="fold")
    for info in infos:
        numbers = [str(getattr(info, name)) for name in counts]
        table.add_row(info.id, *numbers, f"{info.homophily:g}", info.metric, info.description)
    return table


def dataset_info(info: DatasetInfo) -> dict[str, Any]:
    """A flat object for JSON: what the registry says about a dataset."""
    row = asdict(info)
    del row["stem"], row["neighbours"]
    return {"dataset": row.pop("id")} | row | {"files": len(info.files)}


def dataset_row(data: Data, info: DatasetInfo) -> dict[str, Any]:
    """A flat object for JSON: what the graph has, beside what the registry says about it."""
    from memohop.data.check import as_columns

    source, target = data.edge_index
    train, val, test = (mask.sum(dim=0).tolist() for mask in as_columns(data))
    class_sizes = data.y[data.y >= 0].bincount().tolist()
    return {
        "dataset": info.id,
        "description": info.description,
        "nodes": data.num_nodes,
        "arcs": data.num_edges,
        "directed": info.directed,
        "features": data.num_features,
        "classes": len(class_sizes),
        "class_sizes": class_sizes,
        "homophily": float((data.y[source] == data.y[target]).double().mean()),
        "splits": len(train),
        "train_sizes": train,
        "val_sizes": val,
        "test_sizes": test,
        "metric": info.metric,
        "source": info.source,
        "note": info.note,
    }


def dataset_sheet(row: dict[str, Any]) -> Table:
    """The same for people, a line for each fact."""
    arcs = "directed, as published" if row["directed"] else "undirected, each edge both ways"
    return fact_table(
        {
            "dataset": f"{row['dataset']}: {row['description']}",
            "nodes": str(row["nodes"]),
            "arcs": f"{row['arcs']} ({arcs})",
            "features": str(row["features"]),
            "homophily": f"{row['homophily']:.3f} (measured: share of arcs within one class)",
            "classes": f"{row['classes']}, with {_listed(row['class_sizes'])} nodes",
            "splits": str(row["splits"]),
            "  train": _sizes(row["train_sizes"]),
            "  validation": _sizes(row["val_sizes"]),
            "  test": _sizes(row["test_sizes"]),
            "metric": row["metric"],
            "source": row["source"],
            "note": row["note"] or "none",
        }
    )


def _listed(numbers: list[int]) -> str:
    return ", ".join(map(str, numbers))


def _sizes(sizes: list[int]) -> str:
    """A single size if all splits have the same."""
    return f"{sizes[0]} nodes in each" if len(set(sizes)) == 1 else f"{_listed(sizes)} nodes"
