"""Pages from templates."""

from __future__ import annotations

import math
from functools import cache
from typing import Any

from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from memohop.outputs import printable
from memohop.report.palette import HUES, THEMES


def render(template: str, *, package: str = "memohop.report", **values: Any) -> str:
    """A page as text: a template of ours or of another package, filled with these values."""
    return _environment(package).get_template(template).render(values)


def on_page(chart: str, kind: str = "") -> Markup:
    """An ``<svg>`` element in the colours of the page, with a CSS class if one is given."""
    for name, colour in HUES.items():
        chart = chart.replace(colour, f"var(--{name})")
    return Markup(chart.replace("<svg ", f'<svg class="{kind}" ', 1) if kind else chart)


@cache
def _environment(package: str) -> Environment:
    """An environment that reads templates, those of a package first, and escapes the values.

    It fails on an unknown name. Invisible characters are spelled out; line breaks stay, and a page
    shows them as spaces.
    """
    environment = Environment(
        loader=ChoiceLoader([PackageLoader(package), PackageLoader("memohop.report")]),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=_shown,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.globals["themes"] = THEMES
    environment.tests["unknown"] = math.isnan
    environment.filters["at"] = "{:.2f}".format
    return environment


def _shown(value: Any) -> Any:
    """A text with its invisible characters spelled out; markup stays as it is."""
    is_text = isinstance(value, str) and not isinstance(value, Markup)
    return printable(value, lines=True) if is_text else value
