"""Numbers and times as people spell them."""

from __future__ import annotations

import datetime

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import memohop
from memohop.data.tables import read_graph
from memohop.data.tables.columns import fit_columns
from memohop.data.tables.spelling import NumberSpelling, TimeSpelling, numbers_in, spelling_of
from memohop.errors import DataError


def strings(*cells):
    return pa.chunked_array([pa.array(cells, pa.string())])


def moments(spelling, *cells):
    seconds = spelling.read(strings(*cells)).to_pylist()
    epoch = datetime.datetime(1970, 1, 1)
    return [None if s is None else str(epoch + datetime.timedelta(seconds=s)) for s in seconds]


def told_of(cells):
    return fit_columns([("v", strings(*cells))])[1]


class TestNumbers:
    @pytest.mark.parametrize(
        ("cell", "number", "unit"),
        [
            ("36,200", 36200, ""),
            ("1\u00a0234\u202f567", 1234567, ""),
            ("1'234.5", 1234.5, ""),
            ("-5", -5, ""),
            ("\N{MINUS SIGN}5", -5, ""),
            ("+.5", 0.5, ""),
            ("(1,200)", -1200, ""),
            ("($5.50)", -5.5, "$"),
            ("-$5", -5, "$"),
            ("$-5", -5, "$"),
            ("$237,000,000", 237e6, "$"),
            ("US$ 7", 7, "US$"),
            ("5 €", 5, "€"),
            ("EUR 5", 5, "EUR"),
            ("Rs. 500", 500, "Rs."),
            ("178 min", 178, "min"),
            ("1 hour", 1, "hour"),
            ("2 hours", 2, "hour"),
            ("5,282 ft", 5282, "ft"),
            ("36%", 36, "%"),
            ("7 °C", 7, "°C"),
            ("3 sq ft", 3, "sq ft"),
            ("80 km/h", 80, "km/h"),
            ("12 m²", 12, "m²"),
            ('32"', 32, '"'),
            ("1.2k", 1200, ""),
            ("3.4M", 3.4e6, ""),
            ("2.5B views", 2.5e9, "view"),
            ("$1.5 billion", 1.5e9, "$"),
            ("€75.0m", 75e6, "€"),
            ("5M€", 5e6, "€"),
            ("5m", 5, "m"),  # metres
            ("5 K", 5, "K"),  # degrees
            ("10,000+", 10000, "+"),
            ("1.5e3", 1500, ""),
        ],
    )
    def test_are_read_with_their_unit(self, cell, number, unit):
        numbers = numbers_in(strings("x", cell), decimal_comma=False)
        assert numbers.rows.tolist() == [1]
        assert numbers.values[0] == pytest.approx(number, rel=1e-15)
        assert numbers.units.to_pylist() == [unit]

    @pytest.mark.parametrize(
        "cell",
        [
            *(
                "(5",
                "5)",
                "1,5",
                "0,250",
                "12,34,567",
                "1.2.3",
                "B12",
                "12 34",
                "--5",
                "",
                "$",
                "-",
            ),
            *(
                "007AB",
                "10-20",
                "1/2",
                "12:30",
                "nan",
                "inf",
                "0x1f",
                "5 (about)",
                "5'11\"",
                "\N{SUPERSCRIPT TWO}",
            ),
        ],
    )
    def test_other_strings_are_none(self, cell):
        assert not numbers_in(strings(cell), decimal_comma=False).rows.size

    def test_commas_are_those_of_the_column(self):
        german = ["1,5", "1.234,75", "1.234", "12", "(3,25)"]
        assert NumberSpelling.of(strings(*german)) == NumberSpelling("", decimal_comma=True)
        expected = [1.5, 1234.75, 1234, 12, -3.25]
        assert NumberSpelling("", decimal_comma=True).read(strings(*german)).to_pylist() == expected
        assert not NumberSpelling.of(strings("1,234", "12")).decimal_comma  # nothing shows it
        assert not NumberSpelling.of(strings("1,5", "1.5")).decimal_comma
        assert not NumberSpelling.of(strings(*["1,234"] * 99, "1,5")).decimal_comma  # a mistake

    def test_another_unit_is_no_number_and_0_needs_none(self):
        assert NumberSpelling("$").read(strings("$5", "€5", "5", "0", "-")).to_pylist() == [
            *(5, None, None, 0, None),
        ]

    @given(
        number=st.integers(-(10**12), 10**12),
        digits=st.integers(0, 3),
        separator=st.sampled_from(["", ",", " ", "'", "\u202f"]),
        decimal_comma=st.booleans(),
        brackets=st.booleans(),
        unit=st.sampled_from([("", ""), ("$", ""), ("", " ft"), ("", "%"), ("", "kg"), ("£ ", "")]),
    )
    def test_what_is_written_is_read(
        self, number, digits, separator, decimal_comma, brackets, unit
    ):
        value = number / 10**digits
        text = f"{abs(value):,.{digits}f}".replace(",", "_").replace(
            ".", "," if decimal_comma else "."
        )
        text = text.replace("_", "." if decimal_comma and separator == "," else separator)
        text = text.join(unit)
        negative = f"({text})" if brackets else f"-{text}"
        numbers = numbers_in(strings(negative if value < 0 else text), decimal_comma=decimal_comma)
        np.testing.assert_allclose(numbers.values, [value], rtol=1e-15)
        assert numbers.units.to_pylist() == ["".join(unit).strip()]


