"""The report in headless Chromium, driven by a script at the end of a copy of the page."""

from __future__ import annotations

import html
import json
import re
import shutil
import subprocess

import pytest

from made_up_search import made_up_search
from study.pages.page import Findings, report_page
from study.statistics.leaderboard import BACKBONES, Leaderboard

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
FLAGS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
    "--enable-logging=stderr", "--virtual-time-budget=5000", "--window-size=1280,900",
)  # fmt: skip
ANSWER = """
<script>
addEventListener("load", () => {
  const answer = document.createElement("pre");
  answer.id = "answer";
  answer.textContent = JSON.stringify((() => { %s })());
  document.body.append(answer);
});
</script>
</body>"""
SORTED = """
const table = document.getElementById("scores-paper");
const heads = Array.from(table.tHead.rows[0].cells);
const names = () => Array.from(table.tBodies[0].rows, (row) => row.cells[0].textContent);
const click = (name) => {
  heads.find((head) => head.textContent.startsWith(name)).querySelector("button").click();
  return names();
};
return {
  before: names(),
  down: click("squirrel"), up: click("squirrel"), marks: heads.map((h) => h.ariaSort),
  words: click("model"), backwards: click("model"),
};
"""


@pytest.fixture(scope="module")
def browse(tmp_path_factory):
    """A function from a page and a script to the script's answer and the console's errors."""
    browser = next(filter(None, map(shutil.which, NAMES)), None)
    if browser is None:
        pytest.skip(f"there is no browser here, none of {', '.join(NAMES)}")

    def run(page, script):
        folder = tmp_path_factory.mktemp("browser")
        before, _, _ = page.rpartition("</body>")
        (folder / "page.html").write_text(before + ANSWER % script + "</html>", encoding="utf-8")
        address = (folder / "page.html").as_uri()
        command = [browser, *FLAGS, f"--user-data-dir={folder / 'user'}", "--dump-dom", address]
        done = subprocess.run(command, capture_output=True, text=True, timeout=300)
        assert done.returncode == 0, done.stderr
        match = re.search(r'<pre id="answer">(.*?)</pre>', done.stdout, flags=re.DOTALL)
        assert match, done.stderr
        console = [line for line in done.stderr.splitlines() if "CONSOLE" in line]
        return json.loads(html.unescape(match[1])), console

    return run


def test_errors_would_be_seen(browse):
    page = "<html><body><script>nothing.at.all;</script></body></html>"
    answer, console = browse(page, "return 1")
    assert answer == 1
    assert "nothing is not defined" in console[0]


def test_the_page_opens_without_an_error_and_asks_for_nothing(browse, page):
    script = """return {
      requests: performance.getEntriesByType("resource").length,
      tables: Array.from(document.querySelectorAll("table.sortable"), (t) => t.id),
      buttons: document.querySelectorAll("table.sortable thead th button").length,
      heads: document.querySelectorAll("table.sortable thead th").length,
      wide: document.documentElement.scrollWidth,
    };"""
    answer, console = browse(page, script)
    assert console == []
    assert answer["requests"] == 0
    names = {"scores-paper", "scores-official", "ranks-paper", "lambda-changes", "data-versions"}
    assert names <= set(answer["tables"])
    assert answer["buttons"] == answer["heads"] > 100
    assert answer["wide"] <= 1280


def test_the_page_without_results_opens_too(browse):
    answer, console = browse(
        report_page(Findings()), 'return document.querySelectorAll(".missing").length'
    )
    assert console == []
    assert answer == 8


def test_a_click_sorts_and_another_turns_the_order_round(browse, page, tables):
    answer, console = browse(page, SORTED)
    assert console == []
    table = tables[0]
    scores = {model: table.measured[model, "squirrel"].mean for model in table.rows}
    by_score = sorted(table.rows, key=scores.get)
    assert answer["before"] == list(table.rows)
    assert answer["up"] == by_score
    assert answer["down"] == by_score[::-1]
    assert [mark for mark in answer["marks"] if mark] == ["ascending"]
    # As people sort words, where signs between letters count least.
    assert answer["words"] == sorted(table.rows, key=lambda name: re.sub(r"\W", "", name))
    assert answer["backwards"] == answer["words"][::-1]


def test_the_leaderboard_can_be_narrowed_and_sorted(browse):
    script = """
      const table = document.getElementById("fair-board");
      const seen = (parts) => Array.from(parts).filter((part) => part.offsetParent !== null);
      const names = () => seen(table.tBodies[0].rows).map((row) => row.cells[0].textContent.trim());
      const heads = () => seen(table.tHead.rows[0].cells).map((head) => head.textContent.trim());
      const choose = (id, value) => {
        const select = document.getElementById(id);
        select.value = value;
        select.dispatchEvent(new Event("change"));
      };
      const whole = [names().length, heads().length];
      choose("filter-kind", "backbone");
      choose("filter-family", "synthetic");
      const narrow = [names(), heads()];
      table.tHead.rows[0].cells[2].querySelector("button").click();
      const sorted = names();
      choose("filter-kind", "");
      choose("filter-family", "");
      return { whole, narrow, sorted, again: [names().length, heads().length] };"""
    tuned = made_up_search()
    board = Leaderboard(tuned)
    answer, console = browse(report_page(Findings(fair=tuned)), script)
    assert console == []
    assert answer["whole"] == answer["again"] == [len(board.rows), 6 + len(board.columns)]
    rows, heads = answer["narrow"]
    assert rows == [row for row in board.rows if row in BACKBONES]
    assert heads[6:] == ["csbm homophily=0.05", "csbm homophily=0.8"]
    assert answer["sorted"] == rows[::-1]  # the highest rank first


def test_cells_without_a_number_stay_at_the_end(browse):
    page = report_page(Findings())
    style_and_script = page[page.index("<script>") : page.index("</body>")]
    rows = "".join(
        f"<tr><th>{name}</th><td{f' data-value={value!r}' if value else ''}>x</td></tr>"
        for name, value in {"a": "2", "b": "", "c": "10", "d": "-3"}.items()
    )
    table = (
        '<table class="sortable"><thead><tr><th>n</th><th>v</th></tr></thead>'
        f"<tbody>{rows}</tbody></table>"
    )
    script = """
      const names = () => Array.from(document.querySelectorAll("tbody th"), (h) => h.textContent);
      const button = document.querySelectorAll("thead button")[1];
      button.click(); const down = names(); button.click(); return [down, names()];"""
    answer, console = browse(f"<html><body>{table}{style_and_script}</body></html>", script)
    assert console == []
    assert answer == [["c", "a", "d", "b"], ["d", "a", "c", "b"]]


def test_on_a_phone_nothing_but_the_tables_is_wider_than_the_screen(browse, page):
    style = "border:0;width:390px;height:844px"
    frame = f'<iframe style="{style}" srcdoc="{html.escape(page)}"></iframe>'
    script = """
      const inner = document.querySelector("iframe").contentDocument;
      const shown = (name) => inner.querySelector(name).getBoundingClientRect().width;
      return {
        wide: inner.documentElement.scrollWidth,
        table: inner.getElementById("scores-paper").scrollWidth,
        diagrams: [shown("svg.wide"), shown("svg.narrow")],
      };"""
    answer, console = browse(f"<html><body>{frame}</body></html>", script)
    assert console == []
    assert answer["wide"] <= 390 < answer["table"]
    assert answer["diagrams"][0] == 0 < answer["diagrams"][1] < 390
