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
from memohop.data.tables.columns import ColumnEncoder, fit_columns
from memohop.errors import DataError, UsageError


def encoded(**column):
    table = pa.table(column)
    encoder, _ = fit_columns(zip(table.column_names, table.columns, strict=True))
    return encoder, encoder.transform(table)


def test_strings_of_a_slice_are_read_as_they_are():
    words = ["ab", "", None, "long word", "NA", "", "e"]
    found = as_text(pa.chunked_array([words, words]).slice(3, 8))
    found.validate(full=True)
    assert found.to_pylist() == ["long word", None, None, "e", "ab", None, None, "long word"]


def test_numbers_are_standardised_and_gaps_are_the_mean():
    encoder, (x, notes) = encoded(v=[1.0, None, 3.0, float("nan"), 5.0])
    spread = (8 / 3) ** 0.5
    assert encoder.feature_names == ["v", "v is missing"]
    np.testing.assert_allclose(x[:, 0], [-2 / spread, 0, 0, 0, 2 / spread], rtol=1e-6)
    assert x[:, 1].tolist() == [0, 1, 0, 1, 0]
    assert notes == []
    assert encoder.describe() == [
        "column 'v': one feature, the number, standardised, and one that says where it is missing"
    ]


def test_columns_treated_alike_are_told_in_one_line():
    encoder, _ = encoded(**{f"v{n}": [1, 2 + n, 3] for n in range(7)}, on=[True, False, True])
    assert encoder.describe() == [
        "columns 'v0', 'v1', 'v2', 'v3', 'v4' and 2 more: one feature, the number, standardised",
        "column 'on': one feature, 1 for true and 0 for false",
    ]


def test_a_number_far_away_is_cut_off_and_told():
    _, (x, notes) = encoded(v=[0.0] * 500 + [1.0] * 500 + [1e9])
    assert x[-1, 0] == 10
    assert len(notes) == 1
    assert "'v': 1 value more than 10 standard deviations from the mean" in notes[0]


@pytest.mark.parametrize("value", [float("inf"), float("-inf"), 1e300])
def test_a_number_that_is_infinite_or_huge_is_named(value):
    with pytest.raises(DataError, match=r"'v' holds .* in row 3 \(2 such value"):
        encoded(v=[1.0, 2.0, value, 4.0, value])


def test_dates_and_times_are_numbers_of_seconds_whatever_their_unit():
    days = [datetime.date(2020, 1, 1), datetime.date(2020, 1, 2), datetime.date(2020, 1, 5)]
    encoder, (x, _) = encoded(day=days)
    stamps = pa.table({"day": pa.array(days, pa.date32()).cast(pa.timestamp("us"))})
    np.testing.assert_allclose(encoder.transform(stamps)[0], x)
    _, (clock, _) = encoded(at=[datetime.time(0), datetime.time(1), datetime.time(4)])
    np.testing.assert_allclose(clock, x, rtol=1e-6)


def test_flags_are_one_or_zero_and_whole_numbers_will_do_later():
    encoder, (x, _) = encoded(on=[True, False, None, True])
    assert x.tolist() == [[1, 0], [0, 0], [0, 1], [1, 0]]
    assert encoder.transform(pa.table({"on": [0, 1]}))[0].tolist() == [[0, 0], [1, 0]]
    with pytest.raises(DataError, match="'on' held true or false"):
        encoder.transform(pa.table({"on": ["maybe"]}))


def test_categories_are_one_feature_each_the_most_frequent_first():
    encoder, (x, notes) = encoded(c=["b", "a", "b", "a", "b", "rare", None, "NA", ""])
    assert encoder.feature_names == ["c=b", "c=a", "c=other", "c is missing"]
    assert x.argmax(axis=1).tolist() == [0, 1, 0, 1, 0, 2, 3, 3, 3]
    assert x.sum() == 9
    assert "such as 'rare': counted as other" in notes[0]


def test_a_pandas_category_is_a_category():
    plain = ["b", "a", "b", "a", None]
    dictionary = pa.array(plain).dictionary_encode()
    np.testing.assert_array_equal(encoded(c=plain)[1][0], encoded(c=dictionary)[1][0])


def test_there_are_at_most_so_many_categories(monkeypatch):
    monkeypatch.setattr(_text_columns, "CATEGORIES", 2)
    encoder, (x, _) = encoded(c=["a"] * 2 + ["b"] * 3 + ["c"] * 4)
    assert encoder.feature_names == ["c=c", "c=b", "c=other"]
    assert x.sum(axis=0).tolist() == [4, 3, 2]


