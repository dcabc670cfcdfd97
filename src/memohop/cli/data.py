"""`memohop data`: list, fetch, show."""

from __future__ import annotations

import sys
from dataclasses import asdict
from typing import Annotated

from cyclopts import App, Parameter

from memohop.cli.app import app, print_json
from memohop.cli.options import Dataset, Folder, Json
from memohop.data.datasets.registry import datasets, describe
from memohop.errors import UsageError

_DATA_EXAMPLES = """Examples:
  memohop data list
  memohop data fetch texas
  memohop data show texas"""
_LIST_EXAMPLES = """Examples:
  memohop data list
  memohop data list --json"""
_FETCH_EXAMPLES = """Examples:
  memohop data fetch texas cora
  memohop data fetch all
  memohop data fetch all --data my/folder"""
_SHOW_EXAMPLES = """Examples:
  memohop data show squirrel
  memohop data show texas --data my/folder --json"""

_FilledFolder = Annotated[
    Folder,
    Parameter(help="A folder that has the files: they are checked, and nothing is downloaded."),
]

data_app = App(
    name="data", help="List, download and inspect datasets.", help_epilogue=_DATA_EXAMPLES
)
app.command(data_app)


@data_app.command(name="list", help_epilogue=_LIST_EXAMPLES)
def data_list(*, json: Json = False) -> None:
    """List the datasets."""
    from memohop.report.terminal import listing, output_console

    infos = [describe(name) for name in datasets()]
    if json:
        rows = [asdict(info) | {"dataset": info.id, "files": len(info.files)} for info in infos]
        names = ["dataset", *(name for name in rows[0] if name not in ("id", "dataset", "files"))]
        print_json([{name: row[name] for name in (*names, "files")} for row in rows])
    else:
        output_console().print(listing(infos))


@data_app.command(name="fetch", help_epilogue=_FETCH_EXAMPLES)
def data_fetch(*names: str, data: _FilledFolder = None) -> None:
    """Download datasets, or check those that are there; each file must have its SHA-256.

    Args:
        names: Ids of datasets, or all.
    """
    from memohop.data.datasets.fetch import locate

    if not names:
        raise UsageError("name the datasets to fetch, or all; see memohop data list")
    wanted = datasets() if "all" in names else list(dict.fromkeys(names))
    for info in [describe(name) for name in wanted]:
        if not info.files:
            print(f"{info.id}: made on the spot, nothing to fetch")
            continue
        folder = locate(info.files, root=data, progress=sys.stderr.isatty())
        print(f"{info.id}: {len(info.files)} file(s) in {folder}, as published")


@data_app.command(name="show", help_epilogue=_SHOW_EXAMPLES)
def data_show(name: Dataset, *, data: Folder = None, json: Json = False) -> None:
    """Show what a dataset holds: counts, classes, splits, and what to beware of."""
    info = describe(name)  # before the imports, which take seconds

    import memohop
    from memohop.report.dataset import dataset_row, dataset_sheet
    from memohop.report.terminal import output_console

    row = dataset_row(memohop.load(name, root=data, progress=sys.stderr.isatty()), info)
    if json:
        print_json([row])
    else:
        output_console().print(dataset_sheet(row))
