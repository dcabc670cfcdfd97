"""A graph in parts: how much faster several processes are, and how time grows with the arcs.

    python benchmarks/parts.py speed --arcs 1e8 --processes 8,4,2,1 --apart
    python benchmarks/parts.py growth --arcs 1e6,3e6,1e7,3e7,1e8 --processes 1
    python benchmarks/parts.py both --arcs 1e6,3e6,1e7,3e7,1e8 --processes 8,4,2,1

Trains ``gcn+mmp`` (64 features, 64 wide, two rounds, dropout) on a graph made on the spot, each
process on its block, connected by gloo. Most neighbours of a node are near it in the numbering, as
after a partition; the share of far ones is an option. An epoch is a training step and an
evaluation. Every process computes with the same number of threads (``--threads``), however many
processes there are; only what is made once, before the clock starts, is made with all cores. The
share of communication includes waiting for slower processes. The last loss is printed as a check:
it is the same for any number of processes. ``both`` measures the speed on the largest graph, and
the growth with the fewest processes.

With ``--apart``, the speed has a control. The column ``apart`` tells how long an epoch takes if the
same number of processes run side by side without sending anything, each on a graph of its own with
an equal share of the arcs; it is that of the slowest. If it stays above the time of one process
divided by their number, they compete for the machine, for example for the bandwidth of its RAM.
What ``s/epoch`` is above it comes from the graph being in parts.

Needs PyTorch, NumPy and SciPy.
"""

from __future__ import annotations

import argparse
import json
import os
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cache, partial
from multiprocessing.synchronize import Barrier
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
import torch.multiprocessing as mp
from scipy import sparse

from memohop.parts.block import Block, BlockRows, Targets
from memohop.parts.halo import Group
from memohop.parts.worker import Share, Worker
from memohop.ram import keep_freed_ram
from memohop.training import Job, Member
from memohop.training.metrics import METRICS
from memohop.training.objective import Classification

CHANNELS, CLASSES, CHUNK = 64, 5, 1 << 15
LABELLED = 20  # every so many nodes have a label
LONG = 2 * 10**7  # arcs from which on an epoch is long enough to be measured alone
CORES = os.cpu_count() or 1


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


class Run(NamedTuple):
    """What to measure: processes that share a graph, or that have one each."""

    shape: Shape
    processes: int
    epochs: int
    threads: int
    apart: bool


class Timing(NamedTuple):
    """What one run took: seconds of an epoch, share of communication in it, gigabytes sent."""

    seconds: float
    communication: float
    sent: float
    loss: float
    set_up: float


