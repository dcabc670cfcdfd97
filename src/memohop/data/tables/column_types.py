"""The types of columns that a table may have, whatever it came from."""

from __future__ import annotations

from typing import Literal, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from memohop.errors import DataError

Kind: TypeAlias = Literal["text", "number", "flag", "empty"]

MISSING = ("", "NA", "N/A", "n/a", "#N/A", "NaN", "nan", "NULL", "null")
"""What counts as a missing value in a text file, in every column but those of ids."""

_MISSING = pa.array(MISSING)


def column_kind(kind: pa.DataType) -> Kind | None:
    """What a column of this type holds, dates and times being numbers; None for other types."""
    types = pa.types
    if types.is_dictionary(kind):
        return column_kind(kind.value_type)
    if types.is_null(kind):
        return "empty"
    if types.is_boolean(kind):
        return "flag"
    if types.is_string(kind) or types.is_large_string(kind) or types.is_string_view(kind):
        return "text"
    if (
        types.is_integer(kind)
        or types.is_floating(kind)
        or types.is_decimal(kind)
        or types.is_date(kind)
        or types.is_timestamp(kind)
        or types.is_time(kind)
    ):
        return "number"
    return None


def plain_table(table: pa.Table, name: str) -> pa.Table:
    """The table, if all of its columns are of a kind that `column_kind` knows.

    Numbers and flags that are stored as a dictionary are written out.

    Args:
        table: Columns from a file or from memory.
        name: What errors call it.
    """
    columns = []
    for field, column in zip(table.schema, table.columns, strict=True):
        kind = column_kind(field.type)
        if kind is None:
            raise no_kind(field.name, field.type, f"{name}: ")
        if kind == "text":
            _check_letters(column, field.name, name)
        if pa.types.is_dictionary(field.type) and kind != "text":
            column = column.cast(field.type.value_type)
        columns.append(column)
    return pa.Table.from_arrays(columns, names=table.column_names) if columns else table


def _check_letters(column: pa.ChunkedArray, column_name: str, name: str) -> None:
    """Refuse strings in memory or Parquet whose bytes are no text."""
    try:
        column.validate(full=True)
    except pa.ArrowException as error:
        raise DataError(
            f"{name}: column {column_name!r} holds strings that are not text in UTF-8 ({error}); "
            "write the table anew"
        ) from error


def as_text(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Any column as strings, with what counts as missing in a text file set to null."""
    column = column.cast(pa.string())
    blank = pc.is_in(column, value_set=_MISSING)
    return pc.if_else(blank, pa.scalar(None, pa.string()), column)


def no_kind(column: str, kind: pa.DataType, place: str = "") -> DataError:
    """The error for a column of another type."""
    return DataError(
        f"{place}column {column!r} is of type {kind}, which is no number, flag or string; turn it "
        "into such columns or leave it out"
    )
