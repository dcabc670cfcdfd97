"""Where a table comes from: CSV or TSV (also compressed), Parquet, or a table object.

Everything is read into a :class:`pyarrow.Table`, and only the columns that are asked for. A file
can also be read some rows at a time.
"""

from __future__ import annotations

import codecs
import csv
import io
import os
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.parquet

from memohop.data.tables.cells import MISSING, plain_table
from memohop.errors import DataError, UsageError

TableLike: TypeAlias = Any
"""A path, a :class:`pyarrow.Table`, a frame of pandas or polars, or a dictionary of columns."""

_UTF_8 = "utf-8"
_WINDOWS = "cp1252"  # what most text was in before UTF-8: the letters of Latin-1, and a few more
_MARKS = {  # the longer ones first: they begin alike
    codecs.BOM_UTF32_LE: "utf-32",
    codecs.BOM_UTF32_BE: "utf-32",
    codecs.BOM_UTF16_LE: "utf-16",
    codecs.BOM_UTF16_BE: "utf-16",
}
_CONTROL = re.compile("[^\\x20-\U0010ffff\t\n\v\f\r\x1a\x1b]")  # characters that no text has
_SEPARATORS = {",": "comma", "\t": "tab", ";": "semicolon", "|": "bar"}
_INDEX = "__index_level_"  # how pandas stores an index without a name
_SAMPLE = 1 << 20  # characters looked at together before a file is read
_ROWS = 1 << 18  # of a Parquet file, where rows are read some at a time
_WIDE = 500  # columns of a table whose numbers are read as small ones where they are
_SMALL = 255
_COMMA = re.compile(r"[;\n]-?\d+,\d+[;\r\n]")  # a number with a decimal comma between semicolons
_POINT = re.compile(r"[;\n]-?\d+\.\d+[;\r\n]")
_UNEVEN = re.compile(r"CSV parse error: (Row #\d+: )?(?=Expected)")  # rows without empty lines
NO_ROWS = "{name} has column names and no rows; give at least one row"
_NOT_COMPRESSED = (
    "{name} is not compressed as its name says, or is damaged ({error}); rename it or copy it again"
)
_NO_TEXT = "invalid UTF8"
_COMPLAINTS = {  # by words of Arrow's message
    _NO_TEXT: "{name} is not text in {encoding}; save it as CSV in UTF-8 or as Parquet, or "
    "name the encoding in which it is (encoding=, --encoding); spreadsheets and other binary files "
    "are not read",
    "Empty CSV file": NO_ROWS,
    "inflate failed": _NOT_COMPRESSED,
    "decompress failed": _NOT_COMPRESSED,
    "Truncated compressed": "{name} ends early: its compressed data is cut off; copy it again",
    "": "{name} cannot be read: {error}; correct the file",
}


@dataclass(frozen=True)
class UnreadTable:
    """A table that has not been read yet."""

    name: str  # what errors call it
    columns: list[str]
    load: Callable[[list[str], Collection[str]], pa.Table]
    """Reads the columns asked for; of a text file, the second ones as they are spelled."""
    notes: tuple[str, ...] = ()  # how it is read, where that is not obvious
    batches: Callable[[pa.Schema], Iterator[pa.RecordBatch]] | None = None
    """Reads columns of these types some rows at a time; an object has no such function."""
    stored: pa.Schema | None = None  # of a Parquet file; other columns are not typed
    warnings: tuple[str, ...] = ()  # how it is read, where that is a guess

    def __post_init__(self) -> None:
        if not self.columns:
            raise DataError(f"{self.name} has no columns; give a table that has some")
        twice = [name for name, times in Counter(self.columns).items() if times > 1]
        if twice:
            raise DataError(f"{self.name} has several columns named {min(twice)!r}; rename them")

    def read(self, columns: Collection[str], *, text: Collection[str] = ()) -> pa.Table:
        """The columns asked for; those in ``text`` as they are spelled, if the file is text.

        All are of a kind that :func:`kind_of` knows, and there is at least one row; anything
        else is a :class:`DataError`.
        """
        table = self.load(list(columns), text)
        if not table.num_rows:
            raise DataError(NO_ROWS.format(name=self.name))
        return table


def open_table(table: TableLike, argument: str, encoding: str | None = None) -> UnreadTable:
    """Check that a table is there and which columns it has, without reading it.

    It is the path of a CSV, TSV or Parquet file, or an object, which errors call by the name of its
    argument. Without the encoding of text files, :func:`_encoding_of` decides.
    """
    if encoding is not None:
        encoding = _named_encoding(encoding)
    if isinstance(table, str | os.PathLike):
        path = Path(table).expanduser()
        if path.suffix.lower() in (".parquet", ".pq"):
            return _parquet(path)
        return _text(path, encoding)
    try:
        given = pa.table(table)
    except (TypeError, ValueError, pa.ArrowException) as error:
        raise UsageError(
            f"{argument} is of type {type(table).__name__} and no table ({error}); give the path "
            "of a CSV, TSV or Parquet file, or a table of pyarrow or pandas"
        ) from error
    return UnreadTable(
        argument,
        _without_index(given.column_names),
        lambda columns, _: plain_table(given.select(columns), argument),
    )


