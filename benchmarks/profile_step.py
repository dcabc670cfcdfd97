"""Where the time of one training step goes, by operation.

    python benchmarks/profile_step.py [--data FOLDER] [--dataset cora] [--model gcn+mmp]
                                      [--members 1] [--device cpu]

Prints the operations that take most of a step (a training step and an evaluation), as shares of
the time spent in operations: their own time on a CPU, the time of their kernels on a GPU.
"""

from __future__ import annotations

import argparse

import torch
from torch.profiler import ProfilerActivity, profile

import memohop
from memohop.training import Job, Member
from memohop.training.population import Population

_WARM_UP, _STEPS, _LINES = 5, 10, 16


def main() -> None:
    """Print one line per operation."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", help="folder with the dataset files")
    parser.add_argument("--dataset", default="cora")
    parser.add_argument("--model", default="gcn+mmp")
    parser.add_argument("--members", type=int, default=1)
    parser.add_argument("--device", default="cpu")
    arguments = parser.parse_args()
    device = torch.device(arguments.device)
    data = memohop.load(arguments.dataset, root=arguments.data, features="row")
    splits = data.train_mask.shape[1]
    members = [Member(split=i % splits, seed=i) for i in range(arguments.members)]
    epochs = _WARM_UP + _STEPS
    job = Job(data=data, model=arguments.model, members=members, epochs=epochs, device=device)
    population = Population.of(job)
    for _ in range(_WARM_UP):
        population.step()
    on_gpu = device.type == "cuda"
    activities = [ProfilerActivity.CUDA] if on_gpu else [ProfilerActivity.CPU]
    with profile(activities=activities) as profiler:
        for _ in range(_STEPS):
            population.step()
    timed = [
        (event.self_device_time_total if on_gpu else event.self_cpu_time_total, event)
        for event in profiler.key_averages()
    ]
    total = sum(time for time, _ in timed)
    count = sum(event.count for _, event in timed) / _STEPS
    print(f"{count:.0f} operations and {total / _STEPS / 1000:.2f} ms per step")
    for time, event in sorted(timed, key=lambda pair: -pair[0])[:_LINES]:
        print(f"{time / total:6.1%} {event.count / _STEPS:7.1f} times  {event.key[:70]}")


if __name__ == "__main__":
    main()
