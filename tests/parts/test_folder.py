"""Blocks of a prepared graph, which each process reads by itself, train as the whole graph does."""

import numpy as np
import pytest

import memohop
from commands import write_parquet
from memohop import Member
from memohop.jobs.folder import in_ram, load_folder
from memohop.jobs.train import train
from memohop.networks.registry import MODELS
from memohop.parts.halo import Group
from memohop.parts.run import PartsRun
from memohop.training import Job
from numerics import in_float64, seeded
from own_processes import quick_processes, train_and_count
from plain_loop import assert_alike

NODES, WORKERS = 70, 3


@pytest.fixture(scope="module", params=["directed", "weighted", "sparse"])
def folder(request, tmp_path_factory):
    """A prepared graph with features of numbers or of words."""
    here = tmp_path_factory.mktemp(request.param)
    generator = np.random.default_rng(seeded(1))
    kind = generator.integers(3, size=NODES)
    columns = {"id": np.arange(NODES), "kind": np.array(["a", "b", "c"])[kind]}
    columns |= {f"v{number}": generator.normal(size=NODES) + kind for number in range(4)}
    if request.param == "sparse":
        columns |= {f"z{n}": (generator.random(NODES) < 0.1).astype(int) for n in range(300)}
    source, target = generator.integers(NODES, size=(2, 300))
    edges = {"source": source, "target": target}
    options = {"label": "kind", "directed": request.param != "sparse"}
    if request.param == "weighted":
        edges["w"] = generator.integers(5, size=300) / 2
        options["weight"] = "w"
    tables = write_parquet(here, columns, edges)
    return str(memohop.prepare(*tables, here / "graph", **options).folder)


def test_no_process_holds_all_arcs_and_the_results_are_the_same(folder):
    data = load_folder(folder, {"splits": 2})
    members = [Member(split=0, lam=0.1), Member(split=1, dropout=0.3)]
    graph = memohop.open_prepared(folder)
    both_ways = (1 + graph.directed) * graph.arcs  # gcn+mmp takes arcs in either direction
    with in_float64(), quick_processes(WORKERS, train_and_count) as staff:
        expected = train(in_ram(data), "gcn+mmp", members, epochs=6)
        run = PartsRun(Job(data=data, model="gcn+mmp", members=members, epochs=6), WORKERS)
        ((_, (results, read)),) = staff([run], told=lambda run, step: run.keep(step))
    assert_alike(results, expected, 1e-9)
    assert sum(read) == both_ways
    assert max(read) < 0.6 * both_ways


@pytest.mark.parametrize("model", sorted(set(MODELS) - {"linkx", "geom-gcn"}))
def test_every_network_alone(folder, model):
    """One block is the whole graph, read by the code that reads any of them."""
    data = load_folder(folder, {"splits": 2})
    with in_float64():
        expected = train(in_ram(data), model, [Member(lam=0.1)], epochs=3)
        job = Job(data=data, model=model, members=[Member(lam=0.1)], epochs=3)
        results = PartsRun(job, 1).in_group(Group())
    assert_alike(results, expected, 1e-9)
