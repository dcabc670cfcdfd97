"""The types that the columns of a table may have."""

from __future__ import annotations

from typing import Literal, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types

from memohop.errors import DataError

Kind: TypeAlias = Literal["empty", "flag", "text", "number"]

MISSING = ("", "NA", "N/A", "n/a", "#N/A", "NaN", "nan", "NULL", "null")
"""Strings that mean a missing value in a text file, in every column except ids."""

_MISSING = pa.array(MISSING)
_WHOLE = r"^(0|-?[1-9][0-9]{0,17})$"  # as Python writes it
_KINDS: dict[Kind, tuple[str, ...]] = {
    "empty": ("null",),
    "flag": ("boolean",),
    "text": ("string", "large_string", "string_view"),
    "number": ("integer", "floating", "decimal", "date", "timestamp", "time"),
}


def column_kind(kind: pa.DataType) -> Kind | None:
    """What a column of this type holds (dates and times are numbers); None for other types."""
    if types.is_dictionary(kind):
        return column_kind(kind.value_type)
    for name, members in _KINDS.items():
        if any(getattr(types, f"is_{member}")(kind) for member in members):
            return name
    return None


def is_time(kind: pa.DataType) -> bool:
    """Whether it is the type of a date or time."""
    return types.is_date(kind) or types.is_timestamp(kind) or types.is_time(kind)


def plain_table(table: pa.Table, name: str) -> pa.Table:
    """The table, if :func:`column_kind` knows all its columns and its strings are valid UTF-8.

    Numbers and flags that are stored as a dictionary are decoded. Errors call the table ``name``.
    """
    for index, field in enumerate(table.schema):
        kind = column_kind(field.type)
        if kind is None:
            raise no_kind(field.name, field.type, f"{name}: ")
        if kind == "text":
            try:
                table.column(index).validate(full=True)
            except pa.ArrowException as error:
                raise DataError(
                    f"{name}: column {field.name!r} holds strings that are not text in UTF-8 "
                    f"({error}); write the table again"
                ) from error
        elif types.is_dictionary(field.type):
            decoded = table.column(index).cast(field.type.value_type)
            table = table.set_column(index, field.name, decoded)
    return table


def as_text(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Any column as strings; those that mean a missing value in a text file become null."""
    column = column.cast(pa.string())
    blank = pc.is_in(column, value_set=_MISSING)
    # Not if_else: before pyarrow 24 it damages strings that are a slice of others.
    return pc.replace_with_mask(column, blank.combine_chunks(), pa.scalar(None, pa.string()))


def whole_as_text(column: pa.ChunkedArray, wrong: str, remedy: str) -> pa.ChunkedArray:
    """Ids or labels as strings; 2.0 becomes 2, since tables with gaps store 2 as 2.0.

    Args:
        column: The ids or labels.
        wrong: The first part of the error for other fractions.
        remedy: Its last part.
    """
    if types.is_floating(column.type):
        column = pc.if_else(pc.is_nan(column), pa.scalar(None, column.type), column)
        try:
            column = column.cast(pa.int64())
        except pa.ArrowException as error:
            raise DataError(f"{wrong} ({error}); {remedy}") from error
    return column.cast(pa.string())


def spelled_whole(text: pa.ChunkedArray | pa.Array) -> bool:
    """Whether all strings are whole numbers, each spelled in the one usual way."""
    return bool(pc.all(pc.match_substring_regex(text, _WHOLE)).as_py())


def no_kind(column: str, kind: pa.DataType, prefix: str = "") -> DataError:
    """The error for a column of a type that :func:`column_kind` does not know."""
    return DataError(
        f"{prefix}column {column!r} is of type {kind}, which is not a number, flag or string; "
        "convert it to columns of these types or leave it out"
    )
