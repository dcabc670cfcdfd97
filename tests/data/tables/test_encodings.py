"""Text files in other encodings than UTF-8, in RAM and prepared."""

from __future__ import annotations

import pytest

import memohop
from memohop.data.tables import read_graph, sources
from memohop.errors import DataError, UsageError

NODES = "id,city,größe,kind\n" + "".join(
    f"né{n},{'Zürich' if n % 3 else 'Orléans'},{n},{'ähnlich' if n % 2 else 'x'}\n"
    for n in range(40)
)
EDGES = "source,target\n" + "".join(f"né{n},né{n * 7 % 40}\n" for n in range(40))


@pytest.mark.parametrize("suffix", [".csv", ".csv.gz"])
@pytest.mark.parametrize("encoding", ["utf-8-sig", "cp1252", "latin-1", "utf-16", "utf-32"])
def test_is_told_from_the_bytes_and_the_graph_is_the_same(encoding, suffix, files):
    expected = read_graph(*files(NODES, EDGES), label="kind", directed=True)
    paths = files(NODES, EDGES, suffix, encoding)
    graph = read_graph(*paths, label="kind", directed=True)
    assert graph.ids.tolist() == expected.ids.tolist()
    assert graph.classes == expected.classes == ["x", "ähnlich"]
    assert graph.encoder == expected.encoder
    assert graph.data.edge_index.tolist() == expected.data.edge_index.tolist()
    told = [line for line in graph.warnings if "is not in UTF-8, and is read as Windows" in line]
    assert len(told) == 2 * (encoding in ("cp1252", "latin-1"))
    assert (f"{paths[0]}: its encoding is utf-16" in graph.notes) == (encoding == "utf-16")
    assert not expected.warnings


@pytest.mark.parametrize("encoding", ["cp1252", "utf-16"])
def test_prepared_graphs_are_the_same(encoding, files, tmp_path):
    expected = read_graph(*files(NODES, EDGES), label="kind")
    paths = files(NODES, EDGES, encoding=encoding)
    graph = memohop.prepare(*paths, tmp_path / "graph", label="kind")
    assert graph.ids.to_pylist() == expected.ids.tolist()
    assert (graph.classes, graph.encoder) == (expected.classes, expected.encoder)
    told = sum("read as Windows-1252" in line for line in graph.warnings)
    assert told == 2 * (encoding == "cp1252")


def test_a_letter_far_into_the_file_decides(files, monkeypatch):
    monkeypatch.setattr(sources, "_SAMPLE", 7)
    rows = "".join(f"n{n},{n},{'xy'[n % 2]}\n" for n in range(400))
    text = f"id,v,kind\n{rows}nä,7,x\n"
    for encoding, windows in (("utf-8", False), ("cp1252", True)):
        graph = read_graph(*files(text, "s,t\nn0,n1\n", encoding=encoding), label="kind")
        assert graph.ids[-1] == "nä"
        assert any("Windows-1252" in line for line in graph.warnings) is windows


def test_a_named_encoding_is_heeded(files):
    cyrillic = NODES.replace("Zürich", "Москва").replace("é", "e").replace("ö", "o")
    cyrillic = cyrillic.replace("ß", "s").replace("ä", "a")
    paths = files(cyrillic, "s,t\nne0,ne1\n", encoding="cp1251")
    graph = read_graph(*paths, label="kind", encoding="cp1251", directed=True)
    assert "city=Москва" in graph.encoder.feature_names
    assert not graph.warnings
    with pytest.raises(DataError, match=r"n\.csv is not text in UTF-8; .*encoding=, --encoding"):
        read_graph(*paths, label="kind", encoding="utf-8")
    with pytest.raises(DataError, match=r"n\.csv is not text in utf-16"):
        read_graph(*paths, label="kind", encoding="utf-16")


@pytest.mark.parametrize("encoding", ["klingon", "base64", "", 8, "a\0b"])
def test_what_is_no_encoding(encoding, files):
    with pytest.raises(UsageError, match=r"encoding=.* is no encoding of text; give one such as"):
        read_graph(*files(NODES), label="kind", encoding=encoding)


def test_an_uneven_line_is_named_in_any_encoding(files):
    paths = files(NODES + "a,b,c,d,e\n", EDGES, encoding="utf-16")
    with pytest.raises(DataError, match=r"line 42: Expected 4 columns, got 5"):
        read_graph(*paths, label="kind")
