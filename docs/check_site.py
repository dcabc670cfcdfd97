"""Checks a built site: every link and anchor leads somewhere, and no page loads anything from afar.

``python docs/check_site.py FOLDER`` prints what is wrong and exits with 1 if anything is.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

_LOADS = {"script": "src", "img": "src", "iframe": "src", "source": "src", "video": "src"}
_STYLE_URL = re.compile(r"""(?:url\(\s*|@import\s+)["']?((?:https?:)?//[^"')\s]+)""")


class _Page(HTMLParser):
    """The anchors of a page, where its links lead, and what it loads."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.anchors: set[str] = set()
        self.links: list[str] = []
        self.loads: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        self.anchors.update(given[name] for name in ("id", "name") if given.get(name))
        if tag == "a" and "href" in given:
            self.links.append(given["href"])
        if tag == "link" and given.get("rel") not in ("canonical", "next", "prev"):
            self.loads.append(given.get("href", ""))
        if tag in _LOADS and _LOADS[tag] in given:
            self.loads.append(given[_LOADS[tag]])


def problems(folder: Path) -> Iterator[str]:
    """One sentence for each link that leads nowhere and each thing loaded from elsewhere."""
    paths = [path for path in folder.rglob("*.html") if path.parent != folder / "_static"]
    pages = {path: _Page(path.read_text(encoding="utf-8")) for path in paths}
    if not pages:
        yield f"{folder} has no pages; build them with `make docs`"
    for path, page in sorted(pages.items()):
        name = path.relative_to(folder).as_posix()
        for address in page.loads:
            if _is_afar(address):
                yield f"{name} loads {address}"
            elif not address.startswith("data:") and not _target(path, address).exists():
                yield f"{name} loads {address}, which is not there"
        for address in page.links:
            if _is_afar(address) or address.startswith("mailto:"):
                continue
            target, anchor = _target(path, address), unquote(urlsplit(address).fragment)
            if not target.exists():
                yield f"{name} links to {address}, which is not there"
            elif anchor and target in pages and anchor not in pages[target].anchors:
                yield f"{name} links to {address}, which has no such anchor"
    for path in sorted(folder.rglob("*.css")):
        for address in _STYLE_URL.findall(path.read_text(encoding="utf-8")):
            yield f"{path.relative_to(folder).as_posix()} loads {address}"


def _is_afar(address: str) -> bool:
    return address.startswith(("http:", "https:", "//"))


def _target(page: Path, address: str) -> Path:
    path = unquote(urlsplit(address).path)
    return (page.parent / path).resolve() if path else page


if __name__ == "__main__":
    wrong = list(problems(Path(sys.argv[1]).resolve()))
    sys.stderr.write("".join(f"{problem}\n" for problem in wrong))
    sys.exit(bool(wrong))
