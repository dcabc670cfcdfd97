"""Where a table comes from: CSV or TSV (also compressed), Parquet, or memory.

Everything is read into the columns of a `pyarrow.Table`, and only the columns that are asked for.
"""

from __future__ import annotations

import codecs
import csv
import io
import os
import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, TypeAlias

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet

from memohop.data.tables.column_types import MISSING, plain_table
from memohop.errors import DataError, UsageError

TableLike: TypeAlias = Any
"""A path, a `pyarrow.Table`, a frame of pandas or polars, or a dictionary of columns."""

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
        """The columns asked for; those in `text` as they are spelled, if the file is text.

        All are of a kind that `column_kind` knows; another is a `DataError`.
        """


def open_source(table: TableLike, argument: str) -> Source:
    """Looks at a table without reading it: is it there, and which columns has it?

    Args:
        table: A path of a CSV, TSV or Parquet file, or a table in memory.
        argument: Its name among the arguments, for the errors.
    """
    if isinstance(table, str | os.PathLike):
        path = Path(table).expanduser()
        if path.suffix.lower() in (".parquet", ".pq"):
            return _checked(_ParquetSource.open(path))
        return _checked(_TextSource.open(path))
    try:
        return _checked(_MemorySource(pa.table(table), argument))
    except (TypeError, ValueError, pa.ArrowException) as error:
        raise UsageError(
            f"{argument} is of type {type(table).__name__} and no table ({error}); give the path "
            "of a CSV, TSV or Parquet file, or a table of pyarrow or pandas"
        ) from error


def _checked(source: Source) -> Source:
    """The source, if it has columns and no two of them have one name."""
    if not source.columns:
        raise DataError(f"{source.name} has no columns; give a table that has some")
    twice = [name for name, times in Counter(source.columns).items() if times > 1]
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
        return plain_table(self.table.select(list(columns)), self.name)


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
            # `read_table` would take a folder named `a=1` for a column, and `read` takes `a.b` for
            # a part of `a`.
            table = pa.parquet.ParquetFile(self.path).read(columns=list(columns))
            return plain_table(table.select(list(columns)), self.name)


@dataclass(frozen=True)
class _TextSource:
    """A CSV file; its separator is the one that cuts the first line into most columns."""

    path: Path
    columns: list[str]
    separator: str
    decimal_point: str
    block: int

    @classmethod
    def open(cls, path: Path) -> _TextSource:
        sample = _first_bytes(path)
        headers = {separator: _header(sample, separator) for separator in _SEPARATORS}
        separator = max(headers, key=lambda name: len(headers[name]))  # the comma if all are equal
        if not headers[separator]:
            raise DataError(f"{path} has no first line of column names; add one")
        decimals = separator == ";" and _COMMA.search(sample) and not _POINT.search(sample)
        # A row must fit in a block, and is longer than the names where these are short.
        block = max(_SAMPLE, 32 * sum(map(len, headers[separator])))
        return cls(path, headers[separator], separator, "," if decimals else ".", block)

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
                read_options=pa.csv.ReadOptions(block_size=self.block),
                parse_options=pa.csv.ParseOptions(
                    delimiter=self.separator, newlines_in_values=True
                ),
                convert_options=pa.csv.ConvertOptions(
                    include_columns=list(columns),
                    column_types={name: pa.string() for name in text},
                    null_values=list(MISSING),
                    decimal_point=self.decimal_point,
                ),
            )
        for field in table.schema:
            if pa.types.is_binary(field.type):  # what is left when a column is no text
                raise _not_utf8(self.path)
        return table


def _first_bytes(path: Path) -> str:
    """The first bytes of the file as text, its first line at least, without a byte-order mark."""
    with _as_data_errors(path), pa.input_stream(str(path), compression="detect") as stream:
        sample = more = stream.read(_SAMPLE)
        while more and b"\n" not in sample.strip():
            more = stream.read(_SAMPLE)
            sample += more
        whole = not stream.read(1)
    try:  # a letter that the end of the sample cuts in two is left out, and one at the end is wrong
        text = codecs.getincrementaldecoder("utf-8-sig")().decode(sample, final=whole)
    except UnicodeDecodeError as error:
        raise _not_utf8(path) from error
    if not text.strip():
        raise DataError(f"{path} is empty; give a table with a first line of column names")
    return text


def _header(sample: str, separator: str) -> list[str]:
    """The names in the first line; none where this separator leaves more than a name can be."""
    try:
        rows = csv.reader(io.StringIO(sample, newline=""), delimiter=separator)
        return next(row for row in rows if row)  # empty lines are skipped
    except csv.Error:
        return []


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
    except UnicodeDecodeError as error:
        raise _not_utf8(path) from error
    except (OSError, pa.ArrowException) as error:
        text = str(error).strip()
        if path.is_dir():
            raise DataError(f"{path} is a folder; give the file of a table") from error
        if "invalid UTF8" in text:
            raise _not_utf8(path) from error
        if "Empty CSV file" in text:
            raise DataError(
                f"{path} has column names and no rows; give at least one row"
            ) from error
        if "inflate failed" in text or "decompress failed" in text:
            raise DataError(
                f"{path} is not compressed as its name says, or is damaged ({text}); rename it, or "
                "copy it anew"
            ) from error
        if "Truncated compressed" in text:
            raise DataError(
                f"{path} ends early: its compressed data is cut off; copy it anew"
            ) from error
        raise DataError(f"{path} cannot be read: {text}; correct the file") from error
