"""Charts, and their colours, which are in one file and of which each page has all."""

import re
import xml.etree.ElementTree as ET
from importlib import resources

import pytest

from memohop.report.chart import Chart, ChartAxis, Dot, Series, VerticalMark, spread_out
from memohop.report.environment import on_page
from memohop.report.palette import HUES, THEMES, marker_of

SVG = "{http://www.w3.org/2000/svg}"
X = ChartAxis("across", 0, 1, 0.5)
Y = ChartAxis("up", 20, 100, 20)


def series(label="one", spread=(None, None, None)):
    points = zip((0.1, 0.5, 0.9), (40.0, 60.0, 90.0), spread, strict=True)
    dots = [Dot(x, y, f"{label} at {x}", band) for x, y, band in points]
    return Series(label, marker_of("gcn+mmp"), dots)


def chart(*lines, mark=None, title="A chart", **drawn):
    return ET.fromstring(Chart(lines or [series()], title, X, Y, mark).svg(**drawn))


def texts(root):
    return {text.text: text for text in root.iter(f"{SVG}text")}


def positions(root):
    """Where the points of all lines were put."""
    groups = [group for group in root.iter(f"{SVG}g") if group.get("class") == "point"]
    numbers = [re.findall(r"-?[\d.]+", group.get("transform")) for group in groups]
    return [(float(x), float(y)) for x, y in numbers]


def test_points_land_where_the_ticks_say():
    root = chart()
    ticks = texts(root)
    left, right = (float(ticks[name].get("x")) for name in ("0", "1"))
    # The numbers beside the vertical axis are 4.5 below their lines, to be centred on them.
    bottom, top = (float(ticks[name].get("y")) - 4.5 for name in ("20", "100"))
    for (x, y), (at_x, at_y) in zip(
        [(0.1, 40), (0.5, 60), (0.9, 90)], positions(root), strict=True
    ):
        assert at_x == pytest.approx(left + x * (right - left), abs=0.02)
        assert at_y == pytest.approx(bottom + (y - 20) / 80 * (top - bottom), abs=0.02)


def test_the_line_goes_through_its_points():
    root = chart()
    line = next(p for p in root.iter(f"{SVG}path") if p.get("stroke-width") == "2.2")
    numbers = [float(number) for number in re.findall(r"[\d.]+", line.get("d"))]
    assert list(zip(numbers[::2], numbers[1::2], strict=True)) == positions(root)


def test_everything_stays_inside_the_drawing():
    root = chart(series(), series("a longer name"), mark=VerticalMark(0.2, "here"), width=360)
    for x, y in positions(root):
        assert 0 < x < 360
        assert 0 < y < 420


def test_what_users_write_is_escaped():
    root = chart(series('<b> & "quotes"'), mark=VerticalMark(0.5, "a < b & c"))
    assert {'<b> & "quotes"', "a < b & c"} <= texts(root).keys()
    assert next(root.iter(f"{SVG}title")).text == '<b> & "quotes" at 0.1'
    root = chart(title='x" onload="y')
    assert root.get("aria-label") == 'x" onload="y'
    assert root.get("onload") is None


def test_a_band_is_cut_off_at_the_axis():
    root = chart(series(spread=(50.0, 5.0, 50.0)))
    band = next(p for p in root.iter(f"{SVG}path") if p.get("fill-opacity") == "0.15")
    heights = [float(n) for n in re.findall(r"[\d.]+", band.get("d"))][1::2]
    ticks = texts(root)
    assert max(heights) == pytest.approx(float(ticks["20"].get("y")) - 4.5, abs=0.02)
    assert min(heights) == pytest.approx(float(ticks["100"].get("y")) - 4.5, abs=0.02)


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ([10, 50], [10, 50]),
        ([10, 12, 14], [10, 20, 30]),
        ([95, 98, 99], [80, 90, 100]),
    ],
)
def test_spread_out(given, expected):
    assert spread_out(given, gap=10, high=100) == expected


def test_round_ticks():
    assert ChartAxis("share", 0, 1, 0.2).ticks == [0, 0.2, 0.4, 0.6, 0.8, 1]
    assert ChartAxis("percent", 30, 100, 10).ticks == [30, 40, 50, 60, 70, 80, 90, 100]


def files(folder):
    for item in folder.iterdir():
        if item.is_dir():
            yield from files(item)
        elif item.name.endswith((".py", ".css", ".html", ".js")):
            yield item


def test_no_other_file_of_the_reports_has_a_colour():
    coloured = {
        item.name
        for item in files(resources.files("memohop.report"))
        if re.search(r"#([0-9a-fA-F]{6}|[0-9a-fA-F]{3})\b", item.read_text(encoding="utf-8"))
    }
    assert coloured == {"palette.py"}


def test_a_chart_takes_its_colours_from_the_page_and_its_ink_from_who_asks():
    assert chart(ink="#797979").get("color") == "#797979"
    assert chart().get("color") is None
    assert all(shades.keys() >= HUES.keys() for shades in THEMES.values())
    drawn = Chart([series()], "one line", X, Y).svg()
    assert "color:#0072b2" in drawn
    assert "color:var(--blue)" in on_page(drawn)
    assert "#" not in on_page(drawn)
