"""The critical-difference diagram."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET

import numpy as np
import pytest

from study.pages.figures import rank_diagram
from study.paper.table1 import printed_comparison
from study.statistics.comparison import compare

SVG = "{http://www.w3.org/2000/svg}"


@pytest.fixture(scope="module")
def separable():
    """Twelve datasets on which three of five models are far behind."""
    rng = np.random.default_rng(0)
    base = rng.normal(60, 5, 12)
    levels = {"a & b": 0, "c": 0.1, "d": -20, "e": -21, "f": -40}
    return compare({name: base + level + rng.normal(0, 1, 12) for name, level in levels.items()})


def drawn(comparison, **more):
    return ET.fromstring(rank_diagram(comparison, title="Ranks", **more))


def position_of(root):
    """Where the axis puts its numbers, as a function of the rank."""
    ticks = {int(t.text): float(t.get("x")) for t in root.iter(f"{SVG}text") if t.text.isdigit()}
    low, high = min(ticks), max(ticks)
    return lambda rank: ticks[low] + (rank - low) / (high - low) * (ticks[high] - ticks[low])


@pytest.mark.parametrize("width", [720, 370])
def test_lines_come_down_from_the_average_ranks(separable, width):
    root = drawn(separable, width=width)
    position = position_of(root)
    starts = [
        float(re.match(r"M([\d.]+) ", path.get("d"))[1])
        for path in root.iter(f"{SVG}path")
        if path.get("stroke-opacity") == "0.55"
    ]
    assert starts == pytest.approx([position(rank) for rank in separable.ranks], abs=0.02)


def test_bars_join_the_cliques(separable):
    root = drawn(separable)
    position = position_of(root)
    bars = [path for path in root.iter(f"{SVG}path") if path.get("class") == "clique"]
    assert [bar.find(f"{SVG}title").text for bar in bars] == [
        ", ".join(clique) for clique in separable.cliques
    ]
    assert len(bars) == 2
    ranks = dict(zip(separable.models, separable.ranks, strict=True))
    for bar, clique in zip(bars, separable.cliques, strict=True):
        start, end = re.match(r"M([\d.]+) \d+H([\d.]+)$", bar.get("d")).groups()
        assert float(start) == pytest.approx(position(ranks[clique[0]]) - 4, abs=0.02)
        assert float(end) == pytest.approx(position(ranks[clique[-1]]) + 4, abs=0.02)


def test_the_ruler_is_as_long_as_the_critical_difference(separable):
    root = drawn(separable)
    position = position_of(root)
    ruler = next(p.get("d") for p in root.iter(f"{SVG}path") if "m0-4h" in p.get("d"))
    length = float(re.search(r"h([\d.]+)", ruler)[1])
    assert length == pytest.approx(position(separable.critical_difference) - position(0), abs=0.02)


@pytest.mark.parametrize("width", [720, 370])
def test_every_name_is_there_with_its_rank_and_inside_the_drawing(width):
    comparison = printed_comparison()
    root = drawn(comparison, width=width)
    texts = {text.text: text for text in root.iter(f"{SVG}text")}
    size = 13 if width == 720 else 11
    for model, rank in zip(comparison.models, comparison.ranks, strict=True):
        text = texts.get(f"{model} {rank:.2f}")
        if text is None:
            text = texts[f"{rank:.2f} {model}"]
        x, length = float(text.get("x")), 0.64 * size * len(text.text)
        if text.get("text-anchor") == "end":
            assert x >= length
        else:
            assert x + length <= width


def test_names_are_escaped(separable):
    assert any("a & b" in text.text for text in drawn(separable).iter(f"{SVG}text"))


def test_long_names_leave_room_for_the_axis_on_a_narrow_screen():
    rng, names = np.random.default_rng(1), [f"dir-gcn+mmp labels=memory {i}" for i in range(9)]
    comparison = compare({name: rng.normal(60, 5, 6) for name in names})
    root = drawn(comparison, width=370)
    ends = [float(t.get("x")) for t in root.iter(f"{SVG}text") if t.text.isdigit()]
    assert max(ends) - min(ends) > 40
    for text in root.iter(f"{SVG}text"):
        reach = 0.64 * 11 * len(text.text)
        x, anchor = float(text.get("x")), text.get("text-anchor", "start")
        assert x - reach * {"start": 0, "middle": 0.5, "end": 1}[anchor] >= 0, text.text
        assert x + reach * {"start": 1, "middle": 0.5, "end": 0}[anchor] <= 370, text.text
