"""The tables and figures in the documents are what the commands print."""

import re
from pathlib import Path

import pytest

from study.cli import main

ROOT = Path(__file__).parents[3]
MARKS = re.compile(r"<!-- python -m study (table [^>]*) -->\n(.*?)\n<!-- end -->", flags=re.S)
DOCUMENTS = ["README.md", "docs/benchmarks/findings.md", "docs/benchmarks/index.md"]
MINUS = "\N{MINUS SIGN}"
NUMBER = rf"([+{MINUS}-]?[\d,]+(?:\.\d+)?)"


@pytest.mark.parametrize("name", DOCUMENTS)
def test_tables_in_the_documents_are_those_of_the_command(name, capsys):
    """What stands between these two marks is the output of the command in the first one."""
    marked = MARKS.findall((ROOT / name).read_text(encoding="utf-8"))
    assert marked
    for command, shown in marked:
        assert main(command.split()) == 0
        assert shown.strip() == capsys.readouterr().out.strip()


def test_figures_in_the_text_are_in_the_tables(capsys):
    """A figure with a decimal point in the text on the fair table is one that a command prints."""
    assert main(["table", "fair"]) == 0
    known = set(re.findall(NUMBER, capsys.readouterr().out.replace(MINUS, "-")))
    known |= {figure.lstrip("+-") for figure in known}
    for name in DOCUMENTS:
        document = (ROOT / name).read_text(encoding="utf-8")
        for section in re.findall(r"<!-- fair -->(.*?)<!-- end of fair -->", document, flags=re.S):
            told = MARKS.sub("", section).replace(MINUS, "-")
            decimals = re.findall(r"(?<![\w.])[+-]?\d+\.\d+(?![\w.]*=)", told)
            assert not [figure for figure in decimals if figure not in known], name
