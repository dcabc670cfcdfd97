"""What the README says is run, and the documents name what exists."""

import re
from pathlib import Path

import pytest

import memohop

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```python\n(.*?)^```$", README, flags=re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize("block", BLOCKS, ids=range(len(BLOCKS)))
def test_readme_code_runs(block, capsys):
    exec(compile(block, "README.md", "exec"), {})
    if "print(" in block:
        assert re.fullmatch(r"lambda 0\.\d: \d\d\.\d \+- \d+\.\d\n", capsys.readouterr().out)


def test_readme_names_every_dataset_and_model():
    table = README[README.index("## What is here") :]
    for name in memohop.datasets():
        assert re.search(rf"[` ]{name}[` ]", table), name
    for name in {part for model in memohop.models() for part in re.split(r"(?=\+)", model)}:
        assert name in table


@pytest.mark.parametrize("page", sorted(path.name for path in ROOT.glob("*.md")))
def test_links_inside_the_project_lead_somewhere(page):
    text = (ROOT / page).read_text(encoding="utf-8")
    for target in re.findall(r"\]\((?!https?:)([^)#]+)\)", text):
        assert (ROOT / target).exists(), target


def test_every_public_name_resolves_and_has_a_docstring():
    for name in memohop.__all__:
        value = getattr(memohop, name)
        assert name == "__version__" or value.__doc__
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        memohop.nothing  # noqa: B018