def make_block(shape: Shape, number: int, blocks: int) -> Block:
    """A block's rows alone: the same graph however many blocks there are."""
    starts = tuple(shape.nodes * block // blocks for block in range(blocks + 1))
    first, last = starts[number], starts[number + 1]
    chunks = range(first // CHUNK, -(-last // CHUNK))
    with ThreadPoolExecutor(max(1, CORES // blocks)) as threads:
        made = threads.map(partial(_make_rows, shape, first, last), chunks)
        columns, features = zip(*made, strict=True)
    nodes = torch.arange(first, last)
    arcs = (last - first) * shape.degree
    matrix = sparse.csr_array(
        (
            np.ones(arcs, dtype=np.float32),
            np.concatenate(columns).reshape(-1),
            np.arange(0, arcs + 1, shape.degree),
        ),
        shape=(last - first, shape.nodes),
    )
    return Block(
        starts=starts,
        nodes=nodes,
        x=torch.from_numpy(np.concatenate(features)),
        graph=BlockRows(
            matrix,
            places=torch.arange(first * shape.degree, last * shape.degree),
            total=shape.nodes * shape.degree,
            policies={"direction": "out", "self_loops": "keep", "norm": "row"},
        ),
        digest="made on the spot",
    )


def make_targets(shape: Shape) -> Targets:
    """Labels and masks of the whole graph."""
    labelled = torch.arange(0, shape.nodes, LABELLED)
    parts = (labelled // LABELLED) % 3
    return Targets(
        nodes=labelled,
        y=labelled * 2654435761 // 65536 % CLASSES,
        masks=torch.stack([(parts == part).float() for part in range(3)])[None],
        objective=Classification(METRICS["accuracy"]),
    )


def _make_rows(shape: Shape, first: int, last: int, chunk: int) -> tuple[np.ndarray, np.ndarray]:
    random = np.random.default_rng([7, chunk])
    node = np.arange(chunk * CHUNK, (chunk + 1) * CHUNK)
    size = (CHUNK, shape.degree)
    near = node[:, None] + random.integers(-shape.window, shape.window, size)
    anywhere = random.integers(0, shape.nodes, size)
    col = np.where(random.random(size, dtype=np.float32) < shape.far, anywhere, near)
    x = random.standard_normal((CHUNK, CHANNELS), dtype=np.float32)
    here = slice(max(first - node[0], 0), last - node[0])
    return np.sort(col[here] % shape.nodes, axis=1), x[here]


class MeasuredGroup(Group):
    """Measures the time that is spent in communication, and counts the bytes that are sent."""

    def __init__(self) -> None:
        super().__init__()
        self.seconds, self.sent = 0.0, 0

    def swap(self, rows: torch.Tensor, give: list[int], take: list[int]) -> torch.Tensor:
        """See :meth:`Group.swap`."""
        return self._measured(rows, super().swap, rows, give, take)

    def total(self, values: torch.Tensor) -> torch.Tensor:
        """See :meth:`Group.total`."""
        return self._measured(values, super().total, values)

    def _measured(
        self, sent: torch.Tensor, send: Callable[..., torch.Tensor], *given: object
    ) -> torch.Tensor:
        start = time.perf_counter()
        came = send(*given)
        if self.size > 1:
            self.seconds += time.perf_counter() - start
            self.sent += sent.numel() * sent.element_size()
        return came


class Unchecked(Worker):
    """A worker that does not ask how much RAM there is, which takes psutil."""

    def _check_size(self, block: Block, device: torch.device) -> None:
        pass


def work(number: int, run: Run, folder: str, ready: Barrier) -> None:
    """One process; the first of each group leaves its timing in the folder."""
    began = time.perf_counter()
    keep_freed_ram()  # as the workers of ``memohop train`` do
    torch.set_num_threads(max(1, CORES // run.processes))
    shape, rank, size, meeting = run.shape, number, run.processes, Path(folder, "meeting")
    if run.apart:
        shape, rank, size = shape._replace(arcs=shape.arcs // size), 0, 1
        meeting = Path(folder, f"meeting {number}")
    Group.join("cpu", init_method=f"file://{meeting}", rank=rank, world_size=size)
    group = MeasuredGroup()
    options = {"in_channels": CHANNELS, "out_channels": CLASSES, "direction": "out"}
    job = Job(
        data=None,
        model="gcn+mmp",
        options=options,
        members=[Member(lam=0.1)],
        epochs=run.epochs + 1,
        at_once=1,
    )
    block, targets = make_block(shape, rank, size), make_targets(shape)
    worker = Unchecked(Share(job, block, targets, {}, torch.float32), group)
    torch.set_num_threads(run.threads)
    population = worker.population(0)
    worker.advance(population, 1)  # what is made once
    ready.wait()
    set_up = time.perf_counter() - began
    before, sent, start = group.seconds, group.sent, time.perf_counter()
    worker.advance(population, run.epochs)
    seconds = (time.perf_counter() - start) / run.epochs
    each = group.gather((group.seconds - before) / run.epochs)
    volume = sum(group.gather((group.sent - sent) / run.epochs))
    if rank == 0:
        loss = float(population.results([0])[0].loss_curve[-1])
        timing = Timing(seconds, sum(each) / size / seconds, volume / 1e9, loss, set_up)
        Path(folder, f"{number}.json").write_text(json.dumps(timing))
    group.leave()


@cache
def measure(run: Run, limit: float) -> Timing | None:
    """The slowest group of a run; None if one fails or takes longer than the limit."""
    with tempfile.TemporaryDirectory() as folder:
        ready = mp.get_context("spawn").Barrier(run.processes)
        running = mp.spawn(work, (run, folder, ready), nprocs=run.processes, join=False)
        end = time.monotonic() + limit
        try:
            while time.monotonic() < end:
                if running.join(timeout=1):
                    answers = Path(folder).glob("*.json")
                    return max(Timing(*json.loads(answer.read_text())) for answer in answers)
            print(f"no result of {run.processes} process(es) within {limit:g} s", flush=True)
        except (mp.ProcessRaisedException, mp.ProcessExitedException) as error:
            print(f"{run.processes} process(es) failed: {error}", flush=True)
        finally:
            for process in running.processes:
                process.kill()
    return None


def speed(arguments: argparse.Namespace) -> None:
    """The same graph for several numbers of processes."""
    shape = _shape(arguments, max(arguments.arcs))
    print(
        f"{shape.nodes:,} nodes, {shape.arcs:,} arcs, {shape.far:.0%} of them far; "
        f"{arguments.threads} thread(s) for each process, {CORES} cores, torch {torch.__version__}"
    )
    timings = {
        processes: _measure(arguments, shape, processes) for processes in arguments.processes
    }
    measured = {processes: timing for processes, timing in sorted(timings.items()) if timing}
    if not measured:
        return
    fewest = min(measured)
    alone = measured[fewest].seconds * fewest  # the fewest are taken to scale perfectly
    lines = [("processes", "s/epoch", "speed-up", "communication", "GB sent", "loss")]
    for processes, timing in measured.items():
        lines.append(
            (
                f"{processes}",
                f"{timing.seconds:.3f}",
                f"{alone / timing.seconds:.2f}x",
                f"{timing.communication:.1%}",
                f"{timing.sent:.2f}",
                f"{timing.loss:.6f}",
            )
        )
    if arguments.apart:
        controls = [
            _measure(arguments, shape, processes, apart=True) if processes > 1 else timing
            for processes, timing in measured.items()
        ]
        column = ("apart", *(f"{timing.seconds:.3f}" if timing else "-" for timing in controls))
        lines = [(*line, cell) for line, cell in zip(lines, column, strict=True)]
    for line in lines:
        print(" ".join(f"{cell:>13}" for cell in line))


def growth(arguments: argparse.Namespace) -> None:
    """The same processes for several numbers of arcs."""
    processes = min(arguments.processes)
    timings = {
        arcs: _measure(arguments, _shape(arguments, arcs), processes)
        for arcs in sorted(arguments.arcs)
    }
    measured = {arcs: timing for arcs, timing in timings.items() if timing}
    print(
        f"{processes} process(es), {arguments.threads} thread(s) each, torch {torch.__version__}\n"
        f"{'arcs':>12} {'s/epoch':>9} {'ns/arc':>8} {'communication':>14}"
    )
    for arcs, timing in measured.items():
        per_arc = timing.seconds / arcs * 1e9
        print(
            f"{arcs:12,} {timing.seconds:9.3f} {per_arc:8.2f} {timing.communication:14.1%}",
        )
    if len(measured) < 2:
        return
    arcs, seconds = list(measured), [timing.seconds for timing in measured.values()]
    exponent = np.polyfit(np.log(arcs), np.log(seconds), 1)[0]
    slope = np.polyfit(arcs, seconds, 1)[0]
    print(f"time grows as arcs^{exponent:.3f}; fitted slope {slope * 1e9:.2f} ns per arc")


def both(arguments: argparse.Namespace) -> None:
    """The two of them; what they have in common is measured once."""
    speed(arguments)
    growth(arguments)


def _measure(
    arguments: argparse.Namespace, shape: Shape, processes: int, apart: bool = False
) -> Timing | None:
    """A run of as many epochs as were asked for, and more of a graph on which they are short."""
    epochs = max(arguments.epochs, min(20, LONG // shape.arcs))
    run = Run(shape, processes, epochs, arguments.threads, apart)
    timing = measure(run, arguments.limit)
    if timing:
        print(
            f"# {shape.arcs:,} arcs, {processes} process(es){', apart' if apart else ''}: "
            f"{timing.seconds:.3f} s/epoch over {epochs} epochs, after {timing.set_up:.0f} s",
            flush=True,
        )
    return timing


def _shape(arguments: argparse.Namespace, arcs: int) -> Shape:
    return Shape(arcs, arguments.degree, arguments.far, arguments.window)


def _numbers(text: str) -> list[int]:
    return [int(float(number)) for number in text.split(",")]


def main() -> None:
    """Print the tables."""
    parts: dict[str, Callable[[argparse.Namespace], None]]
    parts = {"speed": speed, "growth": growth, "both": both}
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", choices=parts)
    parser.add_argument("--arcs", type=_numbers, default="1e8")
    parser.add_argument("--processes", type=_numbers, default="8,4,2,1")
    parser.add_argument("--epochs", type=int, default=2, help="measured, after one that is not")
    parser.add_argument("--threads", type=int, default=1, help="of each process")
    parser.add_argument("--degree", type=int, default=40)
    parser.add_argument("--far", type=float, default=0.02, help="share of arcs that go anywhere")
    parser.add_argument("--window", type=int, default=1000, help="how far near neighbours are")
    parser.add_argument(
        "--apart", action="store_true", help="measure processes that do not share a graph, too"
    )
    parser.add_argument("--limit", type=float, default=600, help="seconds for one run")
    arguments = parser.parse_args()
    parts[arguments.what](arguments)


if __name__ == "__main__":
    main()