def check_alike(tables: Sequence[UnreadTable], columns: Sequence[str]) -> None:
    """Refuse tables that are to be read as one if any of them lacks one of these columns."""
    for table in tables:
        absent = [name for name in columns if name not in table.columns]
        if absent:
            raise DataError(
                f"{table.name} has no column {absent[0]!r}, which {tables[0].name} has; give "
                "tables with the same columns"
            )


def _without_index(names: list[str]) -> list[str]:
    return [name for name in names if not name.startswith(_INDEX)]


def _parquet(path: Path) -> UnreadTable:
    def load(columns: list[str], _: Collection[str]) -> pa.Table:
        with _as_data_errors(path):
            # `read_table` would take a folder named `a=1` for a column, and `read` takes `a.b` for
            # a part of `a`.
            table = pa.parquet.ParquetFile(path).read(columns=columns)
            return plain_table(table.select(columns), str(path))

    def batches(schema: pa.Schema) -> Iterator[pa.RecordBatch]:
        with _as_data_errors(path):
            for batch in pa.parquet.ParquetFile(path).iter_batches(_ROWS, columns=schema.names):
                table = plain_table(pa.table(batch).select(schema.names), str(path))
                yield from table.cast(schema).to_batches()

    with _as_data_errors(path):
        stored = pa.parquet.read_schema(path)
    names = _without_index(stored.names)
    return UnreadTable(str(path), names, load, batches=batches, stored=stored)


