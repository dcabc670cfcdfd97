"""A dropout rate means the same wherever it is given."""

import pytest
import torch

import memohop
from memohop.jobs.named import Settings
from memohop.networks.registry import entry
from memohop.nn import Dropout
from memohop.training import Job
from memohop.training.metrics import METRICS
from memohop.training.objective import Classification
from memohop.training.population import Population
from memohop.training.task import Task

ACCURATE = Classification(METRICS["accuracy"])


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
        (torch.zeros(4, 3), None), torch.tensor([0, 1, 0, 1]), torch.ones(1, 3, 4), ACCURATE
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
