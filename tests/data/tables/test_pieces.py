"""Codes that are mostly different are read by their pieces."""

from __future__ import annotations

import hashlib
import random
import re
import string
import uuid

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import memohop
from memohop.data.tables import _text_columns, columns, read_graph
from memohop.data.tables.columns import fit_columns
from memohop.errors import UsageError

REGIONS = ("ED", "K", "YS", "ZB")
ROWS = 200


def codes(seed=0, rows=ROWS):
    """All different: the region, and letters of which Z is rare."""
    draw, codes = random.Random(seed), {}
    while len(codes) < rows:
        tail = "".join(draw.choices(string.ascii_uppercase[:-1], k=3))
        codes[draw.choice(REGIONS) + tail] = None
    return list(codes)


def kinds(values):
    encoder, _ = fit_columns([("v", pa.chunked_array([values], pa.string()))])
    return [type(column).__name__ for column in encoder.columns]


def pieces_of(text):
    """The same, one string at a time."""
    text = text.lower()
    form = re.sub("[0-9]+", "0", re.sub(r"[^\W\d_]+", "a", text))
    pieces = {f"is {text}", f"has the length {len(text)}", f"has the form {form}"}
    for size in range(1, min(3, len(text)) + 1):
        pieces |= {f"begins with {text[:size]}", f"ends with {text[-size:]}"}
    return pieces


class TestPieces:
    def test_of_a_code_that_comes_later(self, encoded, saved):
        encoder, x, notes = encoded(v=[*codes(), None])
        assert notes == []
        encoder, names = saved(encoder), encoder.feature_names
        assert len(names) == ROWS // 5 + 1
        later, told = encoder.transform(pa.table({"v": ["KZZZ", "ed", "", "KZZZ0000"]}))
        assert told == []
        features = [{names[at] for at in np.flatnonzero(row)} for row in later]
        assert {"v begins with k", "v has the length 4"} <= features[0]
        assert {"v begins with e", "v begins with ed"} <= features[1]
        assert features[2] == {"v is missing"}
        assert features[3] == {"v begins with k"}
        assert x[-1, -1] == 1
        assert x[:-1, -1].max() == 0

    @settings(max_examples=30)
    @given(st.lists(st.text("AB01-É", max_size=80) | st.just("é b"), max_size=4))
    def test_are_those_of_each_string_by_itself(self, some):
        texts = [text for text in some if text not in {"", "NA"}] + codes(rows=80)
        encoder, _ = fit_columns([("v", pa.chunked_array([texts]))])
        (column,) = encoder.columns
        assert type(column).__name__ == "Pieces"
        x, _ = encoder.transform(pa.table({"v": texts}))
        for row, text in zip(x, texts, strict=True):
            assert set(row) <= {0, 1}
            there = {column.vocabulary[at] for at in np.flatnonzero(row)}
            assert there == pieces_of(text).intersection(column.vocabulary)

    def test_are_in_two_strings_and_not_in_all(self, encoded):
        values = [f"X{code}!" for code in codes()]
        encoder, x, _ = encoded(v=values)
        times = x.sum(axis=0)
        assert times.min() >= 2
        assert times.max() < ROWS
        assert "v begins with x" not in encoder.feature_names
        assert "v begins with xk" in encoder.feature_names

    def test_of_a_long_column_are_those_of_strings_from_all_over_it(self, encoded, monkeypatch):
        monkeypatch.setattr(_text_columns, "_ROWS", 150)
        values = sorted(codes(rows=1500))
        encoder, x, _ = encoded(v=values)
        begins = [f"v begins with {region.lower()}" for region in REGIONS]
        at = [encoder.feature_names.index(name) for name in begins]
        x = np.asarray(x.todense())
        for column, region in zip(at, REGIONS, strict=True):
            assert x[:, column].tolist() == [value.startswith(region) for value in values]
        (column,) = encoder.columns  # their frequencies are estimates for all rows
        assert abs(column.texts[0] - x[:, 0].sum()) < 0.1 * len(values)

    def test_are_limited_by_their_number_and_by_bytes(self, encoded, monkeypatch):
        monkeypatch.setattr(_text_columns, "PIECES", 7)
        assert len(encoded(v=codes())[0].feature_names) == 7
        monkeypatch.setattr(columns, "ENTRIES", 500)
        _, x, _ = encoded(v=codes(), w=codes(1))
        assert x.sum() <= 500
        assert 2 <= x.shape[1] < 14


