"""Members dealt out to workers that have the whole graph."""

import pytest

import memohop
from memohop import Member, train
from memohop.jobs.executor import Lost, here
from memohop.jobs.train import deal
from memohop.training import Job
from numerics import seeded
from own_processes import under_torchrun
from plain_loop import assert_alike


@pytest.fixture(scope="module")
def data():
    return memohop.load("csbm", nodes=60, channels=8, homophily=0.4, seed=seeded(1))


def test_results_come_back_in_order(data):
    members = [Member(seed=seed, split=seed % 2) for seed in range(5)]
    expected = train(data, "gcn", members, epochs=3)
    seen = []
    job = Job(data=data, model="gcn", members=members, epochs=3)
    results = deal(here, 2, job, lambda *counts: seen.append(counts))
    assert seen == [(1, 2), (2, 2)]
    assert_alike(results, expected, 1e-5)


def test_a_share_that_is_lost_ends_it(data):
    def unlucky(work, jobs):
        return ((job, Lost("gone")) for job in jobs)

    members = [Member(seed=seed) for seed in range(4)]
    with pytest.raises(memohop.DataError, match=r"lost again and again \(gone\); see whether"):
        deal(unlucky, 2, Job(data=data, model="gcn", members=members))


@pytest.mark.parametrize("members", [1, 4])
def test_processes_of_torchrun_all_have_the_results(data, members, tmp_path):
    """One member on a graph in blocks, with checkpoints; four of them dealt out."""
    some = [Member(seed=seed) for seed in range(members)]
    more = {"checkpoints": tmp_path} if members == 1 else {}
    expected = train(data, "gcn", some, epochs=12)
    for results in under_torchrun(2, data, "gcn", some, epochs=12, **more):
        assert_alike(results, expected, 1e-5)
    assert len([*tmp_path.iterdir()]) == (members == 1)
