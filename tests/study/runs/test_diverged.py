"""Networks that diverge, from the experiment file to the exported results."""

from study.cli import main
from study.runs.export import results_of
from study.runs.results import NO_SCORE, Results, choose
from study.runs.store import Store

EXPERIMENT = """
title = "One rate too many"
expected = "nothing"
time = "a second"
datasets = ["csbm"]
models = ["gcn"]
seeds = [0]

[protocols.paper.every]
data = { nodes = 60, splits = 2, channels = 8 }
epochs = 2

[protocols.paper.rows.gcn]
search.lr = [1e37, 0.01]
"""


def test_an_experiment_stores_it_and_says_so(tmp_path, capsys):
    file, path, exported = (tmp_path / name for name in ("e.toml", "s.sqlite", "r.json"))
    file.write_text(EXPERIMENT)
    assert main(["run", str(file), "--store", str(path)]) == 0
    assert "2 run(s) diverged, and their settings are not chosen" in capsys.readouterr().out
    store = Store(path)
    results = results_of(store, "e", store.cells().values())
    vals = {row.setting["lr"]: row.val for row in results.rows}
    store.close()
    assert vals[1e37] == NO_SCORE
    assert 0 <= vals[0.01] <= 1
    assert main(["store", "export", str(path), str(file), "--output", str(exported)]) == 0
    rows = Results.load(exported).rows
    assert [row.val for row in rows if row.setting["lr"] == 1e37] == [-1, -1]
    assert {row.setting["lr"] for row in choose(rows)} == {0.01}
