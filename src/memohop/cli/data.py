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
    from memohop.data.datasets.fetch import without_digest
    from memohop.report.terminal import listing, output_console

    infos = [describe(name) for name in datasets()]
    if json:
        rows = [asdict(info) | {"dataset": info.id, "files": len(info.files)} for info in infos]
        names = ["dataset", *(name for name in rows[0] if name not in ("id", "dataset", "files"))]
        print_json([{name: row[name] for name in (*names, "files")} for row in rows])
    else:
        output_console().print(listing(infos))
        local = [info.id for info in infos if without_digest(info.files)]
        if local:
            print(f"\nNot downloaded, since no SHA-256 is known to check by: {', '.join(local)}.")
            print("memohop data fetch NAME says where to get the file and where to put it.")


@data_app.command(name="fetch", help_epilogue=_FETCH_EXAMPLES)
def data_fetch(*names: str, data: _FilledFolder = None) -> None:
    """Download datasets, or check those that are there; each file must have its SHA-256.

    A file whose SHA-256 is not known is taken from --data alone, and what it holds is compared
    with what was published.

    Args:
        names: Ids of datasets; or all, which leaves out files that are to be had from --data alone
            and are not there.
    """
    import memohop
    from memohop.data.datasets.fetch import how_to_get, local_folder, locate, without_digest

    if not names:
        raise UsageError("name the datasets to fetch, or all; see memohop data list")
    wanted = datasets() if "all" in names else list(dict.fromkeys(names))
    local = local_folder(data)
    for info in [describe(name) for name in wanted]:
        if not info.files:
            print(f"{info.id}: made on the spot, nothing to fetch")
            continue
        unchecked = without_digest(info.files)
        absent = [path for path in unchecked if local is None or not (local / path).exists()]
        if absent and "all" in names:
            print(f"{info.id}: left out. {how_to_get(absent[0])}")
            continue
        folder = locate(info.files, root=data, progress=sys.stderr.isatty())
        if unchecked:
            memohop.load(info.id, root=folder)
            found = "with the published counts (no SHA-256 is known)"
        else:
            found = "as published"
        print(f"{info.id}: {len(info.files)} file(s) in {folder}, {found}")


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
