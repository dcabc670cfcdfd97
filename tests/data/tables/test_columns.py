"""Columns that become features, value by value."""

from __future__ import annotations

import datetime

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from memohop.data.tables import _text_columns, columns
from memohop.data.tables.cells import RejectColumn, as_text
from memohop.data.tables.column import Column
from memohop.errors import DataError, UsageError


def transformed(encoder, **columns):
    return encoder.transform(pa.table(columns))[0]


def test_strings_of_a_slice_are_read_as_they_are():
    words = ["ab", "", None, "long word", "NA", "", "e"]
    text = as_text(pa.chunked_array([words, words]).slice(3, 8))
    text.validate(full=True)
    assert text.to_pylist() == ["long word", None, None, "e", "ab", None, None, "long word"]


class TestNumbers:
    def test_are_standardised_and_gaps_are_the_mean(self, encoded):
        encoder, x, notes = encoded(v=[1.0, None, 3.0, float("nan"), 5.0])
        spread = (8 / 3) ** 0.5
        assert encoder.feature_names == ["v", "v is missing"]
        np.testing.assert_allclose(x[:, 0], [-2 / spread, 0, 0, 0, 2 / spread], rtol=1e-6)
        assert x[:, 1].tolist() == [0, 1, 0, 1, 0]
        assert notes == []
        assert encoder.describe() == [
            "column 'v': one feature, the number, standardised, and one that says where it is "
            "missing"
        ]

    def test_far_away_are_cut_off_and_told(self, encoded):
        _, x, (note,) = encoded(v=[0.0] * 500 + [1.0] * 500 + [1e9])
        assert x[-1, 0] == 10
        assert "'v': 1 value more than 10 standard deviations from the mean" in note

    @pytest.mark.parametrize("value", [float("inf"), float("-inf"), 1e300])
    def test_infinite_or_huge_are_named(self, value, encoded):
        with pytest.raises(DataError, match=r"'v' holds .* in row 3 \(2 such value"):
            encoded(v=[1.0, 2.0, value, 4.0, value])

    def test_mostly_0_are_not_centred_and_a_typical_one_is_1(self, encoded):
        encoder, x, _ = encoded(v=[0] * 16 + [2, 2, 6])
        assert encoder.columns[0].log_scale == 2
        np.testing.assert_allclose(x[-3:, 0], [1, 1, 2])
        assert not x[:-3].any()
        _, x, _ = encoded(v=[0.0] * 16 + [0.1, 0.3, 0.3])
        np.testing.assert_allclose(x[-3:, 0], np.log2([4 / 3, 2, 2]), rtol=1e-6)

    def test_with_a_long_tail_are_on_a_log_scale(self, encoded):
        values = np.exp(np.random.default_rng(0).normal(10, 2, 200))
        encoder, x, _ = encoded(v=values)
        scale = encoder.columns[0].log_scale
        assert scale == pytest.approx(np.quantile(values, 0.1))
        expected = np.log1p(values / scale)
        expected = (expected - expected.mean()) / expected.std()
        np.testing.assert_allclose(x[:, 0], expected, rtol=1e-5, atol=1e-6)
        assert "logarithmic scale for its long tail" in encoder.describe()[0]
        for others in (np.append(values, -1.5), np.linspace(0.5, 9, 200)):
            assert encoded(v=others)[0].columns[0].log_scale is None

    def test_days_and_times_are_seconds_whatever_their_unit(self, encoded):
        days = [datetime.date(2020, 1, 1), datetime.date(2020, 1, 2), datetime.date(2020, 1, 5)]
        encoder, x, _ = encoded(day=days)
        stamps = pa.array(days, pa.date32()).cast(pa.timestamp("us"))
        np.testing.assert_allclose(transformed(encoder, day=stamps), x)
        _, clock, _ = encoded(at=[datetime.time(0), datetime.time(1), datetime.time(4)])
        np.testing.assert_allclose(clock[:, 0], x[:, 0], rtol=1e-6)

    def test_times_as_strings_are_seconds(self, encoded):
        strings = ["2024-05-31", "2024-05-31T18:30", "2024-06-02 00:00:10.5Z"]
        moments = [(2024, 5, 31), (2024, 5, 31, 18, 30), (2024, 6, 2, 0, 0, 10)]
        moments = [datetime.datetime(*moment) for moment in moments]
        encoder, x, _ = encoded(v=[*strings, None])
        np.testing.assert_allclose(x, encoded(v=[*moments, None])[1], rtol=1e-6)
        assert encoder.describe()[0].startswith(
            "column 'v': one feature for the time in seconds, standard"
        )
        same = ["2024-05-31T12:00Z", "2024-05-31T14:00+02:00", "2024-05-31T06:30-0530"]
        assert encoded(v=same)[0].left_out == ("v",)


