"""Where a table comes from: CSV or TSV (also compressed), Parquet, or memory.

Everything is read into the columns of a `pyarrow.Table`, and only the columns that are asked for.
"""

from __future__ import annotations

import codecs
import csv
import io
import os
import re
from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, TypeAlias

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet

from memohop.errors import DataError, UsageError

TableLike: TypeAlias = Any
"""A path, a `pyarrow.Table`, a frame of pandas or polars, or a dictionary of columns."""

MISSING = ("", "NA", "N/A", "n/a", "#N/A", "NaN", "nan", "NULL", "null")
"""What counts as a missing value in a text file, in every column but those of ids."""

_SEPARATORS = {",": "comma", "\t": "tab", ";": "semicolon", "|": "bar"}
_INDEX = "__index_level_"  # how pandas stores an index without a name
_SAMPLE = 1 << 20  # bytes looked at before a file is read
_COMMA = re.compile(r"[;\n]-?\d+,\d+[;\r\n]")  # a number with a decimal comma between semicolons
_POINT = re.compile(r"[;\n]-?\d+\.\d+[;\r\n]")


class Source(Protocol):
    """A table that has not been read yet."""

    @property
    def name(self) -> str:
        """What errors call it."""

    @property
    def columns(self) -> list[str]:
        """The names of its columns."""

    @property
    def notes(self) -> list[str]:
        """How it is read, where that is not plain."""

    def read(self, columns: Collection[str], *, text: Collection[str] = ()) -> pa.Table:
        """The columns asked for; those in `text` as they are spelled, if the file is text."""


def open_source(table: TableLike, argument: str) -> Source:
    """Looks at a table without reading it: is it there, and which columns has it?

    Args:
        table: A path of a CSV, TSV or Parquet file, or a table in memory.
        argument: Its name among the arguments, for the errors.
    """
    if isinstance(table, str | os.PathLike):
        path = Path(table).expanduser()
        if path.suffix.lower() in (".parquet", ".pq"):
            return _unique_columns(_ParquetSource.open(path))
        return _unique_columns(_TextSource.open(path))
    try:
        return _unique_columns(_MemorySource(pa.table(table), argument))
    except (TypeError, ValueError, pa.ArrowException) as error:
        raise UsageError(
            f"{argument} is of type {type(table).__name__} and no table ({error}); give the path "
            "of a CSV, TSV or Parquet file, or a table of pyarrow or pandas"
        ) from error


def _unique_columns(source: Source) -> Source:
    twice = {name for name in source.columns if source.columns.count(name) > 1}
    if twice:
        raise DataError(f"{source.name} has several columns named {min(twice)!r}; rename them")
    return source


def _without_index(names: Iterable[str]) -> list[str]:
    return [name for name in names if not name.startswith(_INDEX)]


@dataclass(frozen=True)
class _MemorySource:
    table: pa.Table
    name: str

    @property
    def columns(self) -> list[str]:
        return _without_index(self.table.column_names)

    @property
    def notes(self) -> list[str]:
        return []

    def read(self, columns: Collection[str], *, text: Collection[str] = ()) -> pa.Table:
        return self.table.select(list(columns))


@dataclass(frozen=True)
class _ParquetSource:
    path: Path
    columns: list[str]

    @classmethod
    def open(cls, path: Path) -> _ParquetSource:
        with _as_data_errors(path):
            return cls(path, _without_index(pa.parquet.read_schema(path).names))

    @property
    def name(self) -> str:
        return str(self.path)

    @property
    def notes(self) -> list[str]:
        return []

    def read(self, columns: Collection[str], *, text: Collection[str] = ()) -> pa.Table:
        with _as_data_errors(self.path):
            return pa.parquet.read_table(self.path, columns=list(columns))


@dataclass(frozen=True)
class _TextSource:
    """A CSV file; its separator is the one that cuts the first line into most columns."""

    path: Path
    columns: list[str]
    separator: str
    decimal_point: str

    @classmethod
    def open(cls, path: Path) -> _TextSource:
        sample = _first_bytes(path)
        headers = {separator: _header(path, sample, separator) for separator in _SEPARATORS}
        separator = max(headers, key=lambda name: len(headers[name]))  # the comma if all are equal
        decimals = separator == ";" and _COMMA.search(sample) and not _POINT.search(sample)
        return cls(path, headers[separator], separator, "," if decimals else ".")

    @property
    def name(self) -> str:
        return str(self.path)

    @property
    def notes(self) -> list[str]:
        if self.separator == "," or (self.separator == "\t" and ".tsv" in self.path.suffixes):
            return []
        comma = ", and the decimal point is a comma" if self.decimal_point == "," else ""
        return [f"{self.path}: columns are separated by a {_SEPARATORS[self.separator]}{comma}"]

    def read(self, columns: Collection[str], *, text: Collection[str] = ()) -> pa.Table:
        with (
            _as_data_errors(self.path),
            pa.input_stream(str(self.path), compression="detect") as stream,
        ):
            table = pa.csv.read_csv(
                stream,
                parse_options=pa.csv.ParseOptions(
                    delimiter=self.separator, newlines_in_values=True
                ),
                convert_options=pa.csv.ConvertOptions(
                    include_columns=list(columns),
                    column_types={name: pa.string() for name in text if name in columns},
                    null_values=list(MISSING),
                    decimal_point=self.decimal_point,
                ),
            )
        for field in table.schema:
            if pa.types.is_binary(field.type):  # what is left when a column is no text
                raise _not_utf8(self.path)
        return table


def _first_bytes(path: Path) -> str:
    """The first bytes of the file as text, without a byte-order mark."""
    with _as_data_errors(path), pa.input_stream(str(path), compression="detect") as stream:
        sample = stream.read(_SAMPLE)
    if not sample.strip():
        raise DataError(f"{path} is empty; give a table with a first line of column names")
    try:  # a letter that the end of the sample cuts in two is left out
        return codecs.getincrementaldecoder("utf-8-sig")().decode(sample)
    except UnicodeDecodeError as error:
        raise _not_utf8(path) from error


def _header(path: Path, sample: str, separator: str) -> list[str]:
    try:
        rows = csv.reader(io.StringIO(sample, newline=""), delimiter=separator)
        return next(row for row in rows if row)  # empty lines are skipped
    except csv.Error as error:
        raise DataError(f"{path} has no first line of column names: {error}") from error


def _not_utf8(path: Path) -> DataError:
    return DataError(
        f"{path} is not text in UTF-8; save it as CSV in UTF-8, or as Parquet (a spreadsheet or "
        "another binary file is not read)"
    )


@contextmanager
def _as_data_errors(path: Path) -> Iterator[None]:
    try:
        yield
    except FileNotFoundError as error:
        raise DataError(f"there is no file {path}; check the path") from error
    except (OSError, pa.ArrowException) as error:
        text = str(error).strip()
        if "invalid UTF8" in text:
            raise _not_utf8(path) from error
        if "Truncated compressed" in text:
            raise DataError(
                f"{path} ends early: its compressed data is cut off; copy it anew"
            ) from error
        raise DataError(f"{path} cannot be read: {text}; correct the file") from error
