"""`memohop fit`, `predict` and `explain`, from two tables to a page."""

import io
import os
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow.parquet
import pytest

import memohop
from commands import at, fails, json_of, read_csv, run, write_tables
from memohop.cli import main

FAST = ["--models", "linear,lightgbm", "--trials", "1", "--splits", "2"]


@pytest.fixture(scope="module")
def tables(tmp_path_factory):
    folder = tmp_path_factory.mktemp("tables")
    generator = np.random.default_rng(0)
    kind = np.arange(60) % 2
    names = np.array([f"n{node}" for node in range(60)])
    nodes = {
        "id": names,
        "size": kind + generator.normal(size=60),
        "kind": [("", "odd", "even")[i % 5 and 1 + k] for i, k in enumerate(kind)],
    }
    target = (np.arange(60) + generator.choice([1, 3, 5, 6], size=60)) % 60
    write_tables(folder, nodes, {"source": names, "target": names[target]})
    return folder


@pytest.fixture(scope="module")
def model(tables):
    path = tables / "model"
    assert main(["fit", *at(tables), "--label", "kind", "--directed", *FAST, "-o", str(path)]) == 0
    return path


def test_fit_prints_scores_verdict_and_where_the_model_is(tables, tmp_path, capsys):
    output = str(tmp_path / "model")
    out, err = run(capsys, "fit", *at(tables), "--label", "kind", *FAST, "-o", output)
    for words in ("kept", "linear", "lightgbm", "95 % interval", "Kept: ", "accuracy in percent"):
        assert words in out
    read, _ = err.splitlines()  # nothing else that needs no action
    assert "edges are listed once" in read
    assert f"wrote {output}" in err


def test_how_tables_were_read_is_in_the_card_and_told_when_asked_for(tables, tmp_path, capsys):
    output = tmp_path / "model"
    fit = ["fit", *at(tables), "--label", "kind", *FAST, "-o", str(output), "--verbose"]
    _, err = run(capsys, *fit)
    card = (output / "README.md").read_text(encoding="utf-8")
    for words in (
        "60 nodes, column 'id' is their id",
        "2 classes, 48 nodes with a label and 12 without",
        "column 'size': one feature, the number, standardised",
    ):
        assert f"memohop: {words}" in err.replace("label 'kind': ", "")
        assert words in card


def test_what_needs_action_is_told_unasked(tables, tmp_path, capsys, monkeypatch):
    from memohop.data import tables as reading

    read = reading.read_graph

    def suspicious(*arguments, **more):
        graph = read(*arguments, **more)
        return replace(graph, notes=(*graph.notes, "look here"), warnings=("look here",))

    monkeypatch.setattr(reading, "read_graph", suspicious)
    output = str(tmp_path / "model")
    assert main(["fit", *at(tables), "--label", "kind", *FAST, "-o", output]) == 0
    assert capsys.readouterr().err.startswith("memohop: look here\nmemohop: 2 setting(s)")


def test_a_label_column_of_measurements_is_predicted_as_numbers(tables, tmp_path, capsys):
    model, output = tmp_path / "model", tmp_path / "out.csv"
    out, err = run(capsys, "fit", *at(tables), "--label", "size", *FAST, "-o", str(model))
    assert "column 'size' holds numbers to predict" in err
    assert "R2 in percent" in out
    assert "nine of ten numbers are within" in out
    assert main(["predict", str(model), "-o", str(output)]) == 0
    rows = read_csv(output)
    assert list(rows[0]) == ["id", "predicted", "low", "high"]
    values = memohop.load_model(model).predict()
    assert [float(row["predicted"]) for row in rows] == pytest.approx(values.tolist())
    reach = memohop.load_model(model).report_.residual.distance
    low, high = ([float(row[name]) for row in rows] for name in ("low", "high"))
    assert np.subtract(high, low) == pytest.approx([2 * reach] * 60, rel=1e-5)


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["--task", "classes"], "a test takes 5 labelled nodes of the largest class"),
        (["--task", "numbers", "--metric", "roc_auc"], "metric must be one of r2, mae, rmse"),
        (["--task", "numbers", "--class-weight", "balanced"], "is for classes; leave it out"),
        (["--task", "numbers", "--positive", "1"], "--positive 1 is for classes; leave it out"),
        (["--models", "linear,oracle"], "no model named 'oracle'"),
        (["--time", "-1"], "time=-1.0 is out of range"),
        (["--ray", "auto"], "--ray auto goes with --workers"),
        (["--workers", "0"], "--workers=0"),
    ],
)
def test_what_cannot_be_right_is_refused(tables, tmp_path, capsys, words, told):
    command = ["fit", *at(tables), "--label", "size", *FAST, "-o", str(tmp_path / "m")]
    assert main([*command, *words]) in (1, 2)
    assert told in capsys.readouterr().err


