"""Results that are partial, altered or of something else: a sensible page, or one clear error."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ET

import msgspec
import pytest

from memohop.errors import DataError
from study.cli import main
from study.pages.figures import figure_svg
from study.pages.page import Findings, report_page
from study.paper.table1 import tables_of
from study.runs.results import NO_SCORE, Results, Row, measured


def kept(results, wanted):
    return Results(results.experiment, results.sources, tuple(filter(wanted, results.rows)))


def well_formed(page):
    return ET.fromstring(page.removeprefix("<!DOCTYPE html>\n"))


class TestPartialResults:
    def test_only_the_graph_without_noise(self, findings, tmp_path, capsys):
        clean = kept(findings.noise, lambda row: row.axes["noise"] == 0)
        clean.save(tmp_path / "noise.json")
        ET.fromstring(figure_svg("noise", clean))
        where = ["figure", "noise", "--results", str(tmp_path / "noise.json")]
        assert main([*where, "-o", str(tmp_path / "x.svg")]) == 0
        assert main(["report", "--results", str(tmp_path), "-o", str(tmp_path / "x.html")]) == 0
        assert "+0 %" in (tmp_path / "x.html").read_text("utf-8")

    def test_a_score_that_never_changes(self, findings):
        rows = tuple(msgspec.structs.replace(row, test=1.0) for row in findings.noise.rows[:30])
        ET.fromstring(figure_svg("noise", Results("noise", findings.noise.sources, rows)))

    def test_models_that_are_equal_everywhere(self, findings):
        rows = tuple(msgspec.structs.replace(row, test=0.5) for row in findings.table1.rows)
        equal = Results("table1", findings.table1.sources, rows)
        well_formed(report_page(Findings(table1=equal)))
        for table in tables_of(measured(equal)):
            assert (table.comparison.friedman_p, table.comparison.differ()) == (1, [])

    def test_splits_that_are_missing_at_one_lambda(self, findings):
        def page(there):
            return well_formed(report_page(Findings(lambda_=kept(findings.lambda_, there))))

        page(lambda row: (row.dataset, row.axes["lam"], row.split) != ("texas", 0.4, 3))
        # Without the least one there is nothing to compare with.
        tables = page(lambda row: (row.dataset, row.axes["lam"]) != ("texas", 0)).iter("table")
        (table,) = [t for t in tables if t.get("id") == "lambda-changes"]
        texas = [row for row in table.iter("tr") if "texas" in "".join(row[0].itertext())]
        assert texas
        for row in texas:
            assert {"".join(cell.itertext()).strip() for cell in row[1:]} == {"-"}

    def test_networks_that_have_all_diverged(self, findings):
        for name in ("table1", "noise", "lambda_"):
            rows = [
                msgspec.structs.replace(row, val=NO_SCORE, test=NO_SCORE)
                for row in getattr(findings, name).rows[:40]
            ]
            gone = Results(name, findings.table1.sources, tuple(rows))
            well_formed(report_page(Findings(**{name: gone})))
        with pytest.raises(DataError, match="every network has diverged"):
            figure_svg("lambda", gone)

    def test_one_row(self, findings):
        for name in ("table1", "noise", "lambda_"):
            results = getattr(findings, name)
            single_row = Results(results.experiment, results.sources, results.rows[:1])
            well_formed(report_page(Findings(**{name: single_row})))


@pytest.mark.parametrize(
    ("column", "value", "words"),
    [
        ("val", 1.5, "Expected `float` <= 1.0"),
        ("test", "high", "Expected `float`, got `str`"),
        ("split", -1, "Expected `int` >= 0"),
        ("epochs", 0, "Expected `int` >= 1"),
        ("best_epoch", 100, "row 2: best_epoch is 100 of 100 epochs"),
        ("source", 1, "row 2: source is 1, and there are 1"),
        ("dataset", "texass", "row 2: there is no dataset named 'texass'"),
        ("model", "g\x00cn", "Expected `str` matching"),
        ("model", "g\u202ecn", "Expected `str` matching"),
        ("axes", {"noise": [1]}, "Expected `bool | int | float | str`, got `array`"),
        ("setting", None, "Expected `object`, got `null`"),
    ],
)
def test_rows_that_no_export_has_written(column, value, words, findings, tmp_path):
    path = tmp_path / "noise.json"
    Results("noise", findings.noise.sources, findings.noise.rows[:3]).save(path)
    content = json.loads(path.read_text("utf-8"))
    content["rows"][1][Row.__struct_fields__.index(column)] = value
    path.write_text(json.dumps(content), encoding="utf-8")
    with pytest.raises(DataError) as caught:
        Results.load(path)
    assert words in str(caught.value)
    assert "noise.json" in str(caught.value)
    assert "write it anew with python -m study store export" in str(caught.value)


def test_rows_that_are_there_twice_or_not_at_all(findings, tmp_path):
    path = tmp_path / "noise.json"
    Results("noise", findings.noise.sources, findings.noise.rows[:1] * 2).save(path)
    with pytest.raises(DataError, match="row 2: the same member is there before"):
        Results.load(path)
    Results("noise", findings.noise.sources, ()).save(path)
    with pytest.raises(DataError, match=r"noise.json: it has no rows; write it anew"):
        Results.load(path)


def test_results_of_another_experiment_make_no_table(findings):
    with pytest.raises(DataError, match="which differ in noise, draw; pass those of table1"):
        tables_of(measured(findings.noise))


def test_noise_that_is_no_number(findings):
    rows = tuple(
        msgspec.structs.replace(row, axes={"noise": "much"}) for row in findings.noise.rows[:3]
    )
    with pytest.raises(DataError, match="have noise='much', which is not a number from 0"):
        figure_svg("noise", Results("noise", findings.noise.sources, rows))
