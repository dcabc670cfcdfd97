"""The choice between settings looks at validation scores alone."""

import numpy as np
import pytest

from memohop import Member, UsageError, select
from memohop.training import Result
from memohop.training.member import first_best
from study.runs.results import NO_SCORE, Row, choose


def result(lam, split, val, test):
    curve = np.zeros(1, dtype=np.float32)
    return Result(Member(split=split, lam=lam), 0, 1, 0.0, val, test, curve, curve)


def test_the_best_mean_validation_wins_whatever_the_test_says():
    results = [
        result(0.0, 0, 0.9, 0.99), result(0.0, 1, 0.5, 0.99),
        result(0.2, 0, 0.8, 0.10), result(0.2, 1, 0.7, 0.30),
    ]  # fmt: skip
    chosen = select(results)
    assert chosen.setting["lam"] == 0.2
    assert chosen.val == pytest.approx(0.75)
    assert chosen.mean == pytest.approx(0.2)
    assert chosen.std == pytest.approx(np.std([0.1, 0.3], ddof=1))


def test_the_first_of_equals_is_chosen():
    chosen = select([result(0.4, 0, 0.5, 0.1), result(0.0, 0, 0.5, 0.9)])
    assert chosen.setting["lam"] == 0.4
    assert chosen.std == 0.0


def diverged(lam, split):
    curve = np.zeros(1, dtype=np.float32)
    nan = float("nan")
    return Result(Member(split=split, lam=lam), 0, 1, nan, nan, nan, curve, curve, diverged=True)


def test_a_setting_of_which_a_member_diverged_is_never_chosen():
    results = [diverged(0.0, 0), result(0.0, 1, 0.99, 0.9), result(0.2, 0, 0.1, 0.1)]
    chosen = select(results)
    assert chosen.setting["lam"] == 0.2
    assert select(results[::-1]).setting["lam"] == 0.2
    with pytest.raises(UsageError, match=r"the 1 setting.s. has a run that diverged .*lower lr"):
        select(results[:2])


def by_select(results):
    return select(results).setting["lam"]


def by_rows(results):
    rows = [
        Row(
            "paper", "texas", "gcn", {}, {"lam": one.member.lam}, 0, 0,
            *((NO_SCORE, NO_SCORE) if one.diverged else (one.val, one.test)), 0, 1, 1.0, 0,
        )
        for one in results
    ]  # fmt: skip
    return choose(rows)[0].setting["lam"]


@pytest.mark.parametrize("chosen", [by_select, by_rows])
def test_one_rule_for_settings_and_rows(chosen):
    vals = {0.0: None, 0.1: 0.4, 0.2: 0.7, 0.3: 0.7, 0.4: None, 0.5: 0.0}
    results = [
        diverged(lam, 0) if val is None else result(lam, 0, val, 1 - val)
        for lam, val in vals.items()
    ]
    assert chosen(results) == 0.2
    assert chosen(results[::-1]) == 0.3
    assert chosen(results[4:]) == 0.5


def test_where_nothing_has_a_score_nothing_is_chosen():
    assert first_best([1, 2], lambda _: float("nan")) is None