def test_texts_are_bags_of_words():
    texts = [f"Graph number{n}, the GRAPH of_{n % 2} Übung" for n in range(60)]
    encoder, (x, notes) = encoded(t=[*texts, None])
    assert encoder.feature_names == [
        *("t: graph", "t: the", "t: übung", "t: of_0", "t: of_1"),
        "t is missing",
    ]
    assert x[0].tolist() == [1, 1, 1, 1, 0, 0]
    assert x[1].tolist() == [1, 1, 1, 0, 1, 0]
    assert x[60].tolist() == [0, 0, 0, 0, 0, 1]
    assert notes == []
    later = encoder.transform(pa.table({"t": ["graph!", "unheard of"]}))
    assert later[0].tolist() == [[1, 0, 0, 0, 0, 0], [0] * 6]


def test_words_are_the_same_when_texts_are_cut_up_in_pieces(monkeypatch):
    texts = [f"w{n % 7} w{n % 11} w{n % 13}" for n in range(200)]
    whole = encoded(t=texts)
    monkeypatch.setattr(_text_columns, "_ROWS", 7)
    pieces = encoded(t=pa.chunked_array([texts[:30], texts[30:31], texts[31:]]))
    assert whole[0] == pieces[0]
    np.testing.assert_array_equal(whole[1][0], pieces[1][0])
    for row, text in enumerate(texts):
        has = {
            name.removeprefix("t: ")
            for name, value in zip(whole[0].feature_names, whole[1][0][row], strict=True)
            if value
        }
        assert has == set(text.split())


def test_the_number_of_words_is_limited_by_their_number_and_by_bytes(monkeypatch):
    texts = [f"n{n} {'most' if n % 4 else 'few'} every" for n in range(200)]  # of 200, 150 and 50
    assert encoded(t=texts)[0].feature_names == ["t: every", "t: most", "t: few"]
    monkeypatch.setattr(columns, "ENTRIES", 399)
    encoder, (x, _) = encoded(t=texts)
    assert encoder.feature_names == ["t: every", "t: most"]
    assert np.count_nonzero(x) == 350
    words = [c.vocabulary for c in encoded(t=texts, u=texts)[0].columns]
    assert words == [("every",), ("every",)]  # never none at all
    monkeypatch.undo()
    monkeypatch.setattr(_text_columns, "WORDS", 2)
    assert encoded(t=texts)[0].feature_names == ["t: every", "t: most"]


def test_one_word_or_few_values_make_a_category_and_no_text():
    names = [f"name{n // 2}" for n in range(200)]
    few = [f"the {n % 50} of many words" for n in range(200)]
    encoder, _ = encoded(names=names, few=few)
    assert [type(column).__name__ for column in encoder.columns] == ["Category", "Category"]


def test_columns_that_say_nothing_are_left_out_and_told():
    encoder, (x, _) = encoded(
        same=[1, 1, 1],
        yes=[True, True, True],
        word=["a", "a", "a"],
        unique=["p", "q", "r"],
        empty=pa.nulls(3),
        v=[1, 2, 3],
    )
    assert encoder.left_out == ("same", "yes", "word", "unique", "empty")
    assert x.shape == (3, 1)
    assert "left out" in encoder.describe()[-1]


def test_without_any_column_there_is_one_constant_feature():
    encoder, (x, _) = encoded(same=[1, 1, 1])
    assert x.tolist() == [[1], [1], [1]]
    assert encoder.feature_names == ["constant"]


def test_a_type_that_is_no_feature():
    with pytest.raises(DataError, match="'v' is of type list<"):
        encoded(v=[[1.0], [2.0]])


def test_missing_columns_are_named():
    encoder, _ = encoded(v=[1, 2], w=[3, 4])
    with pytest.raises(UsageError, match=r"lacks the column\(s\) 'w'"):
        encoder.transform(pa.table({"v": [1, 2]}))


@pytest.mark.parametrize(
    "value", [{}, {"columns": [{"kind": "colour", "name": "v"}]}, {"columns": 3}]
)
def test_json_that_is_no_encoder(value):
    with pytest.raises(DataError, match="describes no columns"):
        ColumnEncoder.from_json(value)


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

        def fill(self, column, matrix):
            said = pc.extract_regex(as_text(column), r"^(?P<price>[0-9]+)")
            price = pc.struct_field(said, "price").cast(pa.float64()).to_numpy()
            matrix.put(np.arange(len(price)), 0, np.nan_to_num(price))
            return np.isnan(price), []

    def test_takes_its_columns_and_leaves_the_others(self, monkeypatch):
        monkeypatch.setattr(columns, "KINDS", (self.Price, *columns.KINDS))
        encoder, (x, notes) = encoded(
            a=["5 euros", None, "1 euro"], b=["p", "p", None], c=[1, 2, 4]
        )
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
