"""How large a graph one device trains, and how fast: seconds and bytes of an epoch.

    python benchmarks/one_device.py --arcs 1e8,3e8,1e9 --device cuda
    python benchmarks/one_device.py --arcs 1e6 --device cpu
    python benchmarks/one_device.py --arcs 1e8 --device cuda --inside

Trains one member of ``gcn+mmp`` (64 features, 64 wide, two rounds, dropout, five classes, half of
the nodes labelled) on a random undirected graph made on the device, with 40 arcs a node. An epoch
is a training step and an evaluation, as the trainer takes them; the median of some is printed. The
peak is of all tensors on a GPU, and of those of a step on a CPU; the graph's bytes are part of the
former. Each size is a process of its own. The loss after the last epoch is a check: it is nearly
the same in all lines of one size. The ways that take least come first: one that runs out of memory
leaves little to the next.

``--inside`` looks into an epoch instead: the bytes that an evaluation alone and the whole epoch
take beside what is held, and on a GPU the kernels that take the time.
"""

from __future__ import annotations

import argparse
import gc
import json
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import torch

from memohop.nn import Graph, Pattern
from memohop.training import Job, Member
from memohop.training.device import captured, peak_bytes
from memohop.training.metrics import METRICS
from memohop.training.objective import Classification
from memohop.training.population import Population
from memohop.training.task import Task

CHANNELS, CLASSES, DEGREE = 64, 5, 40
WARM_UP, EPOCHS = 4, 5  # the capture of a CUDA graph is part of the warm-up
WAYS: list[dict[str, Any]] = [
    {"states": states, "recompute": recompute}
    for states in ("bfloat16", None)
    for recompute in (True, False)
]
HEAD = (
    f"{'arcs':>13} {'nodes':>11} {'states':>9} {'recompute':>9} "
    f"{'s/epoch':>9} {'peak GiB':>9} {'graph GiB':>10} {'loss':>9}"
)