class TestTimes:
    @pytest.mark.parametrize(
        ("cell", "moment"),
        [
            ("2023/01/31", "2023-01-31 00:00:00"),
            ("2023-1-5", "2023-01-05 00:00:00"),
            ("2024-05-31T18:30Z", "2024-05-31 18:30:00"),
            ("2024-05-31 18:30:00.5+02:00", "2024-05-31 16:30:00"),
            ("2024-05-31 18:30 -0530", "2024-06-01 00:00:00"),
            ("2024-05-31 06:30 PM EST", "2024-05-31 23:30:00"),
            ("3 May 2021", "2021-05-03 00:00:00"),
            ("3rd May, 2021", "2021-05-03 00:00:00"),
            ("03-MAY-21", "2021-05-03 00:00:00"),
            ("May 3, 2021", "2021-05-03 00:00:00"),
            ("Sept. 5 1999", "1999-09-05 00:00:00"),
            ("May 2021", "2021-05-01 00:00:00"),
            ("Sunday, March 5, 2023 at 5:00 p.m.", "2023-03-05 17:00:00"),
            ("Mon Sep 24 03:35:21 +0000 2012", "2012-09-24 03:35:21"),
            ("12:30 am", "1970-01-01 00:30:00"),
            ("31.12.2023", "2023-12-31 00:00:00"),
            ("1. 2. 2023", "2023-02-01 00:00:00"),
            ("31/12/69 23:59:59", "1969-12-31 23:59:59"),
            ("1-2-68", "2068-02-01 00:00:00"),
        ],
    )
    def test_are_read(self, cell, moment):
        assert moments(TimeSpelling("day"), cell) == [moment]

    @pytest.mark.parametrize(
        "cell",
        [
            *(
                "2023-02-29",
                "31/04/2023",
                "12/31/2023",
                "2023-13-01",
                "0000-00-00",
                "24:00",
                "9:60",
            ),
            *("13:00 PM", "2010/2011", "2023", "1.2.3", "10.0.0.1", "May", "3 Mai 2021", "2023-05"),
        ],
    )
    def test_other_strings_are_none(self, cell):
        assert moments(TimeSpelling("day"), cell) == [None]

    @pytest.mark.parametrize(
        ("cells", "first", "proof"),
        [
            (["01/02/2023", "13/02/2023"], "day", "13/02/2023"),
            (["31/02/2023", "01/02/2023", "13/02/2023"], "day", "13/02/2023"),
            (["01/02/2023", "01/13/2023"], "month", "01/13/2023"),
            (["13/02/2023", "14/02/2023", "01/13/2023"], "day", "13/02/2023"),
            (["01/02/2023", "03/04/2023"], "month", None),
            (["01/02/2023", "01/03/2023"], "day", None),  # the first of each month
            (["01.02.2023", "03.04.2023"], "day", None),
            (["2023-01-02", "3 May 2021"], None, None),
        ],
    )
    def test_the_column_decides_whether_the_day_comes_first(self, cells, first, proof):
        assert TimeSpelling.of(strings(*cells)) == TimeSpelling(first, proof)

    @given(
        st.datetimes(datetime.datetime(1969, 1, 1), datetime.datetime(2068, 12, 31)),
        st.sampled_from(
            [
                "%Y-%m-%d",
                "%Y/%m/%d",
                "%d.%m.%Y",
                "%d/%m/%y",
                "%d %b %Y",
                "%B %d, %Y",
                "%a, %d %b %Y",
            ]
        ),
        st.sampled_from(["", " %H:%M:%S", "T%H:%M:%S", " %I:%M:%S %p", ", %H:%M:%S.%f"]),
        st.sampled_from([("", 0), ("Z", 0), ("+0530", -19800), (" -08:00", 28800)]),
    )
    def test_what_is_written_is_read(self, moment, date, clock, zone):
        name, later = zone if clock else ("", 0)
        written = moment.strftime(date + clock) + name
        moment = moment.replace(microsecond=0)
        if not clock:
            moment = datetime.datetime.combine(moment.date(), datetime.time())
        moment += datetime.timedelta(seconds=later)
        assert moments(TimeSpelling("day"), written) == [str(moment)]


