"""Writes ``reference/commands.md``: the help of every command, as Cyclopts has it."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from unittest import mock

from cyclopts import App
from sphinx.application import Sphinx

_OPENING = """# Commands

What `memohop COMMAND --help` says, generated from the commands themselves. Exit codes: 0 for
success, 1 for files, disks and networks, 2 for arguments that cannot be right, 130 for Ctrl-C.
"""


def page(app: App) -> str:
    """The help of all commands in Markdown, with their examples."""
    with mock.patch.object(sys, "argv", ["memohop"]):  # `python -m sphinx` would be in every usage
        text = app.generate_docs(output_format="markdown")
    sections = re.split(r"^(?=##+ memohop )", text, flags=re.MULTILINE)[1:]
    return "\n".join([_OPENING, *(_section(app, section) for section in sections)])


def _section(app: App, section: str) -> str:
    name = section.split("\n", 1)[0].lstrip("# ")
    command = app
    for word in name.split()[1:]:
        command = command[word]
    if not command.help_epilogue:
        return section
    title, _, lines = command.help_epilogue.partition("\n")
    examples = "\n".join(line.removeprefix("  ") for line in lines.splitlines())
    return f"{section.rstrip()}\n\n**{title}**\n\n```text\n{examples}\n```\n"


def _write(app: Sphinx) -> None:
    import memohop.cli  # noqa: F401  # adds the commands
    from memohop.cli.app import app as memohop_app

    target = Path(app.srcdir, "reference", "commands.md")
    text = page(memohop_app)
    if not target.exists() or target.read_text(encoding="utf-8") != text:
        target.write_text(text, encoding="utf-8")


def setup(app: Sphinx) -> dict[str, bool]:
    """Write the page before Sphinx looks for pages."""
    app.connect("builder-inited", _write)
    return {"parallel_read_safe": True}
