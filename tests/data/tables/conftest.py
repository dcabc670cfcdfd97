"""Two tables as files, and columns as features."""

import gzip

import msgspec
import pyarrow as pa
import pytest

from memohop.data.tables.columns import ColumnEncoder, fit_columns


@pytest.fixture
def files(tmp_path):
    """Writes a node and an edge file, and gives their paths."""

    def write(nodes, edges="s,t\na,b\n", suffix=".csv", encoding="utf-8"):
        paths = tmp_path / f"n{suffix}", tmp_path / f"e{suffix}"
        for path, text in zip(paths, (nodes, edges), strict=True):
            content = text.encode(encoding) if isinstance(text, str) else text
            path.write_bytes(gzip.compress(content) if suffix.endswith(".gz") else content)
        return paths

    return write


@pytest.fixture(scope="session")
def encoded():
    """Fits columns, and gives the encoder, their features and the notes on them."""

    def encode(readings=None, **columns):
        table = pa.table(columns)
        named = zip(table.column_names, table.columns, strict=True)
        encoder, _ = fit_columns(named, readings)
        return encoder, *encoder.transform(table)

    return encode


@pytest.fixture(scope="session")
def saved():
    """An encoder as a saved model gives it back."""
    return lambda encoder: msgspec.json.decode(msgspec.json.encode(encoder), type=ColumnEncoder)
