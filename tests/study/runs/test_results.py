"""Results survive the way through a file, and validation alone chooses."""

import json

import msgspec
import pytest

import made_up_results
import memohop
from study.cli import main
from study.runs.export import export
from study.runs.results import NO_SCORE, Results, Row, Source, choose, measured
from study.runs.runner import run_cells
from study.runs.store import Store


def row(val, test, split=0, **setting):
    return made_up_results.row(test, val=val, dataset="csbm", split=split, setting=setting)


def test_a_file_gives_back_what_was_saved(tmp_path):
    source = Source({"torch": "2"}, "a processor", None, {"csbm": "abc"})
    saved = Results("tiny", (source,), (row(0.5, 0.25, lam=0.1), row(1, 0, split=1, lam=0.1)))
    path = tmp_path / "tiny.json"
    saved.save(path)
    assert Results.load(path) == saved
    text = path.read_text(encoding="utf-8")
    assert json.loads(text)["columns"] == list(Row.__struct_fields__)
    assert len(text.splitlines()) == 4  # a head, two rows, an end


def test_the_setting_with_the_best_mean_validation_is_chosen():
    worse = [row(0.6, 0.9, split=0, lam=0.1), row(0.7, 0.9, split=1, lam=0.1)]
    better = [row(0.9, 0.1, split=0, lam=0.2), row(0.5, 0.2, split=1, lam=0.2)]
    equal = [row(0.9, 0.95, split=0, lam=0.3), row(0.5, 0.95, split=1, lam=0.3)]
    assert choose([*worse, *better, *equal]) == better


def test_a_setting_that_has_diverged_is_not_chosen():
    diverged = [row(0.9, 0.9, split=0, lr=1), row(NO_SCORE, NO_SCORE, split=1, lr=1)]
    sound = [row(0.1, 0.1, split=0, lr=0.1), row(0.1, 0.1, split=1, lr=0.1)]
    assert choose([*diverged, *sound]) == sound
    with pytest.raises(memohop.DataError, match="gcn has diverged with each setting"):
        choose(diverged)
    assert measured(Results("tiny", (), tuple(diverged))) == []
    assert [cell.mean for cell in measured(Results("tiny", (), (*diverged, *sound)))] == [10]


def test_networks_that_diverge_are_stored_without_a_score_and_told(tiny_file, tmp_path, capsys):
    text = tiny_file.read_text(encoding="utf-8")
    text = text.replace("search.hidden_channels = [4, 8]", "search.lr = [0.01, 1e37]")
    tiny_file.write_text(text, encoding="utf-8")
    path, output = str(tmp_path / "runs.sqlite"), str(tmp_path / "out.json")
    run = ["run", str(tiny_file), "--store", path, "--only", "model=mlp", "--protocol", "paper"]
    assert main(run) == 0
    assert "4 run(s) diverged" in capsys.readouterr().out
    assert main(["store", "export", path, str(tiny_file), "--output", output]) == 0
    results = Results.load(output)
    assert {(row.setting["lr"] > 1, row.has_scores) for row in results.rows} == {
        (True, False),
        (False, True),
    }
    assert {cell.setting["lr"] for cell in measured(results)} == {0.01}


def test_cells_tell_protocols_and_axes_apart():
    rows = [row(0.1, 0.1), row(0.2, 0.2)]
    other = msgspec.structs.replace(rows[0], protocol="official")
    noisy = msgspec.structs.replace(rows[0], axes={"noise": 25})
    cells = Results("tiny", (), (rows[0], other, noisy, rows[1])).cells()
    assert list(cells.values()) == [rows, [other], [noisy]]


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("{", "is not a file of results"),
        ('{"experiment": "a", "sources": [], "columns": [], "rows": [[1]]}', "not a file of"),
        (
            '{"experiment": "a", "sources": [], "columns": ["val"], "rows": []}',
            "has the columns val",
        ),
    ],
)
def test_other_files_are_refused(content, words, tmp_path):
    path = tmp_path / "other.json"
    path.write_text(content, encoding="utf-8")
    with pytest.raises(memohop.DataError, match=words):
        Results.load(path)


def test_results_that_are_not_there(tmp_path):
    with pytest.raises(memohop.DataError, match="cannot read the results"):
        Results.load(tmp_path / "none.json")
    with pytest.raises(memohop.UsageError, match="no file of results named 'tabel1'"):
        Results.load("tabel1")


def test_an_export_holds_the_members_of_the_store(tiny, tmp_path):
    store = Store(tmp_path / "runs.sqlite")
    cells = list(tiny.cells(["official"]))[:3]
    run_cells(cells, store)
    results, missing = export(store, tiny)
    assert len(missing) == 12 - 3
    assert [key[:3] for key in results.cells()] == [
        (cell.protocol, cell.dataset, cell.model) for cell in cells
    ]
    assert len(results.rows) == sum(len(cell.runs) for cell in cells)
    (source,) = results.sources
    assert source.versions["memohop"] == memohop.__version__
    assert set(source.datasets) == {"csbm"}
    last, run = results.rows[-1], cells[-1].runs[-1]
    stored, _ = store.run(run.id)
    assert last.test == pytest.approx(stored.test, abs=1e-6)
    assert (last.setting, last.split, last.best_epoch) == (
        run.setting,
        stored.content["split"],
        stored.best_epoch,
    )
    store.close()
