"""Makes text of unknown origin safe to show: names of nodes, classes and columns."""

from __future__ import annotations

import re

_UNSEEN = (
    r"\x00-\x1f\x7f-\x9f"  # control characters: they steer a terminal
    r"\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069"  # they reverse the text after them
    r"\u2028\u2029"  # line breaks to some programs
    r"\ud800-\udfff"  # half a character, which cannot be written as UTF-8
)
_ANYWHERE, _BUT_LINES = re.compile(f"[{_UNSEEN}]"), re.compile(f"(?!\n)[{_UNSEEN}]")


def printable(text: str, *, lines: bool = False) -> str:
    r"""The text, invisible characters spelled out as ``\u202e``; ``lines`` keeps line breaks."""
    pattern = _BUT_LINES if lines else _ANYWHERE
    return pattern.sub(lambda found: f"\\u{ord(found[0]):04x}", text)