class TestCodes:
    @pytest.mark.parametrize(
        ("name", "values"),
        [
            ("dorm", [3, 7, 3, 9, 7, 2]),
            ("zip_code", [10115, 20095, 10115, 5]),
            ("schoolType", [1, 2, 1, 3]),
            ("v", [n % 28 + 86 for n in range(280)]),  # begins further from 0 than it goes on
            ("v", [n % 30 * 7 + 1 for n in range(300)]),  # gaps all over
            ("v", [n % 9 + 1 for n in range(90)]),  # few
        ],
    )
    def test_are_read_both_ways(self, name, values, encoded):
        encoder, x, _ = encoded(**{name: values})
        assert [type(column).__name__ for column in encoder.columns] == ["Code"]
        assert encoder.feature_names[0] == name
        x = x if isinstance(x, np.ndarray) else x.toarray()
        array = np.array(values, dtype=float)
        expected = (array - array.mean()) / array.std()
        np.testing.assert_allclose(x[:, 0], expected, rtol=1e-5, atol=1e-6)
        for row, value in enumerate(values):
            (place,) = np.flatnonzero(x[row, 1:])
            assert encoder.feature_names[1 + place] in (f"{name}={value}", f"{name}=other")

    def test_gaps_make_floats_of_them_and_a_new_one_is_another(self, encoded):
        encoder, x, _ = encoded(dorm=[92.0, None, 92.0, 86.0, 86.0, 7.0])
        assert encoder.feature_names == [
            *("dorm", "dorm=86", "dorm=92", "dorm=other"),
            "dorm is missing",
        ]
        assert x[:, 1:].argmax(axis=1).tolist() == [1, 3, 1, 0, 0, 2]
        later = transformed(encoder, dorm=[92, 1000])
        assert later[:, 1:].tolist() == [[0, 1, 0, 0], [0, 0, 1, 0]]
        assert encoder.describe() == [
            "column 'dorm': one feature for the number, standardised, and one feature for each of "
            "2 values and one for all other values, and one that says where it is missing"
        ]


class TestFlags:
    @pytest.mark.parametrize(
        "cells",
        [
            [True, False, None, True],
            [1, 0, None, 1],
            ["Yes", "no", None, "YES "],
            ["t", "f", None, "T"],
            ["TRUE", "false", None, "True"],
        ],
    )
    def test_are_one_or_zero_and_other_spellings_will_do_later(self, cells, encoded, saved):
        encoder, x, _ = encoded(on=cells)
        assert encoder.feature_names == ["on", "on is missing"]
        assert x.tolist() == [[1, 0], [0, 0], [0, 1], [1, 0]]
        again = saved(encoder)
        assert again.text_names == ["on"] * isinstance(cells[0], str)
        for later in ([0, 1, None], ["No", "yes", None], ["0", "1", None]):
            assert transformed(again, on=later).tolist() == [[0, 0], [1, 0], [0, 1]]
        with pytest.raises(DataError, match=r"'on' held true or false .* such as 'maybe'"):
            transformed(again, on=["maybe"])


class TestCategories:
    def test_are_one_feature_each_the_most_frequent_first(self, encoded, monkeypatch):
        encoder, x, notes = encoded(c=["b", "a", "b", "a", "b", "rare", None, "NA", ""])
        assert encoder.feature_names == ["c=b", "c=a", "c=other", "c is missing"]
        assert x.argmax(axis=1).tolist() == [0, 1, 0, 1, 0, 2, 3, 3, 3]
        assert x.sum() == 9
        assert "such as 'rare': counted as other" in notes[0]
        monkeypatch.setattr(_text_columns, "CATEGORIES", 2)
        encoder, x, _ = encoded(c=["a"] * 2 + ["b"] * 3 + ["c"] * 4)
        assert encoder.feature_names == ["c=c", "c=b", "c=other"]
        assert x.sum(axis=0).tolist() == [4, 3, 2]

    def test_of_pandas_are_alike(self, encoded):
        plain = ["b", "a", "b", "a", None]
        dictionary = pa.array(plain).dictionary_encode()
        np.testing.assert_array_equal(encoded(c=plain)[1], encoded(c=dictionary)[1])