@given(st.lists(st.none() | st.text() | st.text("0123456789.,:/-+() $%kMTZ"), max_size=6))
def test_any_strings_are_read_or_not(cells):
    text = strings(*cells)
    spelling = spelling_of(text)
    values = spelling.read(text).to_pylist()
    assert len(values) == len(cells)
    assert all(value is None for cell, value in zip(cells, values, strict=True) if cell is None)


class TestColumns:
    def test_of_money_and_units_are_standardised_numbers(self, encoded, saved):
        cells = ["$237,000,000", "$1.5 million", "-", "$0", None, "($5)"]
        encoder, x, _ = encoded(v=cells)
        values = np.array([237e6, 1.5e6, 0, -5])
        np.testing.assert_allclose(
            x[[0, 1, 3, 5], 0], (values - values.mean()) / values.std(), rtol=1e-6
        )
        assert x[:, 1].tolist() == [0, 0, 1, 0, 1, 0]
        assert encoder.feature_names == ["v", "v is missing"]
        assert "the number in $" in encoder.describe()[0]
        again, notes = saved(encoder).transform(pa.table({"v": ["$237,000,000", "€1"]}))
        assert again[:, 0].tolist() == [x[0, 0], 0]
        assert "1 value that are not numbers in $, such as '€1'" in notes[0]

    def test_placeholders_are_missing_however_many(self, encoded):
        encoder, x, _ = encoded(v=["NR"] * 6 + ["178 min", "90 min", "n/a"])
        assert encoder.feature_names == ["v", "v is missing"]
        assert x[:, 1].tolist() == [1] * 6 + [0, 0, 1]

    def test_a_later_table_has_the_commas_and_the_order_of_the_first(self, encoded, saved):
        cells = {"v": ["1,5", "2,25", "1.000"], "day": ["13/01/2023", "02/01/2023", "05/06/2023"]}
        encoder, x, _ = encoded(**cells)
        later = saved(encoder).transform(pa.table({"v": ["1.000"], "day": ["05/06/2023"]}))[0]
        np.testing.assert_array_equal(later, x[2:])
        with pytest.raises(DataError, match=r"'day' held times .* such as '12/31/2023'"):
            encoder.transform(pa.table({"v": ["1"], "day": ["12/31/2023"]}))

    def test_mixed_units_are_told_and_not_mixed(self):
        cells = [f"{n} {'ft' if n % 3 else 'm'}" for n in range(2, 90)]
        (line,) = told_of(cells)
        assert "look like numbers in different units, 'ft', 'm', such as '2 ft'" in line
        assert "is read as words" in line
        (line,) = told_of([*(f"{n} ft" for n in range(99)), "7 m"])
        assert (
            "read as numbers in ft, with 1 of 100 values taken for missing, such as '7 m'" in line
        )

    @pytest.mark.parametrize(
        ("cells", "told"),
        [
            (["1,5", "2,25"], "is read as numbers, with decimal commas"),
            (["13/01/2023", "01/02/2023"], "times, the day first, as '13/01/2023' shows"),
            (["3/1/2023", "1/2/2023"], "times, the month first, which is a guess"),
        ],
    )
    def test_what_was_decided_is_told_in_a_line(self, cells, told):
        (line,) = told_of(cells)
        assert told in line
        assert "--categorical v takes all as they are spelled" in line

    def test_what_leaves_no_doubt_is_not_told(self):
        for cells in (["$5", "$7"], ["5 km", "7 km"], ["2024/05/31", "2024/06/30"]):
            assert told_of(cells) == []

    def test_a_user_may_ask_for_the_number_alone(self, encoded):
        cells = ["2024-01-01 05:00", "2024-03-02 06:00", "2024-07-05 23:00"]
        assert encoded({"v": "numeric"}, v=cells)[0].feature_names == ["v"]
        _, x, _ = encoded({"v": "numeric"}, v=["5 km", "7 km", "3 miles", "far"])
        assert x.tolist() == [[-1, 0], [1, 0], [0, 1], [0, 1]]


