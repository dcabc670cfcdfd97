"""A graph in parts is trained as the whole graph is, whatever the number of workers."""

from contextlib import ExitStack, nullcontext

import pytest
import torch

import memohop
from memohop import Member
from memohop.data.check import MASKS
from memohop.jobs.train import train
from memohop.networks.registry import MODELS
from memohop.parts.partition import partition
from memohop.parts.run import PartsRun
from memohop.pyg import Data
from memohop.training import Job, standardised
from numerics import generator, in_float64, seeded
from own_processes import quick_processes, train_in_all
from plain_loop import assert_alike

ASKED = ("gcn", "gat", "sage", "gcn-res", "h2gcn", "gcn+mmp", "gat+mmp")
REFUSED = {"linkx", "geom-gcn"}
ALONE = (Member(),)


@pytest.fixture(scope="module")
def data():
    return memohop.load("csbm", nodes=90, channels=13, homophily=0.6, seed=seeded(1))


@pytest.fixture(scope="module")
def words():
    """Sparse features, and a directed graph."""
    data = memohop.load("csbm", nodes=91, channels=30, homophily=0.3, seed=seeded(2))
    data.x = (data.x > 0.22).float()
    stays = torch.rand(data.num_edges, generator=generator(4)) < 0.6
    data.edge_index = data.edge_index[:, stays]  # arcs have a direction now
    return data


@pytest.fixture(scope="module")
def crews():
    """Processes of each number that is asked for."""
    with ExitStack() as open_ones:
        by_size = {}

        def of_size(size):
            if size not in by_size:
                by_size[size] = open_ones.enter_context(quick_processes(size, train_in_all))
                by_size[size].size = size
            return by_size[size]

        yield of_size


def results_of(crew, run):
    ((_, alike),) = crew([run], told=lambda run, step: run.keep(step))
    for results in alike[1:]:
        assert_alike(results, alike[0])
    return alike[0]


def both(crew, data, model, members=ALONE, *, cut="contiguous", precisely=True, **arguments):
    """The results of one process, and those of several, which are the same."""
    with in_float64() if precisely else nullcontext():
        expected = train(data, model, members, **arguments)
        blocks = partition(data.edge_index, data.num_nodes, crew.size, method=cut)
        job = Job(data=data, model=model, members=members, **arguments)
        results = results_of(crew, PartsRun(job, blocks))
    assert_alike(results, expected, 1e-9 if precisely else 1e-5)
    return expected, results


@pytest.mark.parametrize("size", [2, 3, 4])
@pytest.mark.parametrize("model", ASKED)
def test_losses_and_epochs_are_those_of_one_worker(crews, data, model, size):
    both(crews(size), data, model, [Member(lam=0.1)], precisely=False, epochs=20)


@pytest.mark.parametrize("model", sorted(set(MODELS) - REFUSED))
def test_every_network_on_blocks_of_metis_and_sparse_features(crews, words, model):
    pytest.importorskip("pymetis", reason="pymetis is not installed: pip install memohop[metis]")
    both(crews(3), words, model, [Member(lam=0.1)], cut="metis", epochs=2)


def test_a_population_on_several_splits(crews, data):
    several = data.clone()
    for name in MASKS:  # some nodes are in none
        several[name] = data[name] & (torch.arange(data.num_nodes) % 10 > 0)[:, None]
    members = [Member(split=0, lam=0.1), Member(split=1, seed=4, dropout=0.2)]
    more = {"patience": 5, "options": {"labels": "memory"}, "cross_fit": True}
    pairs = zip(*both(crews(2), several, "gcn+mmp", members, epochs=12, **more), strict=True)
    for whole, split in pairs:
        assert torch.allclose(whole.val_outputs, split.val_outputs, rtol=0, atol=1e-9)


@pytest.mark.parametrize("decoupling", ["paper", "official"])
def test_every_form_of_the_penalty(crews, data, decoupling):
    options = {"decoupling": decoupling}
    both(crews(2), data, "gcn+mmp", [Member(lam=0.3)], epochs=3, options=options)


def test_regression_is_scored_over_all_blocks(crews, data):
    numbers = data.clone()
    numbers.y, numbers.metric = data.y + 0.1 * data.x[:, 0], "r2"
    numbers, _ = standardised(numbers)
    both(crews(2), numbers, "gcn+mmp", epochs=5)


@pytest.mark.parametrize("model", ["gcn+mmp", "h2gcn"])
def test_weights_of_arcs_reach_every_block(crews, data, model):
    weighted = data.clone()
    weighted.edge_weight = 2.0 ** (torch.arange(data.num_edges) % 3 - 1)
    (expected,), _ = both(crews(2), weighted, model, epochs=3)
    with in_float64():
        (plain,) = train(data, model, [Member()], epochs=3)
    assert abs(plain.loss_curve - expected.loss_curve).max() > 1e-3


def test_blocks_without_arcs_and_without_labels(crews):
    """Nodes 0 to 3 have all labels and arcs; two of the three blocks have neither."""
    data = Data(
        x=torch.randn(12, 4),
        edge_index=torch.tensor([[0, 1, 2, 3], [1, 0, 3, 2]]),
        y=torch.tensor([0, 1, 1, 0] + [0] * 8),
    )
    for name, nodes in zip(MASKS, ([0, 2], [1], [3]), strict=True):
        data[name] = torch.isin(torch.arange(12), torch.tensor(nodes))
    both(crews(3), data, "gat", epochs=4)


def test_what_is_kept_is_the_same_network(crews, data):
    (expected,), _ = both(crews(2), data, "gcn-res", epochs=6, keep_models=True)
    assert expected.state  # which was compared


@pytest.mark.parametrize("model", sorted(REFUSED))
def test_networks_that_need_more_than_states_are_refused(data, model):
    blocks = partition(data.edge_index, data.num_nodes, 2)
    with pytest.raises(memohop.UsageError, match=r"graph in parts: .*; leave out workers, or take"):
        PartsRun(Job(data=data, model=model), blocks)


def test_members_that_do_not_fit_together_are_trained_in_turn(crews, data):
    members = [Member(seed=seed) for seed in range(3)]
    blocks = partition(data.edge_index, data.num_nodes, 2)
    with in_float64():
        expected = train(data, "gcn", members, epochs=5)
        run = PartsRun(Job(data=data, model="gcn", members=members, epochs=5), blocks)
        run.checkpoints.size = 2  # as a run on workers with little RAM would have left it
        results = results_of(crews(2), run)
    assert [len(run.checkpoints.snapshots), run.checkpoints.size] == [2, 2]
    assert_alike(results, expected, 1e-9)
