"""No column changes its kind in silence: words among numbers, and what else looks like numbers."""

from __future__ import annotations

import json
import re

import numpy as np
import pyarrow as pa
import pytest

import memohop
from memohop.data.tables import read_graph
from memohop.data.tables.columns import ColumnEncoder, fit_columns

ROWS = 400


def table_of(tmp_path, **columns):
    """The paths of a node and an edge table with these columns."""
    names = ["id", *columns, "kind"]
    rows = zip(range(ROWS), *columns.values(), ["x", "y"] * (ROWS // 2), strict=True)
    lines = [
        ",".join(f'"{cell}"' if "," in str(cell) else str(cell) for cell in row) for row in rows
    ]
    (tmp_path / "n.csv").write_text("\n".join([",".join(names), *lines, ""]), encoding="utf-8")
    (tmp_path / "e.csv").write_text("source,target\n0,1\n", encoding="utf-8")
    return tmp_path / "n.csv", tmp_path / "e.csv"


def with_words(numbers, words, at=17):
    """The numbers as strings, some of them replaced by words."""
    cells = [str(number) for number in numbers]
    for step, word in enumerate(words):
        cells[(at * (step + 1)) % len(cells)] = word
    return cells


WORDS = ("not measured", "see note 3", "?", "unknown")


class TestAFewWordsAmongNumbers:
    @pytest.mark.parametrize(
        "numbers",
        [
            np.random.default_rng(0).normal(size=ROWS).round(3),
            np.random.default_rng(0).lognormal(sigma=3, size=ROWS).round(3),
            np.random.default_rng(0).poisson(0.1, ROWS),
            np.arange(ROWS) % 9 + 1,  # codes
            [f"+{number}" if number > 0 else number for number in range(-ROWS // 2, ROWS // 2)],
        ],
        ids=["numbers", "long tail", "mostly 0", "codes", "signs"],
    )
    def test_the_column_is_read_as_if_they_were_missing(self, numbers, tmp_path):
        cells = with_words(numbers, WORDS)
        blank = ["" if cell in WORDS else cell.removeprefix("+") for cell in cells]
        (found,) = (read_graph(*table_of(tmp_path, v=cells), label="kind"),)
        expected = read_graph(*table_of(tmp_path, v=blank), label="kind")
        assert found.encoder.feature_names == expected.encoder.feature_names
        np.testing.assert_array_equal(found.x, expected.x)
        (told,) = (line for line in found.warnings if "'v'" in line)
        assert (
            f"is read as numbers, with 4 of {ROWS} values taken for missing, such as 'not measured'"
            in told
        )
        assert "--categorical v" in told
        assert told in found.notes
        assert not any("'v'" in line for line in expected.warnings)

    def test_codes_survive_json_and_later_tables(self, tmp_path):
        cells = with_words(np.arange(ROWS) % 9 + 1, WORDS)
        graph = read_graph(*table_of(tmp_path, dorm=cells), label="kind")
        encoder = ColumnEncoder.from_json(json.loads(json.dumps(graph.encoder.to_json())))
        assert encoder == graph.encoder
        files = tmp_path / "n.csv", tmp_path / "e.csv"
        np.testing.assert_array_equal(read_graph(*files, label=None, encoder=encoder).x, graph.x)
        numbers = encoder.transform(pa.table({"dorm": [1, 2, None]}))[0]
        words = encoder.transform(pa.table({"dorm": ["1", "2", "what"]}))[0]
        np.testing.assert_array_equal(numbers, words)

    def test_prepared_tables_are_read_and_told_alike(self, tmp_path):
        cells = with_words(np.arange(ROWS) / 8, WORDS)
        files = table_of(tmp_path, v=cells, price=[f"{n},5" for n in range(ROWS)])
        graph = read_graph(*files, label="kind")
        prepared = memohop.prepare(*files, tmp_path / "graph", label="kind")
        np.testing.assert_array_equal(prepared.x, graph.x)
        told = [line for line in graph.warnings if "column '" in line]
        assert len(told) == 2
        assert [line for line in prepared.warnings if "column '" in line] == told

    def test_the_user_decides(self, tmp_path):
        cells = with_words(np.arange(ROWS) % 9, WORDS)
        graph = read_graph(*table_of(tmp_path, v=cells), label="kind", categorical=["v"])
        assert "v=8" in graph.encoder.feature_names
        assert not any("'v'" in line for line in graph.warnings)

    def test_many_placeholders_are_no_words(self, tmp_path):
        cells = ["?" if n % 3 else str(n / 4) for n in range(ROWS)]
        graph = read_graph(*table_of(tmp_path, v=cells), label="kind")
        assert graph.encoder.feature_names == ["v", "v is missing"]
        assert any(
            f"266 of {ROWS} values taken for missing, such as '?'" in w for w in graph.warnings
        )


def told_of(values, reading=None):
    column = pa.chunked_array([values])
    _, told = fit_columns([("v", column)], {"v": reading} if reading else None)
    return next(iter(told), None)


class TestWhatLooksLikeSomethingElse:
    @pytest.mark.parametrize(
        ("values", "words"),
        [
            (["1,5", "2,25"] * 40, "a category: 80 of 80 values look like numbers, such as '1,5'"),
            (["1", "2"] * 40, r"numbers, such as '1' \(numeric=\['v'\], --numeric v reads them"),
            ([f"{n}" for n in range(80)], "left out: 80 of 80 values look like numbers"),
            ([f"{n}.5" for n in range(80)], "words: 80 of 80 values look like numbers"),
            (
                [*["3", "4"] * 30, *["low", "high"] * 10],
                r"a category: 60 of 80 values look like numbers, such as '3', but not 'low'",
            ),
            ([f"{n},282 ft" for n in range(1, 80)], "words: 79 of 79 .* numbers with a unit"),
            (["€5", "€7.50"] * 40, "a category: 80 of 80 values look like numbers with a unit"),
            ([f"{n % 28 + 1}/03/2024" for n in range(80)], r"dates, .* \(as 2024-05-31 18:30 they"),
            (["True", "False"] * 40 + ["perhaps"], r"80 of 81 .* true or false, .* not 'perhaps'"),
        ],
    )
    def test_is_told(self, values, words):
        assert re.search(words, told_of(values))

    @pytest.mark.parametrize(
        "values",
        [
            ["red", "blue"] * 40,
            [f"a sentence about {n} things" for n in range(80)],
            ["B12", "C3"] * 40,
            ["yes", "no"] * 40,
            ["36,200", "1,000"] * 40,
            ["1.2.3", "10.0.1"] * 40,
            [1, 2] * 40,
            [None] * 80,
        ],
    )
    def test_what_is_read_as_it_looks_is_not_told(self, values):
        assert told_of(pa.array(values)) is None

    def test_a_user_who_decided_is_not_told(self):
        assert told_of(["1", "2"] * 40, "categorical") is None
        assert told_of(["1", "2"] * 40, "text") is None
        assert told_of(["1", "2"] * 40, "numeric") is None

    def test_hundreds_of_columns_are_a_few_lines(self):
        commas = pa.chunked_array([["1,5", "2,25"] * 9])
        lines = fit_columns((f"v{n}", commas) for n in range(300))[1]
        assert [line.partition(" is ")[0] for line in lines[:5]] == [
            f"column 'v{n}'" for n in range(5)
        ]
        assert lines[5:] == [
            "so are the values of 295 more: columns 'v5', 'v6', 'v7', 'v8', 'v9' and 290 more"
        ]


def test_whether_a_column_is_text_does_not_depend_on_its_first_rows(monkeypatch):
    monkeypatch.setattr("memohop.data.tables._text_columns._ROWS", 100)
    words = [f"word{n}" for n in range(100)]
    sentences = [f"a longer sentence, number {n}" for n in range(900)]
    table = pa.table(
        {
            "late": words + sentences,
            "early": sentences + words,
            "few": sentences[:100] + words * 9,
        }
    )
    encoder, _ = fit_columns(zip(table.column_names, table.columns, strict=True))
    kinds = [type(column).__name__ for column in encoder.columns]
    assert kinds == ["Words", "Words", "Category"]
