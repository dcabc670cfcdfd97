"""The colours are in one file, and each page has all of them."""

from __future__ import annotations

import re
from importlib import resources

import pytest

from memohop.report.chart import Axis, Dot, Series, draw_chart
from memohop.report.palette import HUES, THEMES, look_of, themed


def files(folder):
    for item in folder.iterdir():
        if item.is_dir():
            yield from files(item)
        elif item.name.endswith((".py", ".css", ".html", ".js")):
            yield item


def test_no_other_file_of_the_reports_has_a_colour():
    found = {
        item.name
        for item in files(resources.files("memohop.report"))
        if re.search(r"#([0-9a-fA-F]{6}|[0-9a-fA-F]{3})\b", item.read_text(encoding="utf-8"))
    }
    assert found == {"palette.py"}


@pytest.mark.parametrize("theme", THEMES)
def test_each_theme_has_a_shade_of_every_hue(theme):
    assert THEMES[theme].keys() == THEMES["light"].keys() >= HUES.keys()


def test_a_chart_on_a_page_takes_its_colours_from_the_page():
    line = Series("gcn+mmp", look_of("gcn+mmp"), [Dot(0, 0, "a"), Dot(1, 1, "b")])
    chart = draw_chart([line], title="one line", x=Axis("x"), y=Axis("y"))
    assert "color:#0072b2" in chart
    assert "color:var(--blue)" in themed(chart)
    assert "#" not in themed(chart)
