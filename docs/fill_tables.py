"""Writes the tables of the documents anew from the results: ``python docs/fill_tables.py``.

What stands between ``<!-- python -m study table ... -->`` and ``<!-- end -->`` is the output of
that command; ``tests/study/pages/test_documents.py`` sees to it that it stays so.
"""

import re
import shlex
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
DOCUMENTS = ("README.md", "docs/benchmarks/index.md", "docs/benchmarks/findings.md")
MARKS = re.compile(r"(<!-- python -m (study table [^>]*) -->\n).*?(\n?<!-- end -->)", flags=re.S)


def filled(mark: re.Match[str]) -> str:
    """The block with what its command prints now."""
    command = [sys.executable, "-m", *shlex.split(mark[2])]
    done = subprocess.run(command, check=True, cwd=ROOT, capture_output=True, encoding="utf-8")
    return f"{mark[1]}\n{done.stdout}\n<!-- end -->"


for name in DOCUMENTS:
    document = ROOT / name
    text = document.read_text(encoding="utf-8")
    document.write_text(MARKS.sub(filled, text), encoding="utf-8")
