"""Settings are drawn evenly, and a draw depends on its name and the seed alone."""

import numpy as np
import pytest

from memohop.errors import UsageError
from memohop.jobs.space import Range, draw, near_numbers, near_options, options_of

SPACE = {
    "lr": Range(0.001, 0.1),
    "dropout": Range(0.0, 0.8, log=False),
    "hidden_channels": [64, 128],
    "mean": [{"self_loops": "add", "norm": "row"}, {"self_loops": "remove", "norm": "symmetric"}],
}


def drawn(space=SPACE, structures=8, each=4, seed=0):
    return draw(space, structures=structures, each=each, seed=seed)


def structure(setting):
    return tuple((name, setting[name]) for name in ("hidden_channels", "self_loops", "norm"))


def test_settings_of_one_structure_stand_together():
    settings = drawn()
    assert len(settings) == 32
    for start in range(0, 32, 4):
        assert len({structure(setting) for setting in settings[start : start + 4]}) == 1


def test_the_values_of_an_option_are_divided_evenly():
    settings = drawn()[::4]
    assert sorted(setting["hidden_channels"] for setting in settings) == [64] * 4 + [128] * 4
    assert sorted(setting["norm"] for setting in settings) == ["row"] * 4 + ["symmetric"] * 4
    assert all(
        (setting["norm"] == "row") == (setting["self_loops"] == "add") for setting in settings
    )


def test_numbers_are_spread_within_each_structure_and_over_all():
    settings = drawn()
    # Without the logarithm: the k-th of n equal ranges of the dropout rate has one value.
    rates = [setting["dropout"] / 0.8 for setting in settings]
    assert sorted(int(rate * 32) for rate in rates) == list(range(32))
    for start in range(0, 32, 4):
        assert sorted(int(rate * 4) for rate in rates[start : start + 4]) == [0, 1, 2, 3]
    assert all(0.001 < setting["lr"] < 0.1 for setting in settings)
    # 0.01 is the middle of the logarithmic scale
    assert sum(setting["lr"] < 0.01 for setting in settings) == 16


def test_a_draw_does_not_depend_on_the_rest_of_the_space():
    whole = drawn()
    part = drawn({name: SPACE[name] for name in ("mean", "lr")})
    for name in ("lr", "norm"):
        assert [setting[name] for setting in part] == [setting[name] for setting in whole]


def test_seeds_differ_and_repeat():
    assert drawn(seed=1) == drawn(seed=1) != drawn()


def test_the_first_draws_stay_what_they_are():
    """Stored results are known by them: another draw would train everything again."""
    assert [setting["lr"] for setting in drawn()[:4]] == [0.0034, 0.00165, 0.0191, 0.0523]


def test_too_small_a_space_is_refused():
    with pytest.raises(UsageError, match="does not give 32 different settings"):
        drawn({"hidden_channels": [64, 128]})


@pytest.mark.parametrize(("low", "high"), [(0.1, 0.1), (0.2, 0.1), (0, 0.1), (-1, 0.1)])
def test_ranges_that_are_none(low, high):
    with pytest.raises(ValueError, match="must be above 0"):
        Range(low, high)


def test_all_options_of_a_space():
    assert options_of(SPACE) == {
        "lr": [0.001, 0.1],
        "dropout": [0.0, 0.8],
        "hidden_channels": [64, 128],
        "self_loops": ["add", "remove"],
        "norm": ["row", "symmetric"],
    }


def test_what_is_near_has_one_choice_changed_and_numbers_close_by():
    choices = {name: SPACE[name] for name in ("hidden_channels", "mean")}
    numbers = {"lr": SPACE["lr"], "dropout": [0.0, 0.3, 0.5]}
    generator, changed, near = np.random.default_rng(0), [], {"lr": 0.01, "dropout": 0.3}
    best = {"hidden_channels": 64, "self_loops": "add", "norm": "row"}
    for _ in range(200):
        options = near_options(choices, best, generator)
        assert options["hidden_channels"] in (64, 128)
        assert (options["norm"] == "row") == (options["self_loops"] == "add")
        changed.append({name for name in best if options[name] != best[name]})
        near = near_numbers(numbers, near, generator)
        assert 0.001 <= near["lr"] <= 0.1
        assert near["dropout"] in numbers["dropout"]
    assert {frozenset(names) for names in changed} == {
        frozenset(),
        frozenset({"hidden_channels"}),
        frozenset({"self_loops", "norm"}),
    }
    assert near_options({}, best, generator) == best
