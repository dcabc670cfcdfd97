"""The choice between settings looks at validation scores alone."""

import math

import numpy as np
import pytest

from memohop import Member, UsageError, select
from memohop.training import Result
from memohop.training.member import first_best
from study.runs.results import NO_SCORE, Row, choose


def result(lam, val, test=math.nan, split=0):
    """A result; one without a validation score has diverged."""
    curve = np.zeros(1, dtype=np.float32)
    scores = (0.0, math.nan if val is None else val, test)
    member = Member(split=split, lam=lam)
    return Result(member, 0, 1, *scores, curve, curve, diverged=val is None)


def test_the_best_mean_validation_wins_whatever_the_test_says():
    results = [
        result(0.0, 0.9, 0.99, 0), result(0.0, 0.5, 0.99, 1),
        result(0.2, 0.8, 0.10, 0), result(0.2, 0.7, 0.30, 1),
    ]  # fmt: skip
    chosen = select(results)
    assert chosen.setting["lam"] == 0.2
    assert (chosen.val, chosen.mean) == pytest.approx((0.75, 0.2))
    assert chosen.std == pytest.approx(np.std([0.1, 0.3], ddof=1))
    assert select(results[:1]).std == 0.0


def test_a_setting_of_which_a_member_diverged_is_never_chosen():
    results = [result(0.0, None), result(0.0, 0.99, 0.9, split=1), result(0.2, 0.1, 0.1)]
    assert select(results).setting["lam"] == 0.2
    assert select(results[::-1]).setting["lam"] == 0.2
    with pytest.raises(UsageError, match=r"the 1 setting.s. has a run that diverged .*lower lr"):
        select(results[:2])
    assert first_best([1, 2], lambda _: math.nan) is None


def by_select(results):
    return select(results).setting["lam"]


def by_rows(results):
    rows = [
        Row(
            "paper", "texas", "gcn", {}, {"lam": each.member.lam}, 0, 0,
            *((NO_SCORE, NO_SCORE) if each.diverged else (each.val, each.test)), 0, 1, 1.0, 0,
        )
        for each in results
    ]  # fmt: skip
    return choose(rows)[0].setting["lam"]


@pytest.mark.parametrize("chosen", [by_select, by_rows])
def test_one_rule_for_settings_and_rows(chosen):
    """The first of those with the best validation score."""
    vals = {0.0: None, 0.1: 0.4, 0.2: 0.7, 0.3: 0.7, 0.4: None, 0.5: 0.0}
    results = [result(lam, val, 1 - (val or 0)) for lam, val in vals.items()]
    assert chosen(results) == 0.2
    assert chosen(results[::-1]) == 0.3
    assert chosen(results[4:]) == 0.5
