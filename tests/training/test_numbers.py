"""The numbers of a member are the same ones everywhere."""

import inspect

import memohop
from memohop.cli._train import train
from memohop.fit.candidates.spaces import NETWORKS
from memohop.jobs.named import Settings
from memohop.training import NUMBERS, RATES


def test_members_settings_flags_runs_and_trials_have_the_same_numbers():
    names = list(NUMBERS)
    assert [name for name, _ in memohop.Member().setting] == names
    assert set(names) <= set(Settings.names())
    assert set(names) <= set(inspect.signature(train).parameters)
    assert [name for name in Settings().job("texas", "gcn").content if name in names] == names
    for space in NETWORKS.values():
        assert all(start.numbers.keys() <= set(names) for start in space.own)


def test_a_member_is_split_and_seed_and_then_its_numbers():
    member = memohop.Member(3, 5, 0.1, 0.2, 0.3, 0.4, 0.5)
    assert (member.split, member.seed) == (3, 5)
    assert member.numbers == dict(zip(NUMBERS, (0.1, 0.2, 0.3, 0.4, 0.5), strict=True))


def test_what_is_not_given_of_a_run_is_the_default_or_the_models_own():
    content = Settings().job("texas", "gcn").content
    assert {name: content[name] for name in RATES} == {"dropout": 0.5, "input_dropout": 0.5}
    assert (content["lr"], content["weight_decay"], content["lam"]) == (0.01, 5e-4, 0.0)
