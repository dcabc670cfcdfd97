"""No column changes its kind in silence: words among numbers, and what else looks like numbers."""

from __future__ import annotations

import re

import numpy as np
import pyarrow as pa
import pytest

import memohop
from memohop.data.tables import read_graph
from memohop.data.tables.columns import fit_columns

ROWS = 400
WORDS = ("not measured", "see note 3", "?", "unknown")


@pytest.fixture
def table_of(files):
    """Writes a node and an edge table with these columns, and gives their paths."""

    def write(**columns):
        rows = zip(range(ROWS), *columns.values(), ["x", "y"] * (ROWS // 2), strict=True)
        lines = [",".join(f'"{cell}"' for cell in row) for row in rows]
        header = ",".join(["id", *columns, "kind"])
        return files("\n".join([header, *lines, ""]), "source,target\n0,1\n")

    return write


def with_words(numbers):
    """The numbers as strings, some of them replaced by words."""
    cells = [str(number) for number in numbers]
    for step, word in enumerate(WORDS):
        cells[17 * (step + 1)] = word
    return cells


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
    def test_the_column_is_read_as_if_they_were_missing(self, numbers, table_of):
        cells = with_words(numbers)
        blank = ["" if cell in WORDS else cell.removeprefix("+") for cell in cells]
        graph = read_graph(*table_of(v=cells), label="kind")
        expected = read_graph(*table_of(v=blank), label="kind")
        assert graph.encoder.feature_names == expected.encoder.feature_names
        np.testing.assert_array_equal(graph.x, expected.x)
        (told,) = (line for line in graph.warnings if "'v'" in line)
        assert (
            f"is read as numbers, with 4 of {ROWS} values taken for missing, such as 'not measured'"
            in told
        )
        assert "--categorical v" in told
        assert told in graph.notes
        missing = "4 values that are not numbers, such as 'not measured', count as missing"
        assert f"column 'v': {missing}" in graph.notes
        plain = [line for line in expected.warnings if "'v'" in line]
        assert all("is read as numbers and as categories, as codes are" in line for line in plain)

    def test_codes_survive_json_and_later_tables(self, table_of, saved):
        paths = table_of(dorm=with_words(np.arange(ROWS) % 9 + 1))
        graph = read_graph(*paths, label="kind")
        encoder = saved(graph.encoder)
        assert encoder == graph.encoder
        np.testing.assert_array_equal(read_graph(*paths, label=None, encoder=encoder).x, graph.x)
        numbers, _ = encoder.transform(pa.table({"dorm": [1, 2, None]}))
        words, _ = encoder.transform(pa.table({"dorm": ["1", "2", "what"]}))
        np.testing.assert_array_equal(numbers, words)

    def test_prepared_tables_are_read_and_told_alike(self, table_of, tmp_path):
        cells = with_words(np.arange(ROWS) / 8)
        paths = table_of(v=cells, price=[f"{n},5" for n in range(ROWS)])
        graph = read_graph(*paths, label="kind")
        prepared = memohop.prepare(*paths, tmp_path / "graph", label="kind")
        np.testing.assert_array_equal(prepared.x, graph.x)
        told = [line for line in graph.warnings if "column '" in line]
        assert len(told) == 2
        assert [line for line in prepared.warnings if "column '" in line] == told

    def test_dates_that_are_none_in_a_few_rows_are_missing_there(self, table_of):
        days = [f"{n % 28 + 1:02}/{n % 12 + 1:02}/2023" for n in range(ROWS)]
        wrong = {7: "31/02/2023", 60: "soon", 61: "13/13/2023"}
        cells = [wrong.get(n, day) for n, day in enumerate(days)]
        blank = ["" if n in wrong else day for n, day in enumerate(days)]
        graph, expected = (read_graph(*table_of(v=each), label="kind") for each in (cells, blank))
        np.testing.assert_array_equal(graph.x, expected.x)
        (told,) = (line for line in graph.warnings if "'v'" in line)
        assert f"with 3 of {ROWS} values taken for missing, such as '31/02/2023'" in told
        most = [day if n % 5 < 3 else "soon" for n, day in enumerate(days)]
        graph = read_graph(*table_of(v=most), label="kind")
        (told,) = (line for line in graph.warnings if "'v'" in line)
        assert f"is read as words: 240 of {ROWS} values look like times, such as" in told
        assert "but not 'soon' (numeric=['v'], --numeric v reads them as such)" in told

    def test_many_placeholders_are_no_words(self, table_of):
        cells = ["?" if n % 3 else str(n / 4) for n in range(ROWS)]
        graph = read_graph(*table_of(v=cells), label="kind")
        assert graph.encoder.feature_names == ["v", "v is missing"]
        told = f"266 of {ROWS} values taken for missing, such as '?'"
        assert any(told in line for line in graph.warnings)


def told_of(values, reading=None):
    column = pa.chunked_array([values])
    _, told = fit_columns([("v", column)], {"v": reading} if reading else None)
    return next(iter(told), None)


class TestWhatLooksLikeSomethingElse:
    @pytest.mark.parametrize(
        ("values", "words"),
        [
            (["1.5", "2.5", "3,5"] * 9, "a category: 18 of 27 .* like numbers, .*, but not '3,5'"),
            (["1", "2"] * 40, r"numbers, such as '1' \(numeric=\['v'\], --numeric v reads them"),
            ([f"{n}" for n in range(80)], "left out: 80 of 80 values look like numbers"),
            ([f"{n}.5" for n in range(80)], "words: 80 of 80 values look like numbers"),
            (
                [*["3", "4"] * 30, *["low", "high"] * 10],
                r"a category: 60 of 80 values look like numbers, such as '3', but not 'low'",
            ),
            (["5 m", "7 kg"] * 40, "a category: 80 of 80 .* numbers in different units, 'm', 'kg'"),
            (["5 m", "7 ft"] * 40, "numbers in m, 40 in m, 40 in ft: all in m"),
            (["1/3/2024", "soon"] * 40 + ["5/6/2024"], r"a category: 41 of 81 .* look like times"),
            (["True", "False"] * 40 + ["perhaps"], r"80 of 81 .* true or false, .* not 'perhaps'"),
        ],
    )
    def test_is_told(self, values, words):
        assert re.search(words, told_of(values))

    @pytest.mark.parametrize(
        "values",
        [["red", "blue"] * 40, ["B12", "C3"] * 40, ["yes", "no"] * 40, ["1.2.3", "10.0.1"] * 40],
    )
    def test_what_is_read_as_it_looks_is_not_told(self, values):
        assert told_of(pa.array(values)) is None

    @pytest.mark.parametrize(
        ("values", "told"),
        [
            (
                [f"a sentence about {n} things" for n in range(80)],
                "is read as words (--categorical v takes each text as a whole)",
            ),
            (
                ["36,200", "1,000"] * 40,
                "is read as numbers with separators or signs (--categorical v takes all as they "
                "are spelled)",
            ),
            (
                ["5 km", "7 km"] * 40,
                "is read as numbers in km (--categorical v takes all as they are spelled)",
            ),
            (
                ["2024-05-31", "2024-06-01"] * 40,
                "is read as times (--categorical v takes all as they are spelled)",
            ),
            (
                [1, 2, 5] * 40,
                "is read as numbers and as categories, as codes are (--numeric v or --categorical "
                "v decides)",
            ),
            ([None] * 80, "is left out: all values are equal, or different without a pattern"),
        ],
    )
    def test_what_was_guessed_changed_or_left_out_is_told(self, values, told):
        assert told_of(pa.array(values)) == f"column 'v' {told}"

    @pytest.mark.parametrize("reading", ["categorical", "text", "numeric"])
    def test_a_user_who_decided_is_not_told(self, reading):
        assert told_of(["1", "2"] * 40, reading) is None

    def test_columns_that_are_read_alike_share_a_line(self):
        columns = {f"v{n}": pa.chunked_array([["5 km", "7 km"] * 9]) for n in range(7)}
        columns |= {f"w{n}": pa.chunked_array([["5 kg", "7 kg"] * 9]) for n in range(2)}
        columns |= {f"x{n}": pa.chunked_array([[n] * 18]) for n in range(2)}
        overrule = "(--categorical {} takes all as they are spelled)"
        assert fit_columns(columns.items())[1] == [
            "columns 'v0', 'v1', 'v2', 'v3', 'v4' and 2 more are read as numbers in km "
            + overrule.format("v0"),
            "columns 'w0', 'w1' are read as numbers in kg " + overrule.format("w0"),
            "columns 'x0', 'x1' are left out: all values are equal, or different without a pattern",
        ]

    def test_hundreds_of_columns_are_a_few_lines(self):
        commas = pa.chunked_array([["1,5", "2,25"] * 9])
        lines = fit_columns((f"v{n}", commas) for n in range(300))[1]
        assert [line.partition(" is ")[0] for line in lines[:5]] == [
            f"column 'v{n}'" for n in range(5)
        ]
        assert lines[5:] == [
            "so are the values of 295 more: columns 'v5', 'v6', 'v7', 'v8', 'v9' and 290 more"
        ]
