"""Writes ``reference/commands.md``: the help of every command, as Cyclopts has it."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path
from unittest import mock

from cyclopts import App
from sphinx.application import Sphinx

_OPENING = """# Commands

What `memohop COMMAND --help` says, and in a checkout `python -m study COMMAND --help`, generated
from the commands themselves. Exit codes: 0 for
success, 1 for files, disks and networks, 2 for arguments that cannot be right, 130 for Ctrl-C.
"""


def page(*apps: App) -> str:
    """The help of all commands in Markdown, with their examples."""
    return "\n".join([_OPENING, *(section for app in apps for section in _sections(app))])


def _sections(app: App) -> Iterator[str]:
    (program,) = app.name
    with mock.patch.object(sys, "argv", [program]):  # `python -m sphinx` would be in every usage
        text = app.generate_docs(output_format="markdown")
    for section in re.split(rf"^(?=##+ {program} )", text, flags=re.MULTILINE)[1:]:
        yield _section(app, program, section)


def _section(app: App, program: str, section: str) -> str:
    name = section.split("\n", 1)[0].lstrip("# ")
    command = app
    for word in name.removeprefix(program).split():
        command = command[word]
    if not command.help_epilogue:
        return section
    title, _, lines = command.help_epilogue.partition("\n")
    examples = "\n".join(line.removeprefix("  ") for line in lines.splitlines())
    return f"{section.rstrip()}\n\n**{title}**\n\n```text\n{examples}\n```\n"


def _write(app: Sphinx) -> None:
    import study.cli  # noqa: F401
    from memohop.cli import app as memohop_app
    from study.cli.app import app as study_app

    target = Path(app.srcdir, "reference", "commands.md")
    text = page(memohop_app, study_app)
    if not target.exists() or target.read_text(encoding="utf-8") != text:
        target.write_text(text, encoding="utf-8")


def setup(app: Sphinx) -> dict[str, bool]:
    """Write the page before Sphinx looks for pages."""
    app.connect("builder-inited", _write)
    return {"parallel_read_safe": True}
