"""What the gates of a memory network do where neighbours agree, and where they do not.

The measured means are a small file beside the results. Reading it needs no PyTorch.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, ClassVar

import msgspec
import numpy as np
from msgspec import Meta
from numpy.typing import NDArray

from memohop.data.audit import homophily_bins, local_homophily
from memohop.outputs import write_whole
from study.runs.results import Name, SavedResults, Source, Text

if TYPE_CHECKING:
    from torch import Tensor

    from memohop.training import Job

_Share = Annotated[float, Meta(ge=0, le=1)]


class GateBin(msgspec.Struct, frozen=True):
    """Nodes of similar local homophily: the share of a node's neighbours that are of its class.

    Attributes:
        kept: Mean over rounds, nodes and splits of the gate on a node's own state.
        absorbed: The same of the gate on the message into the state.
        passed_on: The same of the gate on the message into the memory that neighbours read, without
            the last round, after which nothing is read.
        kept_std, absorbed_std, passed_on_std: Sample standard deviation over the splits (ddof=1).
    """

    low: _Share
    high: _Share
    nodes: Annotated[int, Meta(ge=1)]
    kept: _Share
    absorbed: _Share
    passed_on: _Share
    kept_std: _Share
    absorbed_std: _Share
    passed_on_std: _Share


class GateCurve(msgspec.Struct, frozen=True):
    """One model on one dataset, trained with weight ``lam`` of the decoupling loss on each split.

    The bins rise in local homophily; those without nodes are left out.
    """

    protocol: Name
    dataset: Name
    model: Name
    lam: Annotated[float, Meta(ge=0)]
    splits: Annotated[int, Meta(ge=1)]
    bins: tuple[GateBin, ...]


class Gates(SavedResults, frozen=True):
    """All curves, where they were made, and the command that makes them."""

    what: ClassVar[str] = "gates"
    remedy: ClassVar[str] = "write it anew with python -m study bench gates"

    command: Text
    source: Source
    curves: tuple[GateCurve, ...]

    def save(self, path: Path) -> None:
        """Write the file, whole or not at all."""
        write_whole(path, msgspec.json.format(msgspec.json.encode(self), indent=1) + b"\n")


def measure_gates(
    job: Job, *, protocol: str, root: Path | None = None, device: str = "cpu"
) -> GateCurve:
    """Train one network with memory for each split, and read its gates at every node.

    ``protocol`` is the name of the one that trains so.
    """
    import torch

    from memohop.data.arcs import adjacency
    from memohop.networks import build
    from memohop.networks.memory import MemoryNetwork
    from memohop.networks.registry import entry
    from memohop.training.trainer import train

    data, splits = job.data.load(root), range(job.data.splits)
    members = [replace(job.member, split=split, seed=0) for split in splits]
    results = train(replace(job, data=data, members=members, device=device, keep_models=True))
    classes = int(data.y.max()) + 1
    network = build(str(job.model), data.num_features, classes, **job.options).eval()
    assert isinstance(network, MemoryNetwork)
    graph = network.prepare(data.edge_index, data.num_nodes)
    gates = []
    for result in results:
        assert result.state is not None
        network.load_state_dict(result.state)
        with torch.no_grad():
            gates.append(network.gates(data.x, graph))
    direction = (entry(str(job.model)).options() | dict(job.options))["direction"]
    links = adjacency(data.edge_index, len(data.y), direction=direction, self_loops="remove")
    return GateCurve(
        protocol,
        job.data.name,
        str(job.model),
        lam=job.member.lam,
        splits=len(splits),
        bins=by_homophily(torch.stack(gates), local_homophily(links, data.y.numpy())),
    )


def by_homophily(gates: Tensor, homophily: NDArray[np.float64]) -> tuple[GateBin, ...]:
    """Gates ``[splits, rounds, nodes, 3]`` in bins of local homophily."""
    import torch

    kept, absorbed, passed_on = gates.unbind(-1)
    per_node = [kept.mean(1), absorbed.mean(1), passed_on[:, :-1].mean(1)]  # [splits, nodes]
    bins = []
    for low, high, inside in homophily_bins(homophily):
        means = [gate[:, torch.from_numpy(inside)].mean(-1) for gate in per_node]
        bins.append(
            GateBin(
                low,
                high,
                int(inside.sum()),
                *(round(float(mean.mean()), 5) for mean in means),
                *(round(float(mean.std()), 5) if len(mean) > 1 else 0.0 for mean in means),
            )
        )
    return tuple(bins)