class TestWords:
    def test_are_those_of_at_least_two_texts(self, encoded):
        texts = [f"Graph number{n}, the GRAPH of_{n % 2} Übung" for n in range(60)]
        encoder, x, notes = encoded(t=[*texts, None])
        assert encoder.feature_names == [
            *("t: graph", "t: the", "t: übung", "t: of_0", "t: of_1"),
            "t is missing",
        ]
        assert x[0].tolist() == [1, 1, 1, 1, 0, 0]
        assert x[1].tolist() == [1, 1, 1, 0, 1, 0]
        assert x[60].tolist() == [0, 0, 0, 0, 0, 1]
        assert notes == []
        assert transformed(encoder, t=["graph!", "unheard of"]).tolist() == [
            [1, 0, 0, 0, 0, 0],
            [0] * 6,
        ]

    def test_are_the_same_when_texts_are_cut_up_in_pieces(self, encoded, monkeypatch):
        texts = [f"w{n % 7} w{n % 11} w{n % 13}" for n in range(200)]
        encoder, x, _ = encoded(t=texts)
        monkeypatch.setattr(_text_columns, "_ROWS", 7)
        pieces = encoded(t=pa.chunked_array([texts[:30], texts[30:31], texts[31:]]))
        assert encoder == pieces[0]
        np.testing.assert_array_equal(x, pieces[1])
        names = np.array([name.removeprefix("t: ") for name in encoder.feature_names])
        for row, text in enumerate(texts):
            assert set(names[x[row] > 0]) == set(text.split())

    def test_are_limited_by_their_number_and_by_bytes(self, encoded, monkeypatch):
        texts = [f"n{n} {'most' if n % 4 else 'few'} every" for n in range(200)]  # 200, 150, 50
        assert encoded(t=texts)[0].feature_names == ["t: every", "t: most", "t: few"]
        monkeypatch.setattr(columns, "ENTRIES", 399)
        encoder, x, _ = encoded(t=texts)
        assert encoder.feature_names == ["t: every", "t: most"]
        assert np.count_nonzero(x) == 350
        words = [column.vocabulary for column in encoded(t=texts, u=texts)[0].columns]
        assert words == [("every",), ("every",)]  # never none at all
        monkeypatch.undo()
        monkeypatch.setattr(_text_columns, "WORDS", 2)
        assert encoded(t=texts)[0].feature_names == ["t: every", "t: most"]


class TestColumnsTogether:
    def test_those_treated_alike_are_told_in_one_line(self, encoded):
        encoder, *_ = encoded(**{f"v{n}": [1, 2 + n, 3] for n in range(7)}, on=[True, False, True])
        assert encoder.describe() == [
            "columns 'v0', 'v1', 'v2', 'v3', 'v4' and 2 more: one feature, the number, "
            "standardised",
            "column 'on': one feature, 1 for true and 0 for false",
        ]

    def test_those_that_say_nothing_are_left_out_and_told(self, encoded):
        nothing = {
            "same": [1, 1, 1],
            "yes": [True, True, True],
            "word": ["a", "a", "a"],
            "unique": ["p", "q", "r"],
            "empty": pa.nulls(3),
        }
        encoder, x, _ = encoded(**nothing, v=[1, 2, 3])
        assert encoder.left_out == tuple(nothing)
        assert x.shape == (3, 1)
        assert "left out" in encoder.describe()[-1]
        encoder, x, _ = encoded(**nothing)
        assert x.tolist() == [[1], [1], [1]]
        assert encoder.feature_names == ["constant"]

    def test_those_that_are_not_there_are_named(self, encoded):
        encoder, *_ = encoded(v=[1, 2], w=[3, 4])
        with pytest.raises(UsageError, match=r"lacks the column\(s\) 'w'"):
            transformed(encoder, v=[1, 2])


class TestANewKind:
    """One class, and its name in the list of kinds."""

    class Price(Column, frozen=True, tag="price"):
        asked_for = "numeric"

        @classmethod
        def fit(cls, cells):
            text = cells.text.drop_null()
            if not pc.all(pc.match_substring_regex(text, r"^[0-9]+ euros?$")).as_py():
                raise RejectColumn("not all are prices in euros")
            return cls(cells.name, cells.text.null_count > 0, verbatim=True)

        def describe(self):
            return "one feature, the price"

        def fill(self, cells, matrix):
            said = pc.extract_regex(cells.text, r"^(?P<price>[0-9]+)")
            price = pc.struct_field(said, "price").cast(pa.float64()).to_numpy()
            matrix.put(np.arange(len(price)), 0, np.nan_to_num(price))
            return np.isnan(price), []

    def test_takes_its_columns_and_leaves_the_others(self, encoded, monkeypatch):
        monkeypatch.setattr(columns, "KINDS", (self.Price, *columns.KINDS))
        encoder, x, notes = encoded(a=["5 euros", None, "1 euro"], b=["p", "p", None], c=[1, 2, 4])
        assert [type(column).__name__ for column in encoder.columns] == [
            *("Price", "Category", "Number"),
        ]
        assert encoder.feature_names == ["a", "a is missing", "b=p", "b is missing", "c"]
        assert x[:, :2].tolist() == [[5, 0], [0, 1], [1, 0]]
        assert encoder.text_names == ["a", "b"]
        assert notes == []
        assert encoder.describe()[0] == (
            "column 'a': one feature, the price, and one that says where it is missing"
        )
