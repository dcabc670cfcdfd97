"""The leaderboard and the cells of the fair table, on the page and from the command."""

import json
import re
from statistics import mean, median, stdev

import numpy as np
import pytest
from msgspec.structs import replace

from fair_again import FLAWED, NUMBER, holm, honest, number, plain, t_test, table_of, text
from made_up_search import tuned as tuned
from study.cli import main
from study.pages.page import Findings, report_page


@pytest.mark.parametrize("name", ["fair-board", "fair-flawed"])
def test_the_leaderboard(name, fair_page, cells):
    if name == "fair-flawed" and len(honest(cells)) == len(cells):
        pytest.skip("data with a flaw are not measured yet")
    head, rows = table_of(fair_page, name)
    own = {
        key: cell
        for key, cell in cells.items()
        if (cell["dataset"] in FLAWED) == (name == "fair-flawed")
    }
    columns = list(dict.fromkeys(column for _, column in own))
    assert head[-len(columns) :] == columns
    assert {plain(row) for row in rows} == {row for row, _ in own}
    means = {key: round(mean(cell["scores"]), 4) for key, cell in own.items()}
    complete = [row for row in dict.fromkeys(row for row, _ in own)
                if all((row, column) in own for column in columns)]  # fmt: skip
    best = {c: max((r for r, col in own if col == c), key=lambda r: mean(own[r, c]["scores"]))
            for c in columns}  # fmt: skip
    for row in rows:
        model, shown = plain(row), dict(zip(head, row, strict=True))
        takes_labels = any(c["axes"].get("labels") for (r, _), c in own.items() if r == model)
        assert text(row[0]).endswith("†") == takes_labels
        if name == "fair-board" and model not in complete:
            assert text(shown["average rank"]) == text(shown["mean"]) == "-"
        elif name == "fair-board":
            ranks = [1 + sum(means[o, c] > means[model, c] for o in complete)
                     + sum(means[o, c] == means[model, c] for o in complete if o != model) / 2
                     for c in columns]  # fmt: skip
            assert number(text(shown["average rank"])) == pytest.approx(mean(ranks), abs=0.0051)
            average = mean(mean(own[model, c]["scores"]) for c in columns)
            assert number(text(shown["mean"])) == pytest.approx(average, abs=0.0051)
        networks = sum(rung[2] for (r, _), c in own.items() if r == model for rung in c["rungs"])
        assert number(text(shown["networks"])) == networks
        for column in columns:
            if (model, column) not in own:
                assert text(shown[column]) == "-"
                continue
            scores = own[model, column]["scores"]
            assert number(text(shown[column])) == pytest.approx(mean(scores), abs=0.0051)
            assert f"± {stdev(scores):.2f}" in shown[column]
    for column in columns:
        winner = own[best[column], column]
        p = {
            row: t_test(np.subtract(winner["scores"], cell["scores"]), cell["dataset"])
            for (row, other), cell in own.items()
            if other == column and row != best[column]
        }
        worse = {row for row, value in holm(p).items() if value < 0.05}
        shown = {plain(row): row[head.index(column)] for row in rows}
        assert {row for row, cell in shown.items() if "<i>" in cell} == worse
        bold = [row for row, cell in shown.items() if "<b>" in cell]
        assert bold == [best[column]] * (len(worse) == len(p))


def test_score_against_cost(fair_page, cells):
    own = honest(cells)
    matches = re.findall(rf"<title>([^:<]+): {NUMBER} after {NUMBER} s</title>", fair_page)
    assert matches
    for row, score, seconds in matches:
        of_row = [cell for (name, _), cell in own.items() if name == row]
        spent = sum(rung[4] for cell in of_row for rung in cell["rungs"])
        assert number(seconds) == pytest.approx(spent, abs=0.51)
        assert number(score) == pytest.approx(mean(mean(c["scores"]) for c in of_row), abs=0.0051)


