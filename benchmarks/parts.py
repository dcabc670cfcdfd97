"""A graph in parts: how much faster several processes are, and how time grows with the arcs.

    python benchmarks/parts.py speed --arcs 1e8 --processes 1,2,4,8
    python benchmarks/parts.py growth --arcs 1e6,3e6,1e7,3e7,1e8 --processes 8

Trains ``gcn+mmp`` (64 features, 64 wide, two rounds, dropout) on a graph made on the spot, each
process on its block, connected by gloo. Most neighbours of a node are near it in the numbering, as
after a partition; the share of far ones is an option. An epoch is a training step and an
evaluation. The share of communication includes waiting for slower processes. The last loss is
printed as a check: it is the same for any number of processes. Needs PyTorch, NumPy and SciPy.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
import torch.multiprocessing as mp

from memohop.parts.block import Block
from memohop.parts.graph import Rows
from memohop.parts.group import Group
from memohop.parts.worker import Job, Worker
from memohop.training.member import Member
from memohop.training.rules import Rules

CHANNELS, CLASSES, CHUNK = 64, 5, 1 << 15
LABELLED = 20  # every so many nodes have a label


class Shape(NamedTuple):
    """A graph to be made."""

    arcs: int
    degree: int
    far: float
    window: int

    @property
    def nodes(self) -> int:
        """How many nodes it has."""
        return self.arcs // self.degree


class Timing(NamedTuple):
    """What one run took."""

    seconds: float
    communication: float
    sent: float
    loss: float


def make_block(shape: Shape, number: int, blocks: int) -> Block:
    """A block's rows alone: the same graph however many blocks there are."""
    starts = tuple(shape.nodes * block // blocks for block in range(blocks + 1))
    first, last = starts[number], starts[number + 1]
    columns, features = [], []
    for chunk in range(first // CHUNK, -(-last // CHUNK)):
        random = np.random.default_rng([7, chunk])
        node = np.arange(chunk * CHUNK, (chunk + 1) * CHUNK)
        size = (CHUNK, shape.degree)
        near = node[:, None] + random.integers(-shape.window, shape.window, size)
        anywhere = random.integers(0, shape.nodes, size)
        col = np.where(random.random(size, dtype=np.float32) < shape.far, anywhere, near)
        x = random.standard_normal((CHUNK, CHANNELS), dtype=np.float32)
        here = slice(max(first - node[0], 0), last - node[0])
        columns.append(np.sort(col[here] % shape.nodes, axis=1))
        features.append(x[here])
    nodes = torch.arange(first, last)
    labelled = torch.arange(0, shape.nodes, LABELLED)
    mine = labelled[(labelled >= first) & (labelled < last)]
    parts = (labelled // LABELLED) % 3
    return Block(
        number=number,
        starts=starts,
        nodes=nodes,
        x=torch.from_numpy(np.concatenate(features)),
        graph=Rows(
            row=torch.arange(last - first).repeat_interleave(shape.degree),
            col=torch.from_numpy(np.concatenate(columns).reshape(-1)),
            weight=torch.ones((last - first) * shape.degree),
            entry=torch.arange(first * shape.degree, last * shape.degree),
            entries=shape.nodes * shape.degree,
            direction="out",
            self_loops="keep",
            norm="row",
        ),
        labelled=mine - first,
        at=mine // LABELLED,
        y=labelled * 2654435761 // 65536 % CLASSES,
        masks=torch.stack([(parts == part).float() for part in range(3)])[None],
        metric="accuracy",
        digest="made on the spot",
    )


class Unchecked(Worker):
    """A worker that does not ask how much RAM there is, which takes psutil."""

    def _check_size(self, block: Block, device: torch.device) -> None:
        pass


def work(
    rank: int, processes: int, meeting: str, shape: Shape, epochs: int, threads: int, answers: str
) -> None:
    """One process."""
    torch.set_num_threads(threads)
    group = Group.join("cpu", init_method=meeting, rank=rank, world_size=processes)
    options = {"in_channels": CHANNELS, "out_channels": CLASSES, "direction": "out"}
    job = Job(
        model="gcn+mmp",
        options=options,
        members=[Member(lam=0.1)],
        epochs=epochs + 1,
        patience=None,
        rules=Rules(),
        keep_models=False,
        device="cpu",
        memory=None,
        at_once=1,
    )
    worker = Unchecked(job, make_block(shape, rank, processes), group)
    worker.start(0)
    worker.advance(1)  # what is made once
    group.gather(None)
    before, sent, start = group.seconds, group.sent, time.perf_counter()
    worker.advance(epochs)
    seconds = (time.perf_counter() - start) / epochs
    each = group.gather((group.seconds - before) / epochs)
    volume = sum(group.gather((group.sent - sent) / epochs))
    if rank == 0:
        loss = float(worker.results()[0].loss_curve[-1])
        np.save(answers, [seconds, sum(each) / processes / seconds, volume / 1e9, loss])
    group.leave()


def measure(shape: Shape, processes: int, epochs: int, threads: int) -> Timing:
    """Seconds per epoch, the share of communication in it, gigabytes sent, and the last loss."""
    with tempfile.TemporaryDirectory() as folder:
        meeting, answers = Path(folder, "meeting").as_uri(), str(Path(folder, "answers.npy"))
        given = (processes, meeting, shape, epochs, threads, answers)
        mp.spawn(work, given, nprocs=processes)
        return Timing(*np.load(answers).tolist())


def speed(arguments: argparse.Namespace) -> None:
    """The same graph for several numbers of processes."""
    shape = _shape(arguments, arguments.arcs[0])
    print(
        f"{shape.nodes:,} nodes, {shape.arcs:,} arcs, {shape.far:.0%} of them far, "
        f"{arguments.threads} thread(s) each, torch {torch.__version__}"
    )
    heads = ("processes", "s/epoch", "speed-up", "communication", "GB sent", "loss")
    print(" ".join(f"{head:>13}" for head in heads))
    alone = None
    for processes in arguments.processes:
        found = measure(shape, processes, arguments.epochs, arguments.threads)
        alone = alone or found.seconds * processes  # the first count is taken to scale perfectly
        print(
            f"{processes:13} {found.seconds:13.3f} {alone / found.seconds:12.2f}x "
            f"{found.communication:13.1%} {found.sent:13.2f} {found.loss:13.6f}",
            flush=True,
        )


def growth(arguments: argparse.Namespace) -> None:
    """The same processes for several numbers of arcs."""
    (processes,) = arguments.processes
    print(f"{processes} processes, {arguments.threads} thread(s) each, torch {torch.__version__}")
    print(f"{'arcs':>12} {'s/epoch':>9} {'ns/arc':>8} {'communication':>14}")
    seconds = []
    for arcs in arguments.arcs:
        found = measure(_shape(arguments, arcs), processes, arguments.epochs, arguments.threads)
        seconds.append(found.seconds)
        per_arc = found.seconds / arcs * 1e9
        print(
            f"{arcs:12,} {found.seconds:9.3f} {per_arc:8.2f} {found.communication:14.1%}",
            flush=True,
        )
    exponent = np.polyfit(np.log(arguments.arcs), np.log(seconds), 1)[0]
    slope = np.polyfit(arguments.arcs, seconds, 1)[0]
    print(f"time grows as arcs^{exponent:.3f}; fitted slope {slope * 1e9:.2f} ns per arc")


def _shape(arguments: argparse.Namespace, arcs: int) -> Shape:
    return Shape(arcs, arguments.degree, arguments.far, arguments.window)


def _numbers(text: str) -> list[int]:
    return [int(float(number)) for number in text.split(",")]


def main() -> None:
    """Print one line per run."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", choices=("speed", "growth"))
    parser.add_argument("--arcs", type=_numbers, default="1e8")
    parser.add_argument("--processes", type=_numbers, default="1,2,4,8")
    parser.add_argument("--epochs", type=int, default=3, help="measured, after one that is not")
    parser.add_argument("--threads", type=int, default=1, help="of each process")
    parser.add_argument("--degree", type=int, default=40)
    parser.add_argument("--far", type=float, default=0.02, help="share of arcs that go anywhere")
    parser.add_argument("--window", type=int, default=1000, help="how far near neighbours are")
    arguments = parser.parse_args()
    {"speed": speed, "growth": growth}[arguments.what](arguments)


if __name__ == "__main__":
    main()