class TestCycles:
    def test_are_on_circles(self, encoded):
        cells = ["2024-01-01 00:00", "2024-01-02 06:00", "2024-07-03 12:00", None]
        encoder, x, _ = encoded(at=cells)
        assert encoder.feature_names == [
            "at",
            *(f"at: {wave} of hour" for wave in ("sine", "cosine")),
            *(f"at: {wave} of weekday" for wave in ("sine", "cosine")),
            *(f"at: {wave} of day of year" for wave in ("sine", "cosine")),
            "at is missing",
        ]
        days = 2 * np.pi * np.array([0, 1, 2]) / 7  # Monday, Tuesday, Wednesday
        dates = 2 * np.pi * np.array([0, 1, 184]) / 365.25
        expected = [[0, 1, 0], [1, 0, -1]]
        expected += [np.sin(days), np.cos(days), np.sin(dates), np.cos(dates)]
        np.testing.assert_allclose(x[:3, 1:7], np.transpose(expected), atol=1e-6)
        assert x[3].tolist() == [0] * 7 + [1]

    def test_those_that_do_not_move_have_no_features(self, encoded):
        days = [datetime.date(2024, 1, day) for day in (1, 8, 15)]
        assert encoded(v=days)[0].columns[0].cycles == ("day of year",)
        hours = [datetime.time(5), datetime.time(6)]
        assert encoded(v=hours)[0].columns[0].cycles == ("hour",)
        assert encoded(v=["5:00", "6:30 PM"])[0].columns[0].cycles == ("hour",)

    def test_stored_times_and_spelled_ones_are_alike(self, encoded):
        times = [datetime.datetime(2024, 5, day, day % 24) for day in range(1, 30)]
        _, x, _ = encoded(v=times)
        for spelled in ("%d.%m.%Y %H:%M", "%B %d, %Y %I:%M %p"):
            _, same, _ = encoded(v=[time.strftime(spelled) for time in times])
            np.testing.assert_array_equal(same, x)


