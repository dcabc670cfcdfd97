"""Unprintable characters in names are escaped in the terminal, on pages and on the model card."""

from __future__ import annotations

import json

import numpy as np
import pytest
from markdown_it import MarkdownIt

import memohop
from commands import run, write_tables
from memohop import MMPClassifier
from memohop.cli import print_json, remark
from memohop.explain import explain_fit
from memohop.outputs import printable
from memohop.report.chart import Chart, ChartAxis, Dot, Series
from memohop.report.fit_page import fit_page
from memohop.report.palette import marker_of

TURNED = "safe\u202egnp.exe"
RED = "\x1b[31mred\x9b"
UNSEEN = ("\u202e", "\x1b", "\x9b", "\u2028", "\x07")


@pytest.fixture(scope="module")
def fitted():
    data = memohop.load("csbm", nodes=40, classes=2, channels=3)
    names = np.array([TURNED, RED + "<script>alert(1)</script>[x](javascript:1) a_b"])
    classifier = MMPClassifier(trials=1, splits=2, epochs=1).fit(
        data.x.numpy(), names[data.y.numpy()], edges=data.edge_index.numpy()
    )
    classifier.ids_ = np.array([f"{node}\u202e\x07\u2028<b>" for node in range(40)])
    return classifier


def test_what_cannot_be_seen_is_spelled_out():
    assert printable(TURNED) == r"safe\u202egnp.exe"
    assert printable(RED) == r"\u001b[31mred\u009b"
    assert printable("a\n\tb\u2029") == r"a\u000a\u0009b\u2029"
    assert printable("a\n\tb", lines=True) == "a\n\\u0009b"
    assert printable("\ud800") == r"\ud800"
    for text in ("Größe", "日本", "שלום", "🏳️‍🌈", "नमस्ते", "a\u200cb"):
        assert printable(text) == text


def test_remarks_and_json(capsys):
    remark(f"no node named {TURNED}\nmemohop: all is well")
    print_json([{"name": TURNED + RED + "\n"}])
    out, err = capsys.readouterr()
    assert err == "memohop: no node named safe\\u202egnp.exe\\u000amemohop: all is well\n"
    assert not any(sign in out for sign in UNSEEN)
    assert json.loads(out) == [{"name": TURNED + RED + "\n"}]


def test_pages_and_drawings(fitted):
    page = fit_page(explain_fit(fitted, fitted.ids_[3]))
    assert r"3\u202e\u0007\u2028&lt;b&gt;" in page
    line = Series(TURNED, marker_of("gcn"), [Dot(0, 0, RED)])
    chart = Chart([line], title=RED, x=ChartAxis(TURNED), y=ChartAxis(RED)).svg()
    for text in (page, chart):
        assert not any(sign in text for sign in UNSEEN)
        assert r"\u202e" in text


def test_the_audit(tmp_path, capsys):
    order, kinds = np.arange(31), [(TURNED, RED)[node % 2] for node in range(30)]
    nodes = {"id": order, "size": order % 7, "kind": [*kinds, f"{RED}x"]}
    tables = write_tables(tmp_path, nodes, {"source": order, "target": np.roll(order, 1)})
    page = tmp_path / "page.html"
    out, err = run(capsys, "audit", *tables, "--label", "kind", "-o", page)
    for text in (out, err, page.read_text()):
        assert not any(sign in text for sign in UNSEEN)
    assert r"safe\u202egnp.exe" in page.read_text()
    assert r"safe\u202egnp.exe" in out


def test_the_card_is_text_and_no_html(fitted, tmp_path):
    fitted.save(tmp_path / "model")
    card = (tmp_path / "model" / "README.md").read_text()
    assert not any(sign in card for sign in UNSEEN)
    assert "<script>" not in card
    shown = MarkdownIt("commonmark").enable("table").render(card)
    assert "&lt;script&gt;alert(1)&lt;/script&gt;[x](javascript:1) a_b" in shown
    assert "<a " not in shown