def test_every_cell_with_its_setting_spread_and_command(fair_page, cells, raw):
    names = re.findall(r"<summary>(.*?)</summary>", fair_page)
    assert set(names) == {column for _, column in cells}
    tables = re.findall(r'id="(fair-(?:cells|flawed)-\d+)"', fair_page)
    count = 0
    for column, name in zip(names, tables, strict=True):
        head, rows = table_of(fair_page, name)
        for row in rows:
            cell, shown = cells[plain(row), column], dict(zip(head, row, strict=True))
            first, chosen = cell["rungs"][0], cell["rungs"][-1][0][0]
            val = [100 * score for score in first[1] if score >= 0]
            spread = f"{min(val):.1f} to {max(val):.1f}, median {median(val):.1f}"
            assert text(shown["tried"]) == spread
            assert number(text(shown["test"])) == pytest.approx(mean(cell["scores"]), abs=0.0051)
            mean_val = 100 * np.mean(cell["val"])
            assert number(text(shown["validation"])) == pytest.approx(mean_val, abs=0.0051)
            drawn = raw["drawn"][cell["space"]]
            setting = dict(zip(drawn["names"], drawn["rows"][chosen], strict=True))
            told = dict(part.split(" ", 1) for part in text(shown["chosen setting"]).split(", "))
            assert set(told) == {key for key, value in setting.items() if value is not None}
            for key, value in told.items():
                known = setting[key]
                assert (
                    float(value) == known if type(known) is float else value == str(known).lower()
                )
            command = f"python -m study run {raw['experiment']} --only dataset={cell['dataset']} "
            assert command + f"--only model={cell['model']}" in shown["chosen setting"]
            count += 1
    assert count == len(cells)


def test_the_markdown_has_the_figures_of_the_page(fair_page, fair_path, cells, capsys):
    assert main(["table", "fair", "--results", str(fair_path)]) == 0
    tables = capsys.readouterr().out.split("\n\n")
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in tables[0].splitlines()]
    head, _, *body = rows
    for row in body:
        for column, shown in zip(head[2:], row[2:], strict=True):
            cell = cells.get((row[0].removesuffix(" †"), column))
            wanted = (
                "-" if cell is None else f"{mean(cell['scores']):.2f} ± {stdev(cell['scores']):.2f}"
            )
            assert shown.strip("*") == wanted


def test_json_and_csv_have_one_object_for_each_cell(fair_path, cells, capsys):
    assert main(["table", "fair", "--results", str(fair_path), "--format", "json"]) == 0
    rows = json.loads(capsys.readouterr().out)
    assert len(rows) == len(cells)
    assert sum(row["flawed_data"] for row in rows) == len(cells) - len(honest(cells))
    assert {row["takes_labels"] for row in rows if row["model"] == "mlp"} == {False}
    assert main(["table", "fair", "--results", str(fair_path), "--format", "csv"]) == 0
    assert capsys.readouterr().out.count("\n") == len(cells) + 1
    assert main(["table", "fair", "--results", str(fair_path), "--format", "latex"]) == 2
    assert main(["table", "fair", "--results", str(fair_path), "--protocol", "paper"]) == 2


def test_the_parts_make_the_whole(tuned, tmp_path, capsys):
    path, texts = tmp_path / "fair.json", []
    tuned.save(path)
    for part in ("board", "flawed", "effects", "answers", "best"):
        assert main(["table", "fair", "--results", str(path), "--part", part]) == 0
        texts.append(capsys.readouterr().out.strip())
    assert main(["table", "fair", "--results", str(path)]) == 0
    assert "\n\n".join(filter(None, texts)) == capsys.readouterr().out.strip()
    assert main(["table", "fair", "--format", "csv", "--part", "best"]) == 2
    assert "--part best goes with table fair" in capsys.readouterr().err


def test_what_is_not_measured_to_the_end_is_told(tuned):
    page = report_page(Findings(fair=replace(tuned, unfinished=("pubmed", "tolokers"))))
    assert "Not measured to the end yet, and left out: pubmed, tolokers." in page
    assert "Not measured to the end" not in report_page(Findings(fair=tuned))
