"""Numbers and times as people spell them."""

from __future__ import annotations

import datetime

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from memohop.data.tables import _time_spelling, spelling
from memohop.data.tables._time_spelling import TimeSpelling
from memohop.data.tables.spelling import NumberSpelling, numbers_in, spelling_of


def strings(*cells):
    return pa.chunked_array([pa.array(cells, pa.string())])


def moments(spelling, *cells):
    seconds = spelling.read(strings(*cells)).to_pylist()
    epoch = datetime.datetime(1970, 1, 1)
    return [None if s is None else str(epoch + datetime.timedelta(seconds=s)) for s in seconds]


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


@given(
    st.lists(
        st.text("0123456789.,-+() $%kMTZ:/eE'")
        | st.sampled_from(["1.234", "1,5", "-5.", ".5", "007", "(1,200)", "5 ft", "€1.5m", "+3"]),
        max_size=6,
    ),
    st.booleans(),
)
def test_quick_looks_change_nothing(cells, decimal_comma):
    text = strings(*cells)
    quick = numbers_in(text, decimal_comma=decimal_comma)
    with pytest.MonkeyPatch.context() as patch:
        for look, slow in (("_BEGINS", ""), ("_HAS_UNIT", ""), ("PLAIN", "^$x"), ("_WHOLE", "^$x")):
            patch.setattr(spelling, look, slow)
        thorough = numbers_in(text, decimal_comma=decimal_comma)
    assert quick.rows.tolist() == thorough.rows.tolist()
    np.testing.assert_array_equal(quick.values, thorough.values)
    assert quick.units.to_pylist() == thorough.units.to_pylist()


@given(st.lists(st.text("0123456789.,-+/: TZapmMayfSunrthc"), max_size=6))
def test_quick_looks_at_times_change_nothing(cells):
    text = strings(*cells, "3 May 2021", "12/31/2023", "18:30", "2024-05-31")
    quick = TimeSpelling.of(text)
    read = quick.read(text).to_pylist()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_time_spelling, "_TIMES", dict.fromkeys(_time_spelling._TIMES, ""))
        assert TimeSpelling.of(text) == quick
        assert quick.read(text).to_pylist() == read
