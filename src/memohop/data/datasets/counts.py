"""What a file holds against what was published, where no digest can tell."""

from __future__ import annotations

from pathlib import Path

from memohop.data.datasets.fetch import address
from memohop.data.datasets.registry import DatasetInfo
from memohop.errors import DataError
from memohop.pyg import Data

_ROUNDED = 0.005 + 1e-9  # how far off a figure of two digits may be


def check_counts(data: Data, info: DatasetInfo, folder: Path) -> None:
    """A :class:`DataError` that names every difference, if this is not the published graph.

    Numbers of nodes, arcs, features, classes and splits must be equal. Homophily, and the test
    nodes for each training node of every split, must agree to two digits.

    Args:
        data: The graph with its published splits.
        info: What is known about it.
        folder: The folder that has its files, for the error.
    """
    source, target = data.edge_index
    counts = {
        "nodes": (data.num_nodes, info.nodes),
        "arcs": (data.num_edges, info.arcs),
        "features": (data.num_features, info.features),
        "classes": (len(data.y.unique()), info.classes),
        "splits": (data.train_mask.shape[1], info.splits),
    }
    differences = [
        f"{found} {name} and not {known}"
        for name, (found, known) in counts.items()
        if found != known
    ]
    homophily = float((data.y[source] == data.y[target]).double().mean())
    if not abs(homophily - info.homophily) <= _ROUNDED:
        differences.append(f"homophily {homophily:.3f} and not {info.homophily:.2f}")
    ratios = data.test_mask.sum(dim=0).double() / data.train_mask.sum(dim=0)
    for split, ratio in enumerate(ratios.tolist()):
        if not abs(ratio - info.test_to_train) <= _ROUNDED:
            differences.append(
                f"{ratio:.3f} test nodes for each training node of split {split} and not "
                f"{info.test_to_train:.2f}"
            )
            break
    if differences:
        raise DataError(
            f"{folder / info.files[0]} is not the published {info.id}: it has "
            f"{', '.join(differences)}; copy it again from {address(info.files[0])}"
        )
