"""Text files in other encodings than UTF-8, in RAM and prepared."""

from __future__ import annotations

import gzip

import pytest

import memohop
from memohop.data.tables import read_graph, sources
from memohop.errors import DataError, UsageError

NODES = "id,city,größe,kind\n" + "".join(
    f"né{n},{'Zürich' if n % 3 else 'Orléans'},{n},{'ähnlich' if n % 2 else 'x'}\n"
    for n in range(40)
)
EDGES = "source,target\n" + "".join(f"né{n},né{n * 7 % 40}\n" for n in range(40))


def write(folder, encoding, nodes=NODES, compressed=False):
    """The paths of both tables in an encoding."""
    paths = []
    for name, text in (("n", nodes), ("e", EDGES)):
        content = text.encode(encoding)
        path = folder / f"{name}.csv{'.gz' * compressed}"
        path.write_bytes(gzip.compress(content) if compressed else content)
        paths.append(path)
    return paths


@pytest.mark.parametrize("compressed", [False, True])
@pytest.mark.parametrize("encoding", ["utf-8-sig", "cp1252", "latin-1", "utf-16", "utf-32"])
def test_is_told_from_the_bytes_and_the_graph_is_the_same(encoding, compressed, tmp_path):
    expected = read_graph(*write(tmp_path, "utf-8"), label="kind")
    files = write(tmp_path, encoding, compressed=compressed)
    found = read_graph(*files, label="kind")
    assert found.ids.tolist() == expected.ids.tolist()
    assert found.classes == expected.classes == ["x", "ähnlich"]
    assert found.encoder == expected.encoder
    assert found.data.edge_index.tolist() == expected.data.edge_index.tolist()
    told = [line for line in found.warnings if "is not in UTF-8, and is read as Windows" in line]
    assert len(told) == 2 * (encoding in ("cp1252", "latin-1"))
    assert any(f"{files[0]}: its encoding is utf-16" in n for n in found.notes) == (
        encoding == "utf-16"
    )
    assert not expected.warnings


@pytest.mark.parametrize("encoding", ["cp1252", "utf-16"])
def test_prepared_graphs_are_the_same(encoding, tmp_path):
    expected = read_graph(*write(tmp_path, "utf-8"), label="kind")
    files = write(tmp_path, encoding)
    graph = memohop.prepare(*files, tmp_path / "graph", label="kind")
    assert graph.ids.to_pylist() == expected.ids.tolist()
    assert (graph.classes, graph.encoder) == (expected.classes, expected.encoder)
    assert sum("read as Windows-1252" in line for line in graph.warnings) == 2 * (
        encoding == "cp1252"
    )
    other = memohop.prepare(*files, tmp_path / "other", label="kind", encoding=encoding)
    assert other.ids.to_pylist() == expected.ids.tolist()
    assert not any("Windows" in line for line in other.warnings)


def test_a_letter_far_into_the_file_decides(tmp_path, monkeypatch):
    monkeypatch.setattr(sources, "_SAMPLE", 7)
    rows = "".join(f"n{n},{n},{'xy'[n % 2]}\n" for n in range(400))
    text = f"id,v,kind\n{rows}nä,7,x\n"
    (tmp_path / "e.csv").write_text("s,t\nn0,n1\n")
    for encoding, windows in (("utf-8", False), ("cp1252", True)):
        (tmp_path / "n.csv").write_bytes(text.encode(encoding))
        graph = read_graph(tmp_path / "n.csv", tmp_path / "e.csv", label="kind")
        assert graph.ids[-1] == "nä"
        assert any("Windows-1252" in line for line in graph.warnings) is windows


def test_a_named_encoding_is_heeded(tmp_path):
    cyrillic = NODES.replace("Zürich", "Москва").replace("é", "e").replace("ö", "o")
    cyrillic = cyrillic.replace("ß", "s").replace("ä", "a")
    (tmp_path / "n.csv").write_bytes(cyrillic.encode("cp1251"))
    (tmp_path / "e.csv").write_text("s,t\nne0,ne1\n")
    files = tmp_path / "n.csv", tmp_path / "e.csv"
    graph = read_graph(*files, label="kind", encoding="cp1251")
    assert "city=Москва" in graph.encoder.feature_names
    assert not graph.warnings
    with pytest.raises(DataError, match=r"n\.csv is not text in UTF-8; .*encoding=, --encoding"):
        read_graph(*files, label="kind", encoding="utf-8")
    with pytest.raises(DataError, match=r"n\.csv is not text in utf-16"):
        read_graph(*files, label="kind", encoding="utf-16")


@pytest.mark.parametrize("encoding", ["klingon", "base64", "", 8, "a\0b"])
def test_what_is_no_encoding(encoding, tmp_path):
    with pytest.raises(UsageError, match=r"encoding=.* is no encoding of text; give one such as"):
        read_graph(*write(tmp_path, "utf-8"), label="kind", encoding=encoding)


def test_an_uneven_line_is_named_in_any_encoding(tmp_path):
    files = write(tmp_path, "utf-16", NODES + "a,b,c,d,e\n")
    with pytest.raises(DataError, match=r"line 42: Expected 4 columns, got 5"):
        read_graph(*files, label="kind")
