"""Every colour and symbol of the charts and pages.

Most colour-blind people can tell the hues apart (after Okabe and Ito); symbols tell the lines apart
for everybody. Charts are drawn in ``HUES``, which suit a file shown on white or on dark. On a page
they become the page's variables of the same name, whose shades follow its theme;
``templates/palette.css`` writes these variables from ``THEMES``.
"""

from __future__ import annotations

from typing import NamedTuple

_SHADES = {  # on any background, on white, on dark
    "grey": ("#797979", "#797979", "#a0a0a0"),
    "orange": ("#d55e00", "#c05200", "#f0803c"),
    "blue": ("#0072b2", "#0072b2", "#4fb0ea"),
    "green": ("#009e73", "#00805d", "#2fc79b"),
    "amber": ("#b07a00", "#946600", "#e0b040"),
    "pink": ("#b0548a", "#a8437e", "#e58ec2"),
    "purple": ("#7a5195", "#7a5195", "#bb96dd"),
}
_PAGES = {  # light, dark, print
    "ink": ("#1d2126", "#e8eaed", "#000"),
    "paper": ("#fff", "#14171a", "#fff"),
    "soft": ("#5b6470", "#a3acb7", "#444"),
    "rule": ("#d7dce2", "#363c43", "#bbb"),
    "tint": ("#f3f5f8", "#1f2429", "#fff"),
}
HUES = {name: shades[0] for name, shades in _SHADES.items()}
INK_FOR_ANY_BACKGROUND = HUES["grey"]  # as far from white as from a dark page
THEMES = {
    theme: {name: colours[page] for name, colours in _PAGES.items()}
    | {name: shades[hue] for name, shades in _SHADES.items()}
    for theme, page, hue in (("light", 0, 1), ("dark", 1, 2), ("print", 2, 1))
}


class Marker(NamedTuple):
    """How a line is drawn: its hue and the symbol of its points."""

    hue: str
    symbol: str

    @property
    def colour(self) -> str:
        """The hue on any background."""
        return HUES[self.hue]


_MODELS = {
    "mlp": Marker("grey", "diamond"),
    "gcn": Marker("orange", "square"),
    "gat": Marker("amber", "triangle"),
    "gcn+jk": Marker("pink", "diamond"),
    "gcn+de": Marker("purple", "square"),
    "gcn+mmp": Marker("blue", "circle"),
    "gat+mmp": Marker("green", "triangle"),
}
GATES = (  # attribute, label, marker
    ("kept", "kept", Marker("blue", "circle")),
    ("absorbed", "absorbed", Marker("orange", "square")),
    ("passed_on", "passed on", Marker("green", "triangle")),
)


def marker_of(model: str) -> Marker:
    """How the line of a model is drawn."""
    return _MODELS.get(model, Marker("grey", "circle"))