def main() -> None:
    """Print a line for each size and way, and all of them again as a table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--arcs", default="1e6")
    parser.add_argument("--device", default="cpu", choices=["cpu", "cuda"])
    parser.add_argument("--inside", action="store_true")
    parser.add_argument("--one", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.inside:
        for arcs in arguments.arcs.split(","):
            look_inside(int(float(arcs)), torch.device(arguments.device))
        return
    if arguments.one:
        for row in measured(int(float(arguments.arcs)), torch.device(arguments.device)):
            print(json.dumps(row), flush=True)
        return
    lines = []
    print(HEAD, flush=True)
    for arcs in arguments.arcs.split(","):
        command = [sys.executable, __file__, "--one", "--arcs", arcs, "--device", arguments.device]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
            for answer in process.stdout or ():
                lines.append(line(json.loads(answer)))
                print(lines[-1], flush=True)
        if process.returncode:
            lines.append(f"{int(float(arcs)):13,}  ended with {process.returncode}")
            print(lines[-1], flush=True)
    print("", torch.__version__, name_of(torch.device(arguments.device)), HEAD, *lines, sep="\n")


def measured(arcs: int, device: torch.device) -> Iterator[dict[str, Any]]:
    """The figures of one graph, way by way."""
    start = time.perf_counter()
    task = make_task(arcs // DEGREE, arcs // 2, device)
    graph = task.inputs[1]
    wait(device)
    facts = {"arcs": len(graph.pattern), "nodes": graph.num_nodes}
    print(f"made in {time.perf_counter() - start:.1f} s", file=sys.stderr, flush=True)
    facts["graph"] = bytes_of(graph)
    for way in WAYS:
        row = facts | {"states": way["states"] or "float32", "recompute": way["recompute"]}
        try:
            yield row | epochs_of(task, way, device)
        except torch.OutOfMemoryError:
            yield row
        gc.collect()
        if device.type == "cuda":
            torch.cuda.empty_cache()


def epochs_of(task: Task, way: dict[str, Any], device: torch.device) -> dict[str, float]:
    """Seconds and bytes of the epochs of one way, and the last loss."""
    features = task.inputs[0]
    if device.type == "cuda":
        torch.cuda.reset_peak_memory_stats(device)
    population = make_population(task, way)
    taken, step = [], captured(population.step, device)
    for _ in range(WARM_UP + EPOCHS):
        wait(device)
        start = time.perf_counter()
        step()
        wait(device)
        taken.append(time.perf_counter() - start)
    loss = float(population.curves[0, 0, -1])
    if device.type == "cuda":
        peak = torch.cuda.max_memory_allocated(device)
        if task.inputs[0] is not features:  # the other ways' copy
            peak -= features.numel() * features.element_size()
    else:
        peak = peak_bytes(lambda: Population.step(again(population)))
    return {"seconds": statistics.median(taken[WARM_UP:]), "peak": peak, "loss": loss}


def look_inside(arcs: int, device: torch.device) -> None:
    """Print the bytes of an evaluation and of an epoch, way by way, and the longest kernels."""
    task = make_task(arcs // DEGREE, arcs // 2, device)
    for way in WAYS:
        population = make_population(task, way)
        population.step()
        evaluation, epoch = (
            bytes_beside(call, device) / 2**30 for call in (population._logits, population.step)
        )
        print(f"{way}: evaluation {evaluation:.2f} GiB, epoch {epoch:.2f} GiB", flush=True)
        if device.type == "cuda":
            with torch.profiler.profile(acc_events=True) as profile:
                population.step()
                wait(device)
            print(profile.key_averages().table(sort_by="device_time_total", row_limit=16))


def bytes_beside(call: Callable[[], object], device: torch.device) -> int:
    """The most bytes of tensors during the call, beside those that were held before it."""
    if device.type != "cuda":
        return peak_bytes(call)
    held = torch.cuda.memory_allocated(device)
    torch.cuda.reset_peak_memory_stats(device)
    call()
    return torch.cuda.max_memory_allocated(device) - held


def make_population(task: Task, way: dict[str, Any]) -> Population:
    """The member that is trained."""
    if way["states"]:
        features, graph = task.inputs
        task = replace(task, inputs=(features.to(torch.bfloat16), graph))
    options = {"in_channels": CHANNELS, "out_channels": CLASSES}
    epochs, members = WARM_UP + EPOCHS, [Member(lr=0.03)]
    job = Job(data=None, model="gcn+mmp", options=options, members=members, epochs=epochs, **way)
    return Population(task, job)


def again(population: Population) -> Population:
    """The population, with one more epoch to go."""
    population.epoch -= 1
    return population


def make_task(nodes: int, edges: int, device: torch.device) -> Task:
    """Random features, labels and edges."""
    torch.manual_seed(7)
    graph = make_graph(nodes, edges, device)
    features = torch.randn(nodes, CHANNELS, device=device)
    y = features[:, :CLASSES].argmax(1)
    part = torch.randint(6, (nodes,), device=device)
    masks = torch.stack([(part == number).float() for number in range(3)])[None]
    return Task((features, graph), y, masks, Classification(METRICS["accuracy"]))


def make_graph(nodes: int, edges: int, device: torch.device) -> Graph:
    """Edges between random nodes, without loops or doubles."""
    source, target = (torch.randint(nodes, (edges,), device=device) for _ in range(2))
    keys = torch.cat([source * nodes + target, target * nodes + source])
    del source, target
    keys = torch.unique(keys)
    keys = keys[keys // nodes != keys % nodes]
    starts = torch.arange(nodes + 1, device=device) * nodes
    pointers = torch.searchsorted(keys, starts, out_int32=True)
    columns = keys.remainder_(nodes).int()
    del keys
    empty = torch.empty(2, 0, dtype=torch.int64, device=device)
    policies = {"direction": "undirected", "self_loops": "remove", "norm": "row"}
    like = Graph(empty, nodes, **policies)
    pattern = Pattern.symmetric(pointers, columns)
    weight = torch.ones(1, device=device).expand(len(pattern))
    return like._like(pattern, weight, direction="undirected")


def bytes_of(graph: Graph) -> int:
    """Of the graph's tensors: pointers and columns, and values of both directions."""
    pattern, matrix = graph.pattern, graph.matrix
    tensors = (pattern.pointers, pattern.col, matrix.values, matrix.transpose.values)
    return sum(tensor.numel() * tensor.element_size() for tensor in tensors)


def wait(device: torch.device) -> None:
    """Until the device has done its work."""
    if device.type == "cuda":
        torch.cuda.synchronize(device)


def name_of(device: torch.device) -> str:
    """What it is."""
    if device.type == "cuda":
        return torch.cuda.get_device_name(device)
    return f"{torch.get_num_threads()} threads"


def line(row: dict[str, Any]) -> str:
    """A line of the table."""
    start = (
        f"{row['arcs']:13,} {row['nodes']:11,} {row['states']:>9} "
        f"{'yes' if row['recompute'] else 'no':>9} "
    )
    if "seconds" not in row:
        return start + "out of memory"
    peak, graph = row["peak"] / 2**30, row["graph"] / 2**30
    return start + f"{row['seconds']:9.3f} {peak:9.2f} {graph:10.2f} {row['loss']:9.6f}"


if __name__ == "__main__":
    main()
