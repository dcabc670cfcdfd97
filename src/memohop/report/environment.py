"""How templates become pages."""

from __future__ import annotations

from jinja2 import Environment, PackageLoader, StrictUndefined


def page_environment() -> Environment:
    """Reads our templates, escapes what it is given, and fails on a name that is not there."""
    return Environment(
        loader=PackageLoader("memohop.report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
