"""Options that several commands of the study share, with their help."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from memohop.data.datasets.registry import describe
from memohop.errors import UsageError, check_distinct

NINE = "texas,wisconsin,cornell-legacy,actor,chameleon,squirrel,cora,citeseer,pubmed"
"""The datasets of Table 1."""

Datasets = Annotated[str, Parameter(help="Ids of datasets, separated by commas.")]
ResultsFile = Annotated[
    Path | None,
    Parameter(
        help="A file that python -m study store export wrote; by default those of the study."
    ),
]


def conditions(given: list[str] | None) -> dict[str, list[str]]:
    """The values for each name, given as ``dataset=texas,cora,model=gcn``."""
    found: dict[str, list[str]] = {}
    for text in given or ():
        name = ""
        for part in text.split(","):
            before, equals, value = part.rpartition("=")
            name = before if equals else name
            if not name or not value:
                raise UsageError(f"--only {text}: give it as dataset=texas,cora,model=gcn")
            found.setdefault(name, []).append(value)
    return found


def dataset_ids(text: str) -> list[str]:
    """The ids of a list with commas, each known and given once."""
    names = text.split(",")
    check_distinct("--datasets", names)
    for name in names:
        describe(name)
    return names
