"""Every colour and symbol of the charts and pages.

Most colour-blind people can tell the hues apart (after Okabe and Ito); symbols tell the lines apart
for everybody. A chart is drawn in the hues of `HUES`, which suit a file that may be shown on white
or on dark. On a page `themed` replaces them with the page's variables of the same name, whose
shades follow its theme; `templates/palette.css` writes these variables from `THEMES`.
"""

from __future__ import annotations

from typing import NamedTuple

HUES = {
    "grey": "#797979",
    "orange": "#d55e00",
    "blue": "#0072b2",
    "green": "#009e73",
    "amber": "#b07a00",
    "pink": "#b0548a",
    "purple": "#7a5195",
}
INK_FOR_ANY_BACKGROUND = HUES["grey"]  # as far from white as from a dark page

_ON_WHITE = {
    "grey": "#797979",
    "orange": "#c05200",
    "blue": "#0072b2",
    "green": "#00805d",
    "amber": "#946600",
    "pink": "#a8437e",
    "purple": "#7a5195",
}
THEMES = {
    "light": {
        "ink": "#1d2126",
        "paper": "#fff",
        "soft": "#5b6470",
        "rule": "#d7dce2",
        "tint": "#f3f5f8",
        **_ON_WHITE,
    },
    "dark": {
        "ink": "#e8eaed",
        "paper": "#14171a",
        "soft": "#a3acb7",
        "rule": "#363c43",
        "tint": "#1f2429",
        "grey": "#a0a0a0",
        "orange": "#f0803c",
        "blue": "#4fb0ea",
        "green": "#2fc79b",
        "amber": "#e0b040",
        "pink": "#e58ec2",
        "purple": "#bb96dd",
    },
    "print": {
        "ink": "#000",
        "paper": "#fff",
        "soft": "#444",
        "rule": "#bbb",
        "tint": "#fff",
        **_ON_WHITE,
    },
}


class Look(NamedTuple):
    """How a line is drawn: its colour and the symbol of its points."""

    colour: str
    symbol: str


_MODELS = {
    "mlp": Look(HUES["grey"], "diamond"),
    "gcn": Look(HUES["orange"], "square"),
    "gat": Look(HUES["amber"], "triangle"),
    "gcn+jk": Look(HUES["pink"], "diamond"),
    "gcn+de": Look(HUES["purple"], "square"),
    "gcn+mmp": Look(HUES["blue"], "circle"),
    "gat+mmp": Look(HUES["green"], "triangle"),
}
GATES = (  # attribute, label, look
    ("kept", "kept", Look(HUES["blue"], "circle")),
    ("absorbed", "absorbed", Look(HUES["orange"], "square")),
    ("passed_on", "passed on", Look(HUES["green"], "triangle")),
)
RIGHT = ("right", "right", Look(HUES["grey"], "diamond"))
GROWTH = {
    "members": Look(HUES["blue"], "circle"),
    "arcs": Look(HUES["orange"], "square"),
    "width": Look(HUES["green"], "triangle"),
}


def look_of(model: str) -> Look:
    """How the line of a model is drawn."""
    return _MODELS.get(model, Look(HUES["grey"], "circle"))


def themed(chart: str) -> str:
    """A chart in the colours of the page that it stands on."""
    for name, colour in HUES.items():
        chart = chart.replace(colour, f"var(--{name})")
    return chart
