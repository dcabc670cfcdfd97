"""How templates become pages."""

from __future__ import annotations

from importlib import resources

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


def template_text(name: str) -> str:
    """A style or script that lies beside the templates, as it is."""
    return (resources.files("memohop.report") / "templates" / name).read_text(encoding="utf-8")
