"""The numbers of a member are the same ones everywhere, and a dropout rate means the same."""

import inspect

import pytest
import torch

import memohop
from memohop.cli._train import train
from memohop.fit.candidates.spaces import listed
from memohop.jobs.named import Settings
from memohop.networks.registry import entry
from memohop.nn import Dropout
from memohop.training import NUMBERS, RATES, Job
from memohop.training.metrics import METRICS
from memohop.training.objective import Classification
from memohop.training.population import Population
from memohop.training.task import Task


def test_members_settings_flags_runs_and_trials_have_the_same_numbers():
    names = list(NUMBERS)
    assert [name for name, _ in memohop.Member().setting] == names
    assert set(names) <= set(Settings.names())
    assert set(names) <= set(inspect.signature(train).parameters)
    assert [name for name in Settings().job("texas", "gcn").content if name in names] == names
    for space in listed().networks.values():
        assert all(start.numbers.keys() <= set(names) for start in space.own)


def test_a_member_is_split_and_seed_and_then_its_numbers():
    member = memohop.Member(3, 5, 0.1, 0.2, 0.3, 0.4, 0.5)
    assert (member.split, member.seed) == (3, 5)
    assert member.numbers == dict(zip(NUMBERS, (0.1, 0.2, 0.3, 0.4, 0.5), strict=True))


def test_what_is_not_given_of_a_run_is_the_default_or_the_models_own():
    content = Settings().job("texas", "gcn").content
    assert {name: content[name] for name in RATES} == {"dropout": 0.5, "input_dropout": 0.5}
    assert (content["lr"], content["weight_decay"], content["lam"]) == (0.01, 5e-4, 0.0)


def rates(module):
    return {
        name: (part.role, float(part.rate))
        for name, part in module.named_modules()
        if isinstance(part, Dropout)
    }


@pytest.mark.parametrize("model", memohop.models())
@pytest.mark.parametrize("rate", ["dropout", "input_dropout"])
def test_a_members_rate_is_that_of_the_network(model, rate):
    if rate not in entry(model).options():
        pytest.skip(f"{model} has no {rate}")
    sizes = {"in_channels": 3, "out_channels": 2, "num_nodes": 4}
    arguments = {} if "hidden_channels" not in entry(model).options() else {"hidden_channels": 32}

    def build(**given):
        return memohop.build(model, **sizes, **arguments, **given)

    task = Task(
        (torch.zeros(4, 3), None),
        torch.tensor([0, 1, 0, 1]),
        torch.ones(1, 3, 4),
        Classification(METRICS["accuracy"]),
    )
    members = [memohop.Member(**{rate: 0.25})]
    population = Population(task, Job(data=None, model=build, members=members, epochs=1))
    told = {
        name: (role, float(population.buffers[f"{name}.rate"][0]))
        for name, (role, _) in rates(population.model).items()
    }
    assert told == rates(build(**{rate: 0.25}))
    assert told != rates(build())


def test_settings_with_equal_ids_train_equally():
    for model in ("gat", "gat+mmp", "gatv2+jk"):
        plain, spelled_out = Settings(), Settings(dropout=0.5)
        ids = {settings.job("texas", model).id for settings in (plain, spelled_out)}
        assert len(ids) == 1
        data = memohop.load("csbm", nodes=60, channels=8, splits=1)
        losses = [
            memohop.train(data, model, [settings.member()], epochs=3)[0].loss_curve
            for settings in (plain, spelled_out)
        ]
        assert (losses[0] == losses[1]).all()