@dataclass(frozen=True)
class _TextFile:
    """A CSV file, perhaps compressed, and how its rows are cut into fields.

    As many bytes as a block has are read at a time. A row must fit in one, and is longer than the
    names where these are short; each block becomes a piece of each column, which costs more than
    small numbers do.
    """

    path: Path
    encoding: str
    separator: str
    decimal_comma: bool
    block: int

    def _parsed(self, parser: Callable[..., Any], columns: list[str], types: dict[str, Any]) -> Any:
        """What one of Arrow's parsers makes of these columns, some of which have known types."""
        return parser(
            pa.input_stream(str(self.path), compression="detect"),
            read_options=pa.csv.ReadOptions(block_size=self.block, encoding=self.encoding),
            parse_options=pa.csv.ParseOptions(delimiter=self.separator, newlines_in_values=True),
            convert_options=pa.csv.ConvertOptions(
                include_columns=columns,
                column_types=types,
                null_values=list(MISSING),
                decimal_point="," if self.decimal_comma else ".",
            ),
        )

    def batches(self, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
        types = dict(zip(schema.names, schema.types, strict=True))
        with _as_data_errors(self.path, self.encoding, self.separator):
            yield from self._parsed(pa.csv.open_csv, schema.names, types)

    def load(self, columns: list[str], text: Collection[str]) -> pa.Table:
        types = dict.fromkeys(text, pa.string())
        with _as_data_errors(self.path, self.encoding, self.separator):
            table = self._narrow(columns, types) if len(columns) > _WIDE else None
            if table is None:
                table = self._parsed(pa.csv.read_csv, columns, types)
        if any(pa.types.is_binary(field.type) for field in table.schema):  # bytes that are no text
            raise _complaint(self.path, _NO_TEXT, self.encoding)
        return table

    def _narrow(self, columns: list[str], types: dict[str, Any]) -> pa.Table | None:
        """A wide table in a fraction of the bytes; None if it does not hold what its first rows do.

        Thousands of columns are mostly flags and counts. Those that are small in the first rows are
        read as small numbers, and rows one block at a time.
        """
        small = {pa.int64(): pa.int16(), pa.float64(): pa.float32()}
        with suppress(pa.ArrowInvalid, StopIteration):
            batch = self._parsed(pa.csv.open_csv, columns, types).read_next_batch()
            for name, column in zip(columns, batch.columns, strict=True):
                if column.type in small:
                    least, most = pc.min_max(column).as_py().values()
                    if least is not None and least >= -_SMALL and most <= _SMALL:
                        types = types | {name: small[column.type]}
            return self._parsed(pa.csv.open_csv, columns, types).read_all()
        return None


def _text(path: Path, encoding: str | None) -> UnreadTable:
    """A CSV file; its separator is the one that cuts the first line into most columns."""
    warnings: tuple[str, ...] = ()
    if encoding is None:
        encoding = _encoding_of(path)
        if encoding == _WINDOWS:
            warnings = (
                f"{path} is not in UTF-8, and is read as Windows-1252 (or Latin-1); if letters "
                "come out wrong, name its encoding (encoding=, --encoding)",
            )
    sample = _first_lines(path, encoding)
    headers = {separator: _header(sample, separator) for separator in _SEPARATORS}
    separator = max(headers, key=lambda name: len(headers[name]))  # the comma if all are equal
    names = headers[separator]
    if not names:
        raise DataError(f"{path} has no first line of column names; add one")
    if any("\0" in name for name in names):  # UTF-16 without its mark, or no text
        raise _complaint(path, _NO_TEXT, encoding)
    decimal_comma = bool(separator == ";" and _COMMA.search(sample) and not _POINT.search(sample))
    notes: tuple[str, ...] = ()
    if separator != "," and not (separator == "\t" and ".tsv" in path.suffixes):
        comma = ", and the decimal point is a comma" if decimal_comma else ""
        notes = (f"{path}: columns are separated by a {_SEPARATORS[separator]}{comma}",)
    if encoding not in (_UTF_8, _WINDOWS):
        notes += (f"{path}: its encoding is {encoding}",)
    block = max(_SAMPLE, 256 * sum(map(len, names)))
    file = _TextFile(path, encoding, separator, decimal_comma, block)
    return UnreadTable(str(path), names, file.load, notes, file.batches, warnings=warnings)


@contextmanager
def _letters(path: Path, encoding: str, errors: str = "strict") -> Iterator[io.TextIOWrapper]:
    """The text of a file, without a byte-order mark."""
    name = "utf-8-sig" if encoding == _UTF_8 else encoding
    with pa.input_stream(str(path), compression="detect") as stream:
        yield io.TextIOWrapper(stream, encoding=name, errors=errors, newline="")


def _first_lines(path: Path, encoding: str) -> str:
    """The beginning of a text file, at least its first line that is not empty."""
    with _as_data_errors(path, encoding), _letters(path, encoding) as letters:
        text = ""
        while "\n" not in text.strip() and (more := letters.read(_SAMPLE)):
            text += more
    if not text.strip():
        raise DataError(f"{path} is empty; give a table with a first line of column names")
    return text


def _header(sample: str, separator: str) -> list[str]:
    """The names in the first line; none if this separator leaves a field that is too long."""
    try:
        rows = csv.reader(io.StringIO(sample, newline=""), delimiter=separator)
        return next(row for row in rows if row)  # empty lines are skipped
    except csv.Error:
        return []


def _uneven_line(path: Path, encoding: str, separator: str) -> int | None:
    """The number of the first line that has more or fewer fields than the line of names."""
    with _letters(path, encoding, "replace") as letters, suppress(csv.Error):
        rows = csv.reader(letters, delimiter=separator)
        names = next(row for row in rows if row)
        begin = rows.line_num + 1
        for row in rows:
            if row and len(row) != len(names):
                return begin
            begin = rows.line_num + 1
    return None


def _complaint(path: Path, error: str, encoding: str = _UTF_8) -> DataError:
    known = next(words for words in _COMPLAINTS if words in error)
    shown = "UTF-8" if encoding == _UTF_8 else encoding
    return DataError(_COMPLAINTS[known].format(name=path, error=error, encoding=shown))


@contextmanager
def _as_data_errors(
    path: Path, encoding: str = _UTF_8, separator: str | None = None
) -> Iterator[None]:
    """Errors of a file, with the line if a row does not have as many fields as there are names."""
    try:
        yield
    except FileNotFoundError as error:
        raise DataError(f"there is no file {path}; check the path") from error
    except UnicodeError as error:
        raise _complaint(path, _NO_TEXT, encoding) from error
    except (OSError, pa.ArrowException) as error:
        if path.is_dir():
            raise DataError(f"{path} is a folder; give the file of a table") from error
        said = str(error).strip()
        if separator is not None and (uneven := _UNEVEN.match(said)):
            line = _uneven_line(path, encoding, separator)
            said = said if line is None else f"line {line}: {said[uneven.end() :]}"
        raise _complaint(path, said, encoding) from error


def _encoding_of(path: Path) -> str:
    """The encoding of a text file, which may be compressed; every letter is looked at.

    It is that of its byte-order mark, or else UTF-8 if it can be read so, or else Windows-1252 if
    it can be read so and has no control characters.
    """
    with _as_data_errors(path):
        with pa.input_stream(str(path), compression="detect") as stream:
            begin = stream.read(4)
        marked = [name for mark, name in _MARKS.items() if begin.startswith(mark)]
        if marked:
            return marked[0]
        for encoding in (_UTF_8, _WINDOWS):
            with suppress(UnicodeError), _letters(path, encoding) as letters:
                while text := letters.read(_SAMPLE):
                    if encoding == _WINDOWS and _CONTROL.search(text):
                        raise _complaint(path, _NO_TEXT)
                return encoding
    raise _complaint(path, _NO_TEXT)


def _named_encoding(encoding: str) -> str:
    """The usual name of an encoding of text; anything else is a :class:`UsageError`."""
    try:
        "a".encode(encoding)
        return codecs.lookup(encoding).name
    except (LookupError, TypeError, ValueError) as error:
        raise UsageError(
            f"encoding={encoding!r} is no encoding of text; give one such as utf-8, cp1252 or "
            "utf-16, or leave it out"
        ) from error
