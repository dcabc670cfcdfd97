"""What the Bayesian signed-rank test must give; ``pages`` compares it with its definition."""

from study.statistics.effects import bayesian_signed_rank


def test_clear_cases_are_clear():
    assert bayesian_signed_rank([5.0] * 12, margin=1).better > 0.99
    assert bayesian_signed_rank([-5.0] * 12, margin=1).worse > 0.99
    assert bayesian_signed_rank([0.3, -0.2] * 6, margin=1).same > 0.99


def test_the_sides_are_alike():
    differences = [2.0, 0.4, -1.5, 3.0, 0.1]
    one = bayesian_signed_rank(differences, margin=0.5)
    other = bayesian_signed_rank([-d for d in differences], margin=0.5)
    assert (one.better, one.same, one.worse) == (other.worse, other.same, other.better)


def test_few_datasets_prove_little():
    assert bayesian_signed_rank([2.0], margin=1).better < 0.75
