"""The second claim, against the tests written out, on made-up scores and on those measured."""

import numpy as np
import pytest
from scipy import stats

from made_up_results import results_of, row
from study.cli import main
from study.paper.table1 import HOMOPHILOUS, comparable_on, leads, tables_of
from study.runs.results import measured
from study.statistics.comparison import (
    TEST_TO_TRAIN,
    corrected_t_test,
    holm,
    non_inferiority_test,
)

OTHERS = ("", "+jk", "+de")
NOISE = np.array([-2, 2, -1, 1, -3, 3, 0, 0, -1, 1]) / 4


def made_up(levels, graphs=HOMOPHILOUS):
    """Results in which each model has the same noise on its splits around a level, in percent."""
    rows = []
    for seed, graph in enumerate(graphs):
        rng = np.random.default_rng(seed)
        rows += [
            row((level + noise) / 100, dataset=graph, model=model, split=split)
            for model, level in levels.items()
            for split, noise in enumerate(rng.permutation(NOISE))
        ]
    return results_of(*rows)


def leads_of(levels, **more):
    (table,) = tables_of(measured(made_up(levels, **more)))
    return leads(table)


def level(**of):
    return {f"{b}{o}": 80 + of.get(o.strip("+") or "plain", 0)
            for b in ("gcn", "gat") for o in (*OTHERS, "+mmp")}  # fmt: skip


def test_it_is_comparable_when_it_is_shown_not_to_be_a_point_behind():
    assert comparable_on(leads_of(level(mmp=3, jk=3, de=5))) == []  # two points behind +de
    ahead = leads_of(level(mmp=3))
    assert {lead.verdict for lead in ahead.values()} == {"comparable"}
    assert comparable_on(ahead) == list(HOMOPHILOUS)


def test_behind_is_behind_unless_it_is_by_less_than_can_be_seen():
    assert {lead.verdict for lead in leads_of(level(mmp=-4)).values()} == {"behind"}
    lead = leads_of(level(mmp=-0.8))["cora", "gcn", ""]
    assert (lead.verdict, lead.points) == ("open", pytest.approx(-0.8))


def test_other_models_of_the_table_change_nothing():
    own = level(mmp=-1.6)
    others = {f"other{number}": 80.0 for number in range(9)}
    few, many = leads_of(own), leads_of(own | others)
    assert few == many
    (table,) = tables_of(measured(made_up(own)))
    scores = table.scores["cora"]
    raw = [np.subtract(scores["gcn+mmp"], scores["gcn" + other]) for other in OTHERS]
    p = holm([corrected_t_test(differences) for differences in raw])
    p_comparable = holm([non_inferiority_test(differences, margin=1.0) for differences in raw])
    told = [few["cora", "gcn", other] for other in OTHERS]
    assert [lead.p for lead in told] == pytest.approx(p, abs=1e-12)
    assert [lead.p_comparable for lead in told] == pytest.approx(p_comparable, abs=1e-12)


def test_both_p_values_in_the_words_of_nadeau_and_bengio():
    n, mean, var = len(NOISE), np.mean(NOISE + 0.3), np.var(NOISE, ddof=1)
    t = np.array([-abs(mean), -(mean + 1.0)]) / np.sqrt((1 / n + TEST_TO_TRAIN) * var)
    two_sided, one_sided = stats.t.cdf(t, n - 1) * [2, 1]
    assert corrected_t_test(NOISE + 0.3) == pytest.approx(two_sided, abs=1e-12)
    assert non_inferiority_test(NOISE + 0.3, margin=1.0) == pytest.approx(one_sided, abs=1e-12)


def test_the_same_difference_everywhere():
    assert non_inferiority_test([-1.0] * 5, margin=1.0) == 1.0
    assert non_inferiority_test([-0.9] * 5, margin=1.0) == 0.0


def test_the_command(tmp_path, capsys):
    path = tmp_path / "table1.json"
    made_up(level(mmp=3)).save(path)
    assert main(["table", "claim2", "--results", str(path)]) == 0
    out = capsys.readouterr().out
    assert out.startswith("**Holds**: under paper on citeseer, pubmed, cora.\n")
    assert "| cora     | +3.0 comparable" in out
    made_up(level(mmp=-4), graphs=("cora",)).save(path)
    assert main(["table", "claim2", "--results", str(path)]) == 0
    out = capsys.readouterr().out
    assert out.startswith("**Does not hold**: under paper on none.\n")
    assert "-4.0 behind (p 0.0" in out
    made_up({"gcn": 80}).save(path)
    assert main(["table", "claim2", "--results", str(path)]) == 2
    assert "pass those of table1" in capsys.readouterr().err
    assert main(["table", "claim2", "--format", "csv"]) == 2
    assert "--format csv is for table1" in capsys.readouterr().err
