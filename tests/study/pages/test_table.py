"""Table 1 as text."""

from __future__ import annotations

import csv
import io
import re

from study.pages.table1 import distance, latex, lines, markdown
from study.pages.tables import comma_separated, score
from study.paper.table1 import Printed, difference, tables_of
from study.runs.results import Results, measured


def cells(text):
    """The rows of a Markdown table."""
    rows = [line[1:-1].split("|") for line in text.splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in row] for row in rows]


def test_score_and_distance():
    assert score(Printed(81.349, 4.171, "ours")) == "81.35 ± 4.17"
    assert score(Printed(67.57, None, "ours")) == "67.57"
    assert distance(-4.04, -1.128) == "-4.04 (-1.1 s)"
    assert distance(0.5, None) == "+0.50"
    assert distance(None, None) == "-"


def test_markdown_has_measured_printed_and_difference_of_every_cell(tables):
    (table, _) = tables
    rows = cells(markdown(tables[:1]))
    head = rows[0]
    assert head[2:-1] == list(table.columns)
    assert len(rows) == 2 + 3 * 14
    first = next(i for i, row in enumerate(rows) if row[0] == "gcn+mmp")
    shown, printed, away = rows[first : first + 3]
    cell = table.measured["gcn+mmp", "texas"]
    text = score(cell)
    assert shown[2] == (f"**{text}**" if table.among_the_best("gcn+mmp", "texas") else text)
    assert printed[1:3] == ["printed", "85.39 ± 3.58"]
    assert printed[-1] == "2.9 (3.00)"
    assert away[2] == distance(*difference(cell))


def test_bold_is_what_is_not_significantly_worse_than_the_best(tables):
    (table, _) = tables
    bold = {
        (model, dataset)
        for model, _, *texts, _ in lines(table, "bold {}")
        for dataset, text in zip(table.columns, texts, strict=True)
        if text.startswith("bold")
    }
    assert bold == {key for key in table.measured if table.among_the_best(*key)}
    for dataset in table.columns:
        column = {model: table.measured[model, dataset].mean for model in table.rows}
        assert (max(column, key=column.get), dataset) in bold
    assert len(bold) > len(table.columns)  # noise was made up that hides some differences
    assert markdown([table]).count("**") == 2 * len(bold)


def test_the_legend_says_what_the_numbers_are(tables):
    text = markdown(tables)
    assert "Protocol paper." in text
    assert "Protocol official." in text
    assert "ddof=1) over 10 splits, with 1 seed each" in text
    assert "corrected resampled t-test" in text
    assert "over 9 datasets" in text


def test_a_table_with_holes(findings):
    rows = tuple(r for r in findings.table1.rows if (r.model, r.dataset) != ("gcn", "texas"))
    rows = tuple(r for r in rows if r.protocol == "paper")
    (table,) = tables_of(measured(Results("table1", findings.table1.sources, rows)))
    shown = cells(markdown([table]))
    first = next(i for i, row in enumerate(shown) if row[0] == "gcn")
    assert [row[2] for row in shown[first : first + 3]] == ["-", "59.46 ± 5.25", "-"]
    assert "over 8 datasets" in markdown([table])


def test_latex_has_as_many_columns_as_its_head(tables):
    text = latex(tables)
    assert text.count(r"\begin{tabular}{llrrrrrrrrrr}") == 2
    rows = [line for line in text.splitlines() if line.endswith(r"\\")]
    assert len(rows) == 2 * (1 + 3 * 14)
    assert {row.count("&") for row in rows} == {11}
    assert r"85.39 $\pm$ 3.58" in text
    assert not re.search(r"(?<!\\)[%_]|±", text)  # each of these would end or break a line


def test_csv_is_the_flat_rows(tables):
    rows = [row for table in tables for row in table.flat()]
    read = list(csv.DictReader(io.StringIO(comma_separated(rows))))
    assert len(read) == len(rows) == 2 * 126
    for text, row in zip(read, rows, strict=True):
        assert text["dataset"] == row["dataset"]
        assert float(text["mean"]) == row["mean"]
        assert text["lam"] == str(row.get("lam", ""))