DRAW = random.Random(0)
NO_STRUCTURE = {
    "running": [f"user{n}" for n in range(ROWS)],
    "running, filled up": [f"T{n:06}" for n in range(ROWS)],
    "numbers": [f"C{DRAW.randrange(10**5, 10**6)}" for _ in range(ROWS)],
    "hexadecimal": [f"{DRAW.getrandbits(64):016x}" for _ in range(ROWS)],
    "digests": [hashlib.sha256(bytes([n])).hexdigest() for n in range(ROWS)],
    "UUIDs": [str(uuid.UUID(int=DRAW.getrandbits(128), version=4)) for _ in range(ROWS)],
    "tokens": ["".join(DRAW.choices(string.ascii_letters, k=11)) for _ in range(ROWS)],
}
NAMES = [f"{a}{b}{c}" for a in ("Bad", "Neu", "Ober") for b in "aeiou" for c in ("stadt", "burg")]


class TestWhichColumns:
    @pytest.mark.parametrize("values", NO_STRUCTURE.values(), ids=NO_STRUCTURE)
    def test_without_structure_are_left_out(self, values):
        assert kinds(values) == []
        assert kinds([*values[:60], None]) == []

    @pytest.mark.parametrize(
        "values",
        [
            codes(),
            [f"{'NS'[n % 2]}{DRAW.randrange(10**6):06}" for n in range(ROWS)],  # two halves
            [f"{n * n:05}" for n in range(ROWS)],  # zip codes: more in some regions than in others
            [code.lower() for code in codes() if len(code) == 5],  # of one length
        ],
        ids=["codes", "halves", "digits", "lower case"],
    )
    def test_with_structure_are_pieces(self, values):
        assert kinds(values) == ["Pieces"]

    @pytest.mark.parametrize(
        ("values", "expected"),
        [
            (codes()[:50], []),  # few
            (codes() * 2, ["Category"]),
            ([*codes(), *["OTHER"] * ROWS], ["Category"]),
            ([*codes(), *["OTHER"] * (ROWS - 1)], ["Pieces"]),
            ([*NO_STRUCTURE["tokens"], *["lettersonly"] * 2], ["Category"]),
            ([f"{code * 30}" for code in codes()], []),  # long
            ([f"{code} of a {code}" for code in codes()], ["Words"]),
            ([*NAMES, *(name[::-1] for name in NAMES)], ["Ngrams"]),
            ([f"北京市{chr(0x4E00 + n)}" + "路" * (n % 3) for n in range(ROWS)], ["Ngrams"]),
            ([], []),
            ([None] * 99, []),
            ([" "] * 99, []),
        ],
    )
    def test_other_kinds_have_theirs(self, values, expected):
        assert kinds(values) == expected

    def test_one_cell_may_be_huge(self, encoded):
        encoder, *_ = encoded(v=[*codes(), "x" * 10**6])
        assert max(map(len, encoder.feature_names)) < 100


class TestGraphs:
    def nodes(self):
        kind = [code[0] for code in codes()]
        return {"id": codes(9), "icao": codes(), "kind": kind}

    def test_ids_are_no_features_and_codes_are_told(self):
        edges = {"source": codes(9)[:2], "target": codes(9)[2:4]}
        graph = read_graph(self.nodes(), edges, label="kind")
        assert not any("id " in name for name in graph.encoder.feature_names)
        (told,) = (line for line in graph.warnings if "'icao'" in line)
        assert "is read as pieces of codes" in told
        assert "--drop icao leaves it out" in told
        left = read_graph(self.nodes(), edges, label="kind", drop=["icao"])
        assert left.encoder.feature_names == ["constant"]
        assert not any("pieces" in line for line in left.warnings)
        category = read_graph(self.nodes(), edges, label="kind", categorical=["icao"])
        assert category.encoder.left_out == ("icao",)

    def test_prepared_graphs_have_the_same(self, tmp_path, files):
        rows = zip(*self.nodes().values(), strict=True)
        text = "id,icao,kind\n" + "".join(f"{','.join(row)}\n" for row in rows)
        paths = files(text, f"s,t\n{codes(9)[0]},{codes(9)[1]}\n")
        graph = read_graph(*paths, label="kind")
        prepared = memohop.prepare(*paths, tmp_path / "graph", label="kind")
        assert prepared.encoder == graph.encoder
        np.testing.assert_array_equal(prepared.x, graph.x)

    def test_columns_of_edges_are_categories(self):
        ids = codes(9)
        edges = {"source": ids, "target": ids[1:] + ids[:1], "by": [*codes()[:180], *["BA"] * 20]}
        graph = read_graph(self.nodes(), edges, label="kind", drop=["icao"])
        assert [type(column).__name__ for column in graph.encoder.edges.columns] == ["Category"]
        assert not any("pieces" in line for line in graph.warnings)

    def test_a_later_table_without_the_column_is_refused(self, encoded):
        encoder, *_ = encoded(v=codes())
        with pytest.raises(UsageError, match=r"lacks the column\(s\) 'v'"):
            encoder.transform(pa.table({"w": codes()}))