def test_columns_for_splits_weights_and_several_tables_of_edges(tables, tmp_path, capsys):
    rows, order, model = read_csv(tables / "nodes.csv"), np.arange(60), tmp_path / "model"
    nodes = {name: [row[name] for row in rows] for name in ("id", "size", "kind")}
    nodes |= {"part": ["train", "val", "test"] * 20, "team": order // 6}
    ends = {"source": nodes["id"], "target": np.roll(nodes["id"], -1), "strength": 1 + order % 3}
    more = str(tmp_path / "more.csv")
    write_tables(tmp_path, nodes, {name: column[30:] for name, column in ends.items()})
    (tmp_path / "edges.csv").rename(more)
    both = [*write_tables(tmp_path, nodes, {n: c[:30] for n, c in ends.items()}), "--edges", more]
    how = ["--label", "kind", "--weight", "strength", "--split", "part", "--drop", "team"]
    kinds = ["--models", "linear+neighbours", "--trials", "1", "--splits", "2"]
    assert main(["fit", *both, *how, *kinds, "-o", str(model)]) == 0
    loaded = memohop.load_model(model)
    assert loaded.report_.own_test
    assert loaded.mean_weight_ == 2
    assert loaded.graph_.weights.max() == 1.5
    assert loaded.graph_.arcs.shape == (2, 60)
    assert [column.name for column in loaded.encoder_.columns] == ["size"]
    assert main(["predict", str(model), *both, "-o", str(tmp_path / "out.csv")]) == 0


def test_fit_prints_json_alone(tables, tmp_path, capsys):
    output = str(tmp_path / "model")
    rows = json_of(capsys, "fit", *at(tables), "--label", "kind", *FAST, "-o", output)
    assert rows[0]["model"] == "kept"
    assert {row["model"] for row in rows[1:]} == {"linear", "lightgbm"}
    assert rows[0].keys() >= {"metric", "unit", "val", "test", "parts"}
    assert rows[1].keys() >= {"behind", "low", "high", "tried", "seconds"}


def test_predict_writes_a_row_for_each_node(model, tables, tmp_path, capsys):
    """With the tables of fit, or without any, of the graph of fit."""
    assert main(["predict", str(model), "-o", str(tmp_path / "out.csv")]) == 0
    assert "60 nodes" in capsys.readouterr().err
    rows = read_csv(tmp_path / "out.csv")
    loaded = memohop.load_model(model)
    assert [row["id"] for row in rows] == [f"n{i}" for i in range(60)]
    assert [row["predicted"] for row in rows] == loaded.predict().tolist()
    expected = loaded.predict_proba()
    for place, name in enumerate(("even", "odd")):
        shares = [float(row[f"probability of {name}"]) for row in rows]
        assert shares == pytest.approx(expected[:, place].tolist(), abs=1e-6)
    assert main(["predict", str(model), *at(tables), "-o", str(tmp_path / "again.csv")]) == 0
    assert (tmp_path / "again.csv").read_text() == (tmp_path / "out.csv").read_text()


def test_predict_on_new_tables_without_labels_as_parquet(model, tmp_path):
    nodes = {"id": ["x", "y", "z"], "size": [0.5, "", 2]}
    new = write_tables(tmp_path, nodes, {"source": ["x", "z"], "target": ["y", "x"]})
    output = tmp_path / "out.parquet"
    assert main(["predict", str(model), *new, "-o", str(output)]) == 0
    table = pyarrow.parquet.read_table(output)
    assert table["id"].to_pylist() == ["x", "y", "z"]
    total = np.sum([table[name].to_numpy() for name in table.column_names[2:]], axis=0)
    assert total == pytest.approx([1, 1, 1], abs=1e-5)


def test_an_output_that_is_an_input_is_refused(model, tables, tmp_path, capsys):
    files = [tables / "nodes.csv", tables / "edges.csv", *model.iterdir()]
    before = [file.read_bytes() for file in files]
    for file in files:
        err = fails(capsys, "predict", str(model), *at(tables), "-o", str(file))
        assert "this is the file that is read" in err
    (tmp_path / "page.html").symlink_to(model / "model.json")
    err = fails(capsys, "explain", str(model), "-o", str(tmp_path / "page.html"))
    assert "this is the file that is read" in err
    assert [file.read_bytes() for file in files] == before


def test_ids_that_a_spreadsheet_would_run(model, tmp_path, capsys):
    nodes = {"id": ["=1+1", "-2"], "size": [0.5, 1]}
    new = write_tables(tmp_path, nodes, {"source": ["=1+1"], "target": ["-2"]})
    output = tmp_path / "out.csv"
    _, err = run(capsys, "predict", model, *new, "-o", output)
    assert "1 ids and labels that a spreadsheet would take for formulas" in err
    assert [row["id"] for row in read_csv(output)] == ["'=1+1", "-2"]
    run(capsys, "predict", model, *new, "--raw", "-o", output)
    assert [row["id"] for row in read_csv(output)] == ["=1+1", "-2"]


def test_predict_on_other_columns_is_refused(model, tmp_path, capsys):
    nodes, edges = {"id": ["n1"], "weight": [3]}, {"source": ["n1"], "target": ["n1"]}
    new = write_tables(tmp_path, nodes, edges)
    assert "lacks the column(s) 'size'" in fails(capsys, "predict", model, *new)
    assert "both --nodes and --edges" in fails(capsys, "predict", model, *new[:2])


def test_explain_writes_a_page_on_the_node_asked_for(model, tmp_path, capsys):
    model, page = str(model), tmp_path / "page.html"
    assert main(["explain", model, "--node", "n7", "-o", str(page)]) == 0
    assert "<h2>Node n7</h2>" in page.read_text(encoding="utf-8")
    assert main(["explain", model, "-o", str(page)]) == 0
    assert "<h2>Node" not in page.read_text(encoding="utf-8")
    assert "no node named 'x7'" in fails(capsys, "explain", model, "--node", "x7")
    assert "ends in .html" in fails(capsys, "explain", model, "-o", "page.pdf")


def test_a_model_that_is_not_there_or_was_changed(model, tmp_path, capsys):
    assert "memohop fit makes one" in fails(capsys, "predict", str(tmp_path))
    (weights,) = model.glob("weights-*.safetensors")
    whole = weights.read_bytes()
    weights.write_bytes(whole[:-1] + bytes([whole[-1] ^ 1]))
    err = fails(capsys, "predict", str(model), code=1)
    weights.write_bytes(whole)
    assert "SHA-256" in err


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no full device")
@pytest.mark.parametrize("form", [[], ["--json"]])
def test_where_nothing_can_be_printed_the_model_is_named(tables, tmp_path, monkeypatch, form):
    output, told = tmp_path / "model", io.StringIO()
    monkeypatch.setattr("sys.stderr", told)
    with open("/dev/full", "w") as full:
        monkeypatch.setattr("sys.stdout", full)
        command = ["fit", *at(tables), "--label", "kind", *FAST, "-o", str(output), *form]
        assert main(command) == 1
        monkeypatch.undo()
        os.dup2(os.open(os.devnull, os.O_WRONLY), full.fileno())  # what is left goes there
    *_, wrote, cannot = told.getvalue().splitlines()
    assert f"wrote {output}" in wrote
    assert cannot == (
        "memohop: the scores cannot be printed (No space left on device); "
        f"read them in {output}/README.md"
    )
    assert memohop.load_model(output).predict().shape == (60,)


def test_what_memohop_is_writing_beside_the_model_is_not_foreign(tables, tmp_path):
    for name in (".memohop-ab12_x", ".predictions.csv.123.part"):
        (tmp_path / name).write_text("of another process")
    assert main(["fit", *at(tables), "--label", "kind", *FAST, "-o", str(tmp_path)]) == 0
    assert (tmp_path / ".predictions.csv.123.part").exists()


@pytest.fixture(scope="module")
def rows_model(tables):
    """Rows of the graph decide: new nodes have the neighbours of old ones."""
    path = tables / "rows"
    how = ["--models", "linear+rows,lightgbm+neighbours", "--trials", "1", "--splits", "2"]
    assert main(["fit", *at(tables), "--label", "kind", *how, "-o", str(path)]) == 0
    return path


class TestAppended:
    def test_new_nodes_are_predicted_and_old_ones_stay(self, rows_model, tmp_path, capsys):
        nodes = {"id": ["new", "newer"], "size": [0.5, ""]}
        new = write_tables(tmp_path, nodes, {"source": nodes["id"], "target": ["n3", "new"]})
        output = tmp_path / "out.csv"
        _, err = run(capsys, "predict", rows_model, "--append", *new, "-o", output)
        assert "2 nodes" in err
        assert memohop.load_model(rows_model).report_.later_text() in err
        rows = read_csv(output)
        assert [row["id"] for row in rows] == ["new", "newer"]
        loaded = memohop.load_model(rows_model)
        table = {"id": ["new", "newer"], "size": [0.5, None]}
        loop = {"source": ["new"], "target": ["new"]}
        new = memohop.read_graph(table, loop, label=None, encoder=loaded.encoder_)
        expected = loaded.predict_proba(new.data.x, [[60, 3, 61, 60], [3, 60, 60, 61]], append=True)
        shares = [float(row["probability of even"]) for row in rows]
        assert shares == pytest.approx(expected[:, 0].tolist(), abs=1e-6)

    @pytest.mark.parametrize(
        ("node", "end", "code", "words"),
        [("n7", "n3", 2, "1 of the 3 nodes"), ("newer", "n99", 1, "n99")],
    )
    def test_ids_that_exist_or_nobody_knows_are_an_error(
        self, rows_model, tmp_path, capsys, node, end, code, words
    ):
        nodes = {"id": [node, "new", "last"], "size": [0.5, 1, 2]}
        tables = write_tables(tmp_path, nodes, {"source": ["new"], "target": [end]})
        append = ["predict", rows_model, "--append"]
        assert words in fails(capsys, *append, *tables, code=code)
        assert "--append goes with --nodes and --edges" in fails(capsys, *append)