def test_labels_and_times_of_nodes_profit(files, tmp_path):
    rows = [f'{n},{n % 7},"${n + 1},000",{n % 28 + 1}/03/2024' for n in range(60)]
    paths = files("\n".join(["id,v,price,day", *rows, ""]), "source,target\n0,1\n")
    graph = read_graph(*paths, label="price", time_column="day")
    assert graph.task == "numbers"
    assert graph.data.y.tolist() == [1000 * n for n in range(1, 61)]
    assert "label 'price' is read as numbers in $" in graph.warnings
    day = "column 'day' is read as times, the day first, as '13/03/2024' shows"
    assert day in graph.warnings
    days = np.arange(60) % 28
    assert days[graph.masks.test].min() > days[graph.masks.val].max()
    prepared = memohop.prepare(*paths, tmp_path / "g", label="price", time_column="day")
    np.testing.assert_array_equal(prepared.y, graph.data.y)
    np.testing.assert_array_equal(prepared.masks.test, graph.masks.test)
    assert day in prepared.warnings


def test_labels_with_decimal_commas_are_told():
    nodes = {"id": [*range(60)], "size": [f"{n},5" for n in range(60)]}
    graph = read_graph(nodes, {"s": [0], "t": [1]}, label="size")
    assert graph.data.y.tolist() == [n + 0.5 for n in range(60)]
    assert any("numbers, with decimal commas" in line for line in graph.warnings)


@pytest.mark.parametrize(
    ("weights", "read"),
    [(["1.2k", "+3", "1,000"], [1200, 3, 1000]), (["5 %", "7%", "1%"], [5, 7, 1])],
)
def test_weights_are_spelled_numbers_without_a_unit(weights, read, files, tmp_path):
    rows = [f'{n},{n + 1},"{weight}"' for n, weight in enumerate(weights)]
    nodes = "id,v,kind\n0,1,x\n1,2,y\n2,3,x\n3,4,y\n"
    paths = files(nodes, "\n".join(["source,target,w", *rows, ""]))
    graph = read_graph(*paths, label="kind", weight="w", directed=True)
    assert graph.data.edge_weight.tolist() == read
    prepared = memohop.prepare(*paths, tmp_path / "g", label="kind", weight="w", directed=True)
    assert prepared.out.weights.tolist() == read
    for wrong in ("$5", "1,5", "5 km", "5.1.2024"):
        paths = files(nodes, f'source,target,w\n0,1,"{wrong}"\n1,2,"{wrong}"\n')
        with pytest.raises(DataError, match=f"has the weight '.{wrong[1:]}' in row 1"):
            read_graph(*paths, label="kind", weight="w")


def test_stars_stay_classes():
    nodes = {"id": [*range(60)], "stars": [f"{n % 5 + 1} stars" for n in range(60)]}
    graph = read_graph(nodes, {"s": [0], "t": [1]}, label="stars")
    assert graph.classes[0] == "1 stars"


def test_prepared_tables_are_read_alike(files, tmp_path):
    days = [f"{n % 28 + 1}/{n % 12 + 1}/2024 0{n % 9}:00" for n in range(300)]
    rows = [f'{n},{"xy"[n % 2]},"${n * 1234:,}",{n} min,"{n},5",{days[n]}' for n in range(300)]
    header = "id,kind,budget,length,price,at"
    paths = files("\n".join([header, *rows, ""]), "source,target\n0,1\n")
    graph = read_graph(*paths, label="kind")
    prepared = memohop.prepare(*paths, tmp_path / "graph", label="kind")
    np.testing.assert_array_equal(prepared.x, graph.x)
    assert prepared.encoder == graph.encoder
    assert graph.x.shape == (300, 3 + 7)
    assert [n for n in prepared.warnings if "column" in n] == [
        note for note in graph.warnings if "column" in note
    ]
