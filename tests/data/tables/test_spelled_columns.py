"""Columns, labels, times and weights that people spell, from a table to the features."""

from __future__ import annotations

import datetime
import re

import numpy as np
import pyarrow as pa
import pytest

import memohop
from memohop.data.tables import read_graph
from memohop.data.tables.columns import fit_columns
from memohop.errors import DataError


def strings(*cells):
    return pa.chunked_array([pa.array(cells, pa.string())])


def told_of(cells):
    return fit_columns([("v", strings(*cells))])[1]


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

    def test_units_of_different_kinds_are_told_and_not_mixed(self):
        cells = [f"{n} {'kg' if n % 3 else 'm'}" for n in range(2, 90)]
        (line,) = told_of(cells)
        assert "look like numbers in different units, 'kg', 'm', such as '2 kg'" in line
        assert "is read as words" in line
        (line,) = told_of([*(f"{n} ft" for n in range(99)), "7 kg"])
        assert (
            "read as numbers in ft, with 1 of 100 values taken for missing, such as '7 kg'" in line
        )

    def test_units_of_one_kind_are_converted_into_the_most_frequent(self, encoded, saved):
        cells = [*(f"{n} ft" for n in range(1, 353)), *(f"{n},000 m" for n in (1, 2, 3, 4)), "0"]
        encoder, x, notes = encoded(v=cells)
        told = "352 in ft, 4 in m: all in ft"
        assert f"column 'v' is read as numbers in ft, {told} (categorical=" in told_of(cells)[0]
        assert f"column 'v': {told}" in notes
        feet = [*range(1, 353), *(1000 * n / 0.3048 for n in (1, 2, 3, 4)), 0]
        expected, same, _ = encoded(v=[f"{value} ft" for value in feet])
        np.testing.assert_allclose(x, same, rtol=1e-5)
        assert expected.feature_names == encoder.feature_names
        later, told = saved(encoder).transform(
            pa.table({"v": ["1 km", "1,000 m", "12 in", "1 ft"]})
        )
        assert later[0] == later[1]
        assert later[2] == pytest.approx(later[3])
        assert told == ["column 'v': 1 in km, 1 in m, 1 in in, 1 in ft: all in ft"]

    def test_amounts_in_several_currencies_are_a_number_and_a_category(self, encoded, saved):
        cells = [*(f"${n},000" for n in range(1, 61)), *(f"{n} €" for n in range(40)), "n/a"]
        encoder, x, _ = encoded(v=cells)
        (line,) = told_of(cells)
        assert "amounts in several currencies, 60 in $, 40 in €: each number as it is" in line
        assert encoder.feature_names == ["v", "v=$", "v=€", "v is missing"]
        assert "which are currencies" in encoder.describe()[0]
        assert x[:, 1].tolist() == [1] * 60 + [0] * 41
        assert x[:, 2].tolist() == [0] * 60 + [1] * 40 + [0]
        numbers = np.array([*range(1000, 61000, 1000), *range(40)], dtype=float)
        column = encoder.columns[0]
        if column.log_scale is not None:
            numbers = np.log1p(numbers / column.log_scale)
        np.testing.assert_allclose(
            x[:-1, 0], (numbers - numbers.mean()) / numbers.std(), rtol=1e-4, atol=1e-6
        )
        later, notes = saved(encoder).transform(pa.table({"v": ["€ 5", "£ 5", "5 ft"]}))
        assert later[:, 1:3].tolist() == [[0, 1], [0, 0], [0, 0]]
        assert later[0, 0] == later[1, 0]
        assert any("that has no feature, such as '£'" in note for note in notes)
        assert any("such as '5 ft', count as missing" in note for note in notes)

    def test_an_amount_in_another_currency_may_be_a_mistake(self):
        (line,) = told_of([*(f"${n}" for n in range(99)), "€5"])
        assert "numbers in $, with 1 of 100 values taken for missing, such as '€5'" in line

    def test_names_of_one_currency_are_one(self, encoded):
        encoder, *_ = encoded(v=["$5", "US$ 7", "USD 9", "11 USD"] * 20)
        assert encoder.feature_names == ["v"]

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

    def test_what_leaves_no_doubt_is_told_without_a_reason(self):
        for cells in (["$5", "$7"], ["5 km", "7 km"], ["2024/05/31", "2024/06/30"]):
            (line,) = told_of(cells)
            assert re.fullmatch(
                r"column 'v' is read as (numbers in \$|numbers in km|times) \(.*", line
            )

    def test_a_user_may_ask_for_the_number_alone(self, encoded):
        cells = ["2024-01-01 05:00", "2024-03-02 06:00", "2024-07-05 23:00"]
        assert encoded({"v": "numeric"}, v=cells)[0].feature_names == ["v"]
        _, x, _ = encoded({"v": "numeric"}, v=["5 km", "7 km", "3 kg", "far"])
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


@pytest.mark.parametrize("prices", [["$5", "€7"], ["$5.50", "€7.25"]])
def test_labels_in_several_currencies_are_refused(prices):
    nodes = {"id": list(range(60)), "v": list(range(60))}
    nodes["price"] = [price.replace("5", str(n)) for n, price in enumerate(prices * 30)]
    edges = {"source": [0], "target": [1]}
    wrong = r"'price' holds .* in \$, .* in €: .*; convert the amounts into one currency"
    with pytest.raises(DataError, match=wrong):
        read_graph(nodes, edges, label="price", task="numbers")


def test_numeric_money_means_what_it_says():
    money = ["$5", "7,000", "about $12", "$3.4M", "free", "($2)"] * 10
    nodes = {"id": list(range(60)), "kind": ["a", "b"] * 30, "money": money}
    edges = {"source": [0], "target": [1]}
    graph = read_graph(nodes, edges, label="kind", numeric=["money"])
    assert graph.encoder.feature_names == ["money", "money is missing"]
    values = np.array([5, 7000, 3.4e6, -2])
    x = graph.x[[0, 1, 3, 5], 0] * graph.encoder.columns[0].std + graph.encoder.columns[0].mean
    np.testing.assert_allclose(x, values, rtol=1e-5, atol=1)
    assert graph.x[:6, 1].tolist() == [0, 0, 1, 0, 1, 0]
    (line,) = (line for line in graph.warnings if "'money'" in line)
    assert "is read as numbers in $, 30 in $, 10 without a unit: all in $" in line
    assert "with 20 of 60 values taken for missing, such as 'about $12'" in line
    again = read_graph(nodes, edges, label="kind", encoder=graph.encoder, classes=graph.classes)
    np.testing.assert_array_equal(again.x, graph.x)
