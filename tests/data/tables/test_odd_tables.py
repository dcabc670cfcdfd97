"""Tables as people have them: spellings, separators, more columns than needed, and mistakes."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest

from memohop.data.tables import from_arrays, read_graph
from memohop.errors import DataError

NODES = {"id": ["a", "b", "c", "d"], "v": [1, 2, 3, None], "kind": ["x", "y", "x", "y"]}
EDGES = {"source": ["a", "b", "d"], "target": ["b", "c", "a"]}


def read(nodes=NODES, edges=EDGES, label="kind", **more):
    return read_graph(nodes, edges, label=label, **more)


def test_columns_of_the_edge_table_that_say_nothing_are_named_in_a_warning():
    graph = read(edges=EDGES | {"weight": [1, 1, 1], "since": ["x", "y", "z"]})
    told = "edges: every edge counts alike; not used: columns 'weight', 'since'"
    assert told in graph.warnings
    assert told in graph.notes
    assert not any("every edge" in text for text in read().warnings)


class TestNumbersAsPeopleSpellThem:
    @pytest.mark.parametrize(
        ("cells", "numbers"),
        [
            (["36,200", "3,499", "1,264,548", "12"], [36200, 3499, 1264548, 12]),
            (["1,234.5", "-2,000", "+7", "0"], [1234.5, -2000, 7, 0]),
            (["1 234", "12", "1\u00a0234\u202f567", "3"], [1234, 12, 1234567, 3]),
            (["1'234", "12", "1’234’567", "3"], [1234, 12, 1234567, 3]),  # noqa: RUF001
            (["5%", "12.5 %", "100%", "0%"], [5, 12.5, 100, 0]),
            (["1,5", "2,25", "12", "-1"], [1.5, 2.25, 12, -1]),  # decimal commas
            (["1,500", "2,250", "0,250", "0,250"], [1.5, 2.25, 0.25, 0.25]),  # as 0,250 shows
        ],
    )
    def test_are_numbers(self, cells, numbers):
        graph = read(NODES | {"v": cells})
        values = np.array(numbers, dtype=float)
        expected = (values - values.mean()) / values.std()
        np.testing.assert_allclose(graph.data.x[:, 0].numpy(), expected, rtol=1e-6)
        assert graph.encoder.feature_names == ["v"]
        how = "in %" if cells[0].endswith("%") else "without thousands separators"
        assert any(f"the number {how}" in note for note in graph.notes)

    @pytest.mark.parametrize(
        "cells",
        [
            ["1,5", "2.25", "1,5", "2.25"],  # commas or points?
            ["12,34,567", "1,234", "12,34,567", "1,234"],
            ["1,234", "1,234", "many", "many"],
            ["5%", "5%", "7", "7"],  # per cent or not?
            ["1", "1", "2", "2"],  # strings of a Parquet file, which may be codes
            ["12 34", "12 34", "5 678", "5 678"],
        ],
    )
    def test_other_strings_are_categories(self, cells):
        graph = read(NODES | {"v": cells})
        assert all(name.startswith("v=") for name in graph.encoder.feature_names)

    def test_a_later_table_is_read_in_the_same_way_from_text_and_from_numbers(self, files, saved):
        first = read(NODES | {"v": ["36,200", "3,499", "4,000", "12"]})
        encoder = saved(first.encoder)
        more = {"encoder": encoder, "classes": first.classes}
        later = read(*files('id,v\na,"3,499"\nb,12\n'), **more)
        numbers = read({"id": ["a", "b"], "v": [3499, 12]}, {"s": ["a"], "t": ["b"]}, **more)
        for graph in (later, numbers):
            assert graph.data.x.tolist() == first.data.x[[1, 3]].tolist()
        with pytest.raises(DataError, match=r"'v' held numbers .* such as 'many'"):
            read({"id": ["a", "b"], "v": ["many", None]}, {"s": ["a"], "t": ["b"]}, **more)


class TestManyColumns:
    @pytest.mark.parametrize("width", [14, 110])
    def test_a_first_line_of_any_length_is_read(self, width, tmp_path):
        """Longer than Python's limit for a field, and than the bytes that are looked at first."""
        names = [f"{n:0{width}}" for n in range(10_000)]
        row = ",".join(["1"] * len(names))
        lines = [f"{name},{kind},{row}\n" for name, kind in zip("abcd", "xyxy", strict=True)]
        (tmp_path / "n.csv").write_text(f"id,kind,{','.join(names)}\n{''.join(lines)}")
        graph = read(tmp_path / "n.csv")
        assert graph.ids.tolist() == ["a", "b", "c", "d"]
        assert graph.encoder.left_out == tuple(names)


class TestLongIds:
    """One long id must not make all others as long: 100,000 of them would take 40 GB."""

    LONG = "x" * 100_000

    def test_take_no_more_bytes_than_their_letters(self):
        ids = [*(f"id-{n:07}" for n in range(100_000)), self.LONG]
        tracemalloc.start()
        nodes = {"id": ids, "kind": ["x", "y"] * 50_000 + ["x"]}
        graph = read(nodes, {"s": [ids[0]], "t": [self.LONG]})
        again = from_arrays(np.zeros((2, 2)), np.eye(2), ids=[self.LONG, "a"])
        _, most = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert most < 100e6
        assert graph.ids[-1] == again.ids[0] == self.LONG
        assert graph.ids.dtype == again.ids.dtype == object

    def test_whole_numbers_stay_numbers_and_tuples_stay_tuples(self):
        for ids in ([3, 1], np.array([3, 1], dtype=np.int32)):
            assert from_arrays(np.eye(2), np.eye(2), ids=ids).ids.dtype == np.int64
        for ids in ([(0, 1), (1, 0)], [2**70, 1], [True, "a"]):
            assert from_arrays(np.eye(2), np.eye(2), ids=ids).ids.tolist() == ids


def test_names_with_a_point_and_folders_with_an_equals_sign_are_only_names(tmp_path):
    folder = tmp_path / "v=7"
    folder.mkdir()
    pa.parquet.write_table(pa.table(NODES | {"v.w": [4, 3, 2, 1]}), folder / "n.parquet")
    graph = read(folder / "n.parquet")
    assert graph.encoder.feature_names == ["v", "v is missing", "v.w"]
