"""Chunks by memory: what the process may hold, less what it holds, over what a member takes."""

import signal
import subprocess
import sys
from types import SimpleNamespace

import pytest
import torch

import memohop
from memohop import Member, UsageError, grid, train
from memohop.training import Job
from memohop.training import device as plan
from memohop.training.device import members_at_once, peak_bytes
from memohop.training.population import Population

MB = 10**6


@pytest.fixture
def machine(monkeypatch):
    """A process of 500 MB in which a member grows by 10 MB, and by 20 MB with a penalty."""
    asked = []
    monkeypatch.setattr(plan, "held_bytes", lambda device: 500 * MB)
    monkeypatch.setattr(plan, "peak_bytes", lambda function: 0)
    monkeypatch.setattr(plan, "resident_growth", lambda function: [function(), asked[-1]][1])

    def population(members):
        asked.append(20 * MB if members[0].lam else 10 * MB)
        return SimpleNamespace(step=lambda: None)

    def size(members, memory):
        job = Job(data=None, model="gcn", members=members, memory=memory, epochs=5)
        return members_at_once(population, job, torch.device("cpu"))

    return size


@pytest.mark.parametrize(
    ("count", "memory", "size"),
    [
        (8, 2000, 8),
        (70, 2000, 14),  # five of at most 16
        (8, 540, 3),  # 40 MB for members of 13 MB
        (1, 514, 1),
    ],
)
def test_as_many_members_as_fit_beside_what_is_held(machine, count, memory, size):
    assert machine(grid(seed=range(count)), memory * MB) == size


def test_no_more_than_a_cpu_gains_from_even_where_there_is_plenty(machine, monkeypatch):
    monkeypatch.setattr(plan, "_PLENTY", 40 * MB)  # three members of 13 MB
    assert machine(grid(seed=range(6)), 2000 * MB) == 3


def test_the_costliest_kind_of_member_decides(machine):
    cheap = grid(seed=range(7))
    assert machine(cheap, 560 * MB) == 4
    assert machine([*cheap, Member(lam=0.1)], 560 * MB) == 2


@pytest.mark.parametrize(
    ("memory", "words"),
    [
        (512, "memory=512 MB is too little: the process holds 500 MB already, and one member takes "
              "13 MB more for 5 epochs; give 564 MB"),
        (500, "memory=500 MB is too little: the process holds 500 MB before any training"),
    ],
)  # fmt: skip
def test_what_does_not_fit_is_refused_before_training(machine, memory, words):
    with pytest.raises(UsageError, match=words):
        machine([Member()], memory * MB)


def test_a_single_member_is_refused_too_where_it_does_not_fit(monkeypatch):
    data = memohop.load("csbm", nodes=60, channels=6)
    monkeypatch.setattr(plan, "resident_growth", lambda function: 10**15)
    with pytest.raises(UsageError, match=r"one member takes 1\.3 PB more"):
        train(data, "gcn", [Member()], epochs=2, memory=10**14)
    assert len(train(data, "gcn", [Member()], epochs=2)) == 1


def test_growth_is_that_of_the_process():
    # In a process of its own: what other tests have left in this one is not to be measured.
    code = (
        "import torch; from memohop.training.device import resident_bytes, resident_growth; "
        "held = []; growth = resident_growth(lambda: held.append(torch.ones(5_000_000))); "
        "print(growth, resident_bytes())"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    growth, resident = done.stdout.split()
    if growth == "None":
        pytest.skip("the system does not tell")
    assert 15e6 < int(growth) < 60e6
    assert int(resident) > 20e6


def test_one_member_left_of_a_population_goes_on_its_way():
    data = memohop.load("csbm", nodes=60, channels=6)
    seen = []
    step = Population.step

    def spy(self):
        seen.append((len(self.members), self.vectorised))
        step(self)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Population, "step", spy)
        patch.setattr("memohop.training.trainer.members_at_once", lambda *_, **__: 2)
        train(data, "gcn+mmp", grid(seed=range(3)), epochs=2)
        assert seen == [(2, True)] * 2 + [(1, True)] * 2
        seen.clear()
        train(data, "gcn+mmp", [Member()], epochs=1)
        assert seen == [(1, False)]


def test_what_lives_together_adds_up_and_what_was_freed_does_not():
    def hold_two():
        zeros = torch.zeros(1000)
        return zeros, zeros + 1

    def one_after_the_other():
        torch.zeros(1000)
        torch.zeros(1000)

    assert peak_bytes(hold_two) == 8000
    assert peak_bytes(one_after_the_other) == 4000
    # views count once
    assert peak_bytes(lambda: torch.zeros(1000).view(10, 100).t()[:5]) == 4000


@pytest.mark.usefixtures("interruptible")
def test_an_interrupt_waits_for_the_end_of_a_measurement():
    done = []

    def interrupted():
        signal.raise_signal(signal.SIGINT)
        done.append(True)

    with pytest.raises(KeyboardInterrupt):
        peak_bytes(interrupted)
    assert done
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
