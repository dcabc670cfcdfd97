"""Table 1 as the paper printed it, cell by cell. Needs no PyTorch."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

# Cornell's column is of the faulty file, which has the features and labels of Texas; see ERRATA.md.
_OUR_NAMES = {"cornell": "cornell-legacy"}


@dataclass(frozen=True)
class Printed:
    """Mean and standard deviation over ten splits, in percent; some cells have no deviation.

    The source is ``ours``, ``rerun`` (by the paper's authors) or ``copied`` (from another paper).
    """

    mean: float
    std: float | None
    source: str


@cache
def printed_table1() -> dict[tuple[str, str], Printed]:
    """The cells by (model, dataset), in the order of the print."""
    return {
        (row["model"], _OUR_NAMES.get(row["dataset"], row["dataset"])): Printed(
            float(row["mean"]), float(row["std"]) if row["std"] else None, row["source"]
        )
        for row in _rows("printed_table1.csv")
    }


@cache
def printed_ranks() -> dict[str, float]:
    """The column of average ranks, by model."""
    return {row["model"]: float(row["rank"]) for row in _rows("printed_ranks.csv")}


def table1_models() -> list[str]:
    """The rows of Table 1, in the order of the print."""
    return list(printed_ranks())


def table1_datasets() -> list[str]:
    """The columns of Table 1, in the order of the print."""
    return list(dict.fromkeys(dataset for _, dataset in printed_table1()))


def _rows(name: str) -> Iterator[dict[str, str]]:
    text = Path(__file__).with_name(name).read_text(encoding="utf-8")
    return csv.DictReader(line for line in text.splitlines() if not line.startswith("#"))
