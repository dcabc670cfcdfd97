"""Arguments that cannot be right, and workers that must not train together."""

import re
import socket

import pytest
import torch
from scipy import sparse
from torch import nn

import memohop
from memohop import Member
from memohop.jobs.train import whole_bytes
from memohop.parts.partition import partition
from memohop.parts.run import PartsRun
from memohop.parts.worker import Worker, agree
from memohop.training import Job
from memohop.training.task import in_default_type
from memohop.version import __version__


class Others:
    """A group that answers for all its workers.

    Args:
        change: what the second worker has otherwise.
    """

    rank = 0

    def __init__(self, change=None, size=4):
        self.change, self.size = change or {}, size

    def gather(self, value):
        other = value | self.change if isinstance(value, dict) else value
        return [value, other] + [value] * (self.size - 2)


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"memohop": "0.0.9"}, f"worker 2 on .* has memohop 0.0.9, and worker 1 has {__version__}"),
        ({"PyTorch": "2.11.0"}, "has PyTorch 2.11.0, and worker 1 has"),
        ({"the data": "beef"}, "has the data beef, and worker 1 has abc"),
    ],
)
def test_other_versions_and_other_data_are_refused(change, text):
    agree(Others(), "abc")
    with pytest.raises(memohop.UsageError, match=text):
        agree(Others(change), "abc")


def test_a_block_that_does_not_fit_says_how_many_workers_would_do(data, monkeypatch):
    blocks = partition(data.edge_index, data.num_nodes, 4)
    run = PartsRun(Job(data=data, model="gcn"), blocks)
    block = run.cut[0]
    monkeypatch.setattr("memohop.parts.worker.available_bytes", lambda device: block.bytes * 2)
    text = r"block 1 of 4, with \d+ nodes and \d+ arcs, takes about .* of RAM, .*; 8 workers with"
    with pytest.raises(memohop.UsageError, match=text):  # four on one machine have half of it each
        Worker(run.share(0), Others())


def test_members_that_do_not_fit_say_how_many_workers_would_do(data, monkeypatch):
    from memohop.training.device import TooLittleError

    def refuse(*arguments, **more):
        raise TooLittleError("one member takes 3 GB", 3e9, 1e9)

    monkeypatch.setattr("memohop.parts.worker.members_at_once", refuse)
    monkeypatch.setattr("memohop.parts.worker.inputs_of", lambda *given: (None, None))
    run = PartsRun(Job(data=data, model="gcn"), partition(data.edge_index, data.num_nodes, 4))
    with pytest.raises(memohop.UsageError, match="takes 3 GB; 12 workers with as much RAM each"):
        Worker(run.share(0), Others())


def test_addresses_of_ray_that_cannot_be_right(data):
    pytest.importorskip("ray", reason="Ray is not installed here: pip install memohop[ray]")
    with pytest.raises(memohop.UsageError, match="ray=here: give an address such as"):
        memohop.train(data, "gcn", [Member()], workers=2, ray="here")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{free.getsockname()[1]}"
        with pytest.raises(memohop.DataError, match=f"no Ray cluster answers at {address}"):
            memohop.train(data, "gcn", [Member()], workers=2, ray=address)


def test_ray_that_is_not_installed_says_so(data, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "ray", None)
    with pytest.raises(memohop.UsageError, match=r"pip install 'memohop\[ray\]', or start the"):
        memohop.train(data, "gcn", [Member()], workers=2)


@pytest.mark.parametrize(
    ("given", "text"),
    [
        ({"workers": 0}, "workers"),
        ({"workers": 2.5}, "workers"),
        ({"workers": 61}, "workers=61, but the graph has 60 nodes"),
        ({"workers": 2, "cut": "random"}, "cut must be one of contiguous, metis"),
        ({"ray": "auto"}, "ray=auto goes with workers"),
        ({"checkpoints": "there"}, "checkpoints=there goes with workers"),
        ({"cut": "metis"}, "cut=metis goes with workers"),
        ({"cut": "roughly"}, "cut=roughly goes with workers"),
        ({"workers": 2, "epochs": 0}, "epochs"),
        ({"workers": 2, "features": "wide"}, "features must be one of auto, sparse, dense"),
        ({"workers": 2, "members": [Member(split=30)]}, "split=30, but the data has 10 split"),
        (
            {"workers": 2, "model": lambda: nn.Linear(8, 2)},
            "only networks of this library take a graph in",
        ),
        (
            {"workers": 2, "model": lambda: memohop.build("gcn", 8, 2), "checkpoints": "there"},
            "checkpoints need a model that is an id",
        ),
        ({"workers": 2, "states": "bfloat16"}, "states='bfloat16' is for a whole graph on one"),
        ({"workers": 2, "recompute": True}, "recompute=True is for a whole graph on one device"),
    ],
)
def test_arguments_that_cannot_be_right(data, given, text):
    with pytest.raises(memohop.UsageError, match=re.escape(text)):
        memohop.train(data, **{"model": "gcn+mmp", "members": [Member()]} | given)


def test_arcs_to_nodes_that_do_not_exist(data):
    broken = data.clone()
    broken.edge_index = torch.tensor([[0, 1], [1, 60]])
    with pytest.raises(memohop.UsageError, match="edge_index"):
        memohop.train(broken, "gcn", [Member()], workers=2)


def test_sparse_features_of_scipy_are_counted_by_what_they_store(data):
    several = data.clone()
    several.x = sparse.csr_array(([1.0, 2.0, 3.0], ([0, 1, 59], [0, 3, 7])), shape=(60, 8))
    assert whole_bytes(in_default_type(several).x, data.num_edges) == 85 * data.num_edges + 3 * 4


def test_torchrun_decides_how_many_workers_there_are(data, monkeypatch):
    monkeypatch.setenv("RANK", "0")
    monkeypatch.setenv("WORLD_SIZE", "3")
    with pytest.raises(memohop.UsageError, match="workers=2, but torchrun has started 3 processes"):
        memohop.train(data, "gcn", [Member()], workers=2)


def test_why_the_graph_is_cut_or_the_members_are_dealt(data, monkeypatch):
    """As far as the sentence: training itself is stubbed out."""
    said = []
    monkeypatch.setattr("memohop.jobs.train._cluster", lambda *given: None)
    monkeypatch.setattr("memohop.parts.run.PartsRun", lambda *given, **more: None)
    monkeypatch.setattr("memohop.jobs.train.run_on", lambda *given: [])
    monkeypatch.setattr("memohop.jobs.train.deal", lambda *given: [])
    members = [Member(seed=seed) for seed in range(7)]
    for count, workers, memory in ((5, 4, None), (7, 3, None), (3, 4, None), (5, 4, 1000)):
        given = {"workers": workers, "memory": memory, "say": said.append}
        memohop.train(data, "gcn", members[:count], **given)
    assert said[0].startswith("5 members are dealt out to 2 workers: the graph, about ")
    assert said[1].startswith("7 members are dealt out to 3 workers")
    assert said[2].startswith("the graph is cut for 4 workers (there are too few members to deal")
    assert re.match(
        r"the graph is cut for 4 workers \(as a whole, .* it fits none of them\)", said[3]
    )
    assert "contiguous blocks cut" in said[2]
