"""How templates become pages."""

from __future__ import annotations

from importlib import resources
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from memohop.printable import printable


def page_environment() -> Environment:
    """Reads our templates, escapes what it is given, and fails on a name that is not there.

    Characters that cannot be seen are spelled out; line breaks stay, which a page shows as spaces.
    """
    return Environment(
        loader=PackageLoader("memohop.report"),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=_shown,
        trim_blocks=True,
        lstrip_blocks=True,
    )


def _shown(value: Any) -> Any:
    """A text that a template shows; what is markup already stays as it is."""
    is_text = isinstance(value, str) and not isinstance(value, Markup)
    return printable(value, lines=True) if is_text else value


def template_text(name: str) -> str:
    """A style or script that lies beside the templates, as it is."""
    return (resources.files("memohop.report") / "templates" / name).read_text(encoding="utf-8")
