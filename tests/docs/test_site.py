"""Links and anchors of the sources lead somewhere, and the site is complete."""

import importlib.util
import re
import sys
from itertools import pairwise
from pathlib import Path

import pytest
from markdown_it import MarkdownIt

from memohop.cli import app
from memohop.report.palette import THEMES
from study.cli.app import app as study_app

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
HIDDEN = (".git", ".venv", "build", "gallery")
PAGES = sorted(
    path
    for path in [*ROOT.glob("*.md"), *(ROOT / "benchmarks").glob("*.md"), *DOCS.rglob("*.md")]
    if not set(HIDDEN) & set(path.relative_to(ROOT).parts)
)
GENERATED = {DOCS / "reference" / "commands.md", DOCS / "gallery" / "index.rst"}


def module(path):
    """A module that is not part of the package."""
    spec = importlib.util.spec_from_file_location(path.stem, path)
    loaded = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(loaded)
    return loaded


def including(text, page):
    """A text with the files that it includes."""
    for name in re.findall(r"^```{include} (\S+)$", text, flags=re.MULTILINE):
        text += (page.parent / name).read_text(encoding="utf-8")
    return text


def anchors(page):
    """The anchors of headings, spelled as MyST and forges do."""
    text = including(page.read_text(encoding="utf-8"), page)
    tokens = MarkdownIt().parse(text)
    titles = [
        "".join(part.content for part in inline.children)
        for heading, inline in pairwise(tokens)
        if heading.type == "heading_open"
    ]
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


def links(page):
    """Where the links and pictures of a page lead."""
    for token in MarkdownIt().enable("table").parse(page.read_text(encoding="utf-8")):
        for part in token.children or ():
            if part.type in ("link_open", "image"):
                yield str(part.attrs.get("href", part.attrs.get("src")))


def leads_somewhere(page, address):
    path, _, anchor = address.partition("#")
    target = (page.parent / path).resolve() if path else page
    if target in GENERATED or "gallery" in target.parts:
        example = ROOT / "examples" / f"{target.stem}.py"
        return target in GENERATED or example.exists()
    return target.exists() and (not anchor or anchor in anchors(target))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_links_and_anchors_lead_somewhere(page):
    inside = [to for to in links(page) if not to.startswith(("http:", "https:", "mailto:"))]
    assert [to for to in inside if not leads_somewhere(page, to)] == []


def test_a_link_to_nothing_is_found(tmp_path):
    page = tmp_path / "page.md"
    page.write_text("# A title, `code`\n\n[a](#a-title-code) [b](#nowhere) [c](absent.md)\n")
    assert [leads_somewhere(page, to) for to in links(page)] == [True, False, False]


def test_every_page_is_in_the_contents():
    listed = {DOCS / "index.md"}
    for page in DOCS.rglob("*.md"):
        text = page.read_text(encoding="utf-8")
        for block in re.findall(r"^```{toctree}\n(.*?)^```", text, re.MULTILINE | re.DOTALL):
            lines = [line for line in block.splitlines() if line and not line.startswith(":")]
            names = [re.sub(r"^.+<(\S+)>$", r"\1", line) for line in lines]  # or: Title <name>
            listed |= {page.parent / f"{name}.md" for name in names}
    pages = {page for page in PAGES if DOCS in page.parents}
    assert pages <= listed
    assert all(page.exists() or "gallery" in page.parts for page in listed - GENERATED)


def test_the_site_check_finds_what_is_wrong(tmp_path):
    problems = module(DOCS / "check_site.py").problems
    assert list(problems(tmp_path)) == [f"{tmp_path} has no pages; build them with `make docs`"]
    (tmp_path / "b.html").write_text('<h1 id="top">B</h1>')
    (tmp_path / "a.html").write_text(
        '<a href="b.html#top">x</a><a href="b.html#no">x</a><a href="c.html">x</a>'
        '<a href="https://example.org">x</a><script src="https://example.org/x.js"></script>'
    )
    (tmp_path / "a.css").write_text("@import 'https://example.org/font.css';")
    assert list(problems(tmp_path)) == [
        "a.html loads https://example.org/x.js",
        "a.html links to b.html#no, which has no such anchor",
        "a.html links to c.html, which is not there",
        "a.css loads https://example.org/font.css",
    ]


def test_the_page_of_commands_has_every_command_and_its_examples(monkeypatch):
    pytest.importorskip("sphinx", reason="the extra docs is not installed; `make docs` brings it")
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    as_sphinx = importlib.util.find_spec("sphinx.__main__")  # python -m sphinx
    monkeypatch.setattr(sys.modules["__main__"], "__spec__", as_sphinx)
    monkeypatch.setattr(sys, "argv", [as_sphinx.origin])
    page = module(DOCS / "_extensions" / "commands.py").page(app, study_app)
    for commands in (app, study_app):
        names = [name for name in commands if not name.startswith("-")]
        assert len(names) > 6
        for name in names:
            assert f"\n## {commands.name[0]} {name}\n" in page
    assert "memohop demo --output curve.svg" in page
    assert "\nmemohop audit [OPTIONS] [ARGS]\n" in page


def test_the_site_has_the_colours_of_the_pages():
    css = (DOCS / "_static" / "memohop.css").read_text(encoding="utf-8")
    for theme in ("light", "dark"):
        rules = re.search(rf'data-theme="{theme}"\] {{\n(.*?)}}', css, re.DOTALL)[1]
        colours = set(re.findall(r"#[0-9a-f]{3,6}", rules))
        assert colours <= set(THEMES[theme].values()), theme
