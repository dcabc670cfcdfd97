"""The report as text: what is on the page, and what is not."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

from study.pages.page import Findings, report_page
from study.paper.table1 import printed_ranks, printed_table1
from study.runs.results import Results

ROOT = Path(__file__).parents[3]


@pytest.fixture(scope="module")
def root(page):
    return ET.fromstring(page.removeprefix("<!DOCTYPE html>\n"))


@pytest.fixture(scope="module")
def empty():
    return report_page(Findings())


def text_of(element):
    return " ".join("".join(element.itertext()).split())


def find_table(root, name):
    (table,) = [table for table in root.iter("table") if table.get("id") == name]
    return [[*row] for row in table.iter("tr")]


def test_the_page_is_well_formed_and_each_id_is_there_once(page, root):
    assert page.startswith("<!DOCTYPE html>\n<html")
    ids = [element.get("id") for element in root.iter() if element.get("id")]
    assert len(ids) == len(set(ids))
    assert not any(re.search(r"\s", name) for name in ids)
    targets = {a.get("href")[1:] for a in root.iter("a") if a.get("href").startswith("#")}
    assert targets <= set(ids)
    assert len(targets) == 11


def test_the_page_loads_nothing(page):
    without_links = re.sub(r'<a href="https?://[^"]*">', "", page)
    without_links = without_links.replace("http://www.w3.org/2000/svg", "")  # a name
    assert not re.search(r"https?:|url\(|@import|<link|<img|src=", without_links)


@pytest.mark.parametrize("index", [0, 1])
def test_every_cell_of_table_1_is_there_measured_and_printed(root, tables, index):
    table = tables[index]
    head, *rows = find_table(root, f"scores-{table.protocol}")
    assert [text_of(cell) for cell in head] == ["model", *table.columns, "average rank"]
    assert [text_of(row[0]) for row in rows] == list(table.rows)
    for row, model in zip(rows, table.rows, strict=True):
        for cell, dataset in zip(row[1:-1], table.columns, strict=True):
            scores, printed = table.measured[model, dataset], printed_table1()[model, dataset]
            assert float(cell.get("data-value")) == scores.mean
            shown = text_of(cell)
            assert shown.startswith(f"{scores.mean:.2f} ± {scores.std:.2f}")
            assert f"{printed.mean:.2f}" in shown
            assert (cell.find("b") is not None) == table.among_the_best(model, dataset)
        assert f"{printed_ranks()[model]:.1f} (" in text_of(row[-1])


def test_the_page_says_that_nine_datasets_are_too_few_for_wilcoxon(root):
    text = text_of(root)
    assert (
        text.count("could not have told any pair apart") == 4
    )  # two protocols, the print, the fair table
    assert "with 9 datasets and 91 pairs the least possible p is 0.36" in text
    assert "separates gcn+mmp from gat+de, gat" in text


def test_differences_within_a_dataset_have_their_p_value(root, tables):
    table = tables[0]
    _, *rows = find_table(root, "lead-gcn+mmp-paper")
    assert [text_of(row[0]) for row in rows] == [m for m in table.rows if m != "gcn+mmp"]
    points, p = table.leads("gcn+mmp", "squirrel")["gcn"]
    row = next(row for row in rows if text_of(row[0]) == "gcn")
    cell = row[1 + table.columns.index("squirrel")]
    assert float(cell.get("data-value")) == points
    assert text_of(cell) == f"+{points:.1f}p < 0.001"
    assert p < 0.001
    assert cell.find("b") is not None


def test_figures_and_their_numbers_are_there(root):
    charts = [svg.get("aria-label") for svg in root.iter("{http://www.w3.org/2000/svg}svg")]
    assert sum("added edges" in chart for chart in charts) == 4
    assert sum("weight of the decoupling loss" in chart for chart in charts) == 6
    assert sum("local homophily" in chart for chart in charts) == 3
    assert sum("Average ranks" in chart for chart in charts) == 8  # wide and narrow
    assert len(find_table(root, "noise-cora-paper-")) == 1 + 9
    assert len(find_table(root, "lambda-changes")) == 1 + 24


def test_timings_add_up(root, findings):
    _, *rows = find_table(root, "timing-list")
    networks = [float(row[4].get("data-value")) for row in rows]
    assert sum(networks) == sum(len(results.rows) for results in findings.results)
    seconds = [float(row[6].get("data-value")) for row in rows]
    assert sum(seconds) == pytest.approx(0.25 * sum(networks))
    assert text_of(rows[0][7]) == "2.500"  # 0.25 s for 100 epochs


def test_data_versions_and_software(root):
    _, *rows = find_table(root, "data-versions")
    assert {text_of(row[0]) for row in rows} >= {"texas", "cornell-legacy", "pubmed"}
    assert text_of(root).count("A Processor <&> Co; memohop 0.0, python 3.11.0") == 4
    assert "commit 0123456789ab" in text_of(root)


def test_the_errata_are_those_of_the_file(root):
    text = text_of(next(div for div in root.iter("div") if div.get("class") == "errata"))
    words = re.findall(r"\w+", (ROOT / "ERRATA.md").read_text(encoding="utf-8"))
    there = set(re.findall(r"\w+", text))
    assert len(words) > 300
    assert set(words) - there <= {"Errata", "https", "arxiv", "org", "abs"}


def test_every_figure_has_its_commands(root):
    blocks = ["".join(pre.itertext()) for pre in root.iter("pre")]
    commands = [line for block in blocks for line in block.splitlines()]
    assert "python -m study run table1 --protocol paper" in commands
    results = "--results study/results"
    assert f"python -m study table table1 --protocol official {results}/table1.json" in commands
    assert "python -m study figure noise --results study/results/noise.json" in commands
    assert "python -m study figure lambda --results study/results/lambda.json" in commands
    assert "python -m study bench gates --datasets texas,squirrel,cora" in commands


def test_what_is_missing_is_named_with_its_command(empty):
    root = ET.fromstring(empty.removeprefix("<!DOCTYPE html>\n"))
    missing = [text_of(div) for div in root.iter("div") if div.get("class") == "missing"]
    for what, command in {
        "Table 1": "python -m study run table1",
        "the noise figure": "python -m study run noise",
        "the lambda figure": "python -m study run lambda",
        "the gates": "python -m study bench gates",
        "timings": "python -m study run table1",
    }.items():
        assert any(f"no results for {what} yet" in text and command in text for text in missing)
    assert "From the printed means" in text_of(root)  # the paper's own ranks need no results


def test_results_are_read_from_a_folder_as_far_as_they_are_there(findings, tmp_path, empty):
    assert report_page(Findings.load(tmp_path)) == empty
    findings.table1.save(tmp_path / "table1.json")
    assert Findings.load(tmp_path) == Findings(table1=findings.table1)


def test_a_page_of_a_few_cells(findings):
    few = tuple(
        r for r in findings.table1.rows if r.dataset == "texas" and r.model in ("gcn", "mlp")
    )
    page = report_page(Findings(table1=Results("table1", findings.table1.sources, few)))
    root = ET.fromstring(page.removeprefix("<!DOCTYPE html>\n"))
    assert len(find_table(root, "scores-paper")) == 3
    assert "ranks-paper" not in page
