"""Many files with the same columns, read as one table."""

from __future__ import annotations

import glob
import os
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path
from typing import TypeAlias

import pyarrow as pa

from memohop.data.tables.sources import UnreadTable, check_alike, open_table
from memohop.errors import DataError

Files: TypeAlias = str | os.PathLike[str] | Sequence[str | os.PathLike[str]]
"""A file, a folder, a pattern such as ``edges/*.csv``, or a list of these."""

_ENDINGS = (".csv", ".csv.gz", ".tsv", ".tsv.gz", ".txt", ".txt.gz", ".parquet", ".pq")


def find_files(given: Files, argument: str) -> list[Path]:
    """The files, those of a folder or a pattern in alphabetical order."""
    if not isinstance(given, str | os.PathLike):
        return [path for files in given for path in find_files(files, argument)]
    path = Path(given).expanduser()
    if path.is_dir():
        paths = sorted(
            file
            for file in path.iterdir()
            if file.name.lower().endswith(_ENDINGS) and file.name[0] not in "._" and file.is_file()
        )
        lacking = f"{path} holds no tables, which are files that end in {', '.join(_ENDINGS)}"
    else:
        paths = [path] if path.exists() else [*map(Path, sorted(glob.glob(str(path))))]
        lacking = f"there is no file {path}"
    if not paths:
        raise DataError(f"{argument}: {lacking}; check the path")
    return paths


def open_files(paths: Sequence[Path], encoding: str | None = None) -> UnreadTable:
    """Files with the same columns as one table; nothing is read yet.

    Without an encoding, each text file decides for itself.
    """
    tables = [open_table(path, "", encoding) for path in paths]
    first = tables[0]
    if len(tables) == 1:
        return first
    check_alike(tables, first.columns)

    def load(columns: list[str], text: Collection[str]) -> pa.Table:
        loaded = [table.load(columns, text) for table in tables]
        schemas = [table.schema for table in loaded]
        uneven = [name for name in columns if _common(schemas, name) is None]
        if uneven:  # words in some of the files: of text files all are read as words then
            words = {*text, *uneven}
            loaded = [table.load(columns, words) for table in tables]
        try:
            return pa.concat_tables(loaded, promote_options="permissive")
        except pa.ArrowException as error:
            raise DataError(
                f"{first.name} and the files beside it have columns of different types ({error}); "
                "write them alike"
            ) from error

    def batches(schema: pa.Schema) -> Iterator[pa.RecordBatch]:
        for table in tables:
            assert table.batches is not None
            yield from table.batches(schema)

    notes = tuple(dict.fromkeys(note for table in tables for note in table.notes))
    warnings = tuple(warning for table in tables for warning in table.warnings)
    if len(warnings) > 1:  # all are of the same kind
        warnings = warnings[0], f"so are {len(warnings) - 1} more file(s) beside it"
    name = f"{first.name} and {len(tables) - 1} more file(s)"
    schemas = [table.stored for table in tables]
    stored = None
    if None not in schemas:
        kinds = {column: _common(schemas, column) for column in first.columns}
        stored = pa.schema({column: kind or pa.string() for column, kind in kinds.items()})
    return UnreadTable(name, first.columns, load, notes, batches, stored, warnings)


def _common(schemas: Sequence[pa.Schema], name: str) -> pa.DataType | None:
    """The type that a column has, or may have, in all tables; None if there is none."""
    fields = [pa.schema([schema.field(name)]) for schema in schemas]
    try:
        return pa.unify_schemas(fields, promote_options="permissive").field(name).type
    except pa.ArrowException:
        return None
