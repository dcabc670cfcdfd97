"""The Bayesian signed-rank test against its definition, and against what must be so."""

import numpy as np
import pytest

from study.statistics.effects import bayesian_signed_rank


def slow(differences, margin, draws=4000):
    """The definition, sum by sum, with Dirichlet weights made from exponential ones."""
    rng = np.random.default_rng(1)
    z = [0.0, *differences]
    counts = np.zeros(3)
    for _ in range(draws):
        w = rng.exponential(size=len(z))  # the prior has the strength of one observation
        w /= w.sum()
        theta = np.zeros(3)
        for i, one in enumerate(z):
            for j, other in enumerate(z):
                mean = (one + other) / 2
                theta[0 if mean < -margin else 2 if mean > margin else 1] += w[i] * w[j]
        counts[theta.argmax()] += 1
    return counts / draws


@pytest.mark.parametrize(
    "differences", [[2.0, 1.5, -0.5], [0.2, 0.3, 4.0, -3.0], [1.5, 1.2, 1.1, 0.4, 2.0]]
)
def test_it_is_what_the_definition_gives(differences):
    posterior = bayesian_signed_rank(differences, margin=1)
    expected = slow(differences, 1)
    # Five standard errors of the slower of the two.
    np.testing.assert_allclose(
        [posterior.worse, posterior.same, posterior.better], expected, atol=5 * 0.5 / np.sqrt(4000)
    )
    assert posterior.worse + posterior.same + posterior.better == pytest.approx(1)


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
