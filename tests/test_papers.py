"""What the README says is run, and the documents name what exists."""

import re
import statistics
from pathlib import Path

import pytest

import memohop
from memohop.bench.results import Results, choose
from memohop.networks.registry import entry

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")
MODELS_PAGE = (ROOT / "docs" / "models.md").read_text(encoding="utf-8")
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


def test_the_page_of_models_tells_of_every_model_and_of_no_other():
    headings = re.findall(r"^###.*$", MODELS_PAGE, flags=re.MULTILINE)
    told = [name for heading in headings for name in re.findall(r"`([^`]+)`", heading)]
    assert sorted(told) == sorted(memohop.models())


def test_the_page_of_rows_has_the_figures_of_the_results():
    page = (ROOT / "docs" / "rows.md").read_text(encoding="utf-8")
    results = Results.load("table1")
    rows = re.findall(r"^\| `([^`]+)` \| (.*) \|$", page, flags=re.MULTILINE)
    datasets = re.search(r"^\| model \| (.*) \|$", page, flags=re.MULTILINE)[1].split(" | ")
    assert len(rows) == 14
    for model, cells in rows:
        for dataset, cell in zip(datasets, cells.split(" | "), strict=True):
            found = [
                row for row in results.rows
                if (row.protocol, row.dataset, row.model) == ("paper", dataset, model)
            ]  # fmt: skip
            test = [100 * row.test for row in choose(found)]
            expected = f"{statistics.mean(test):.2f} ± {statistics.stdev(test):.2f}"
            assert cell.startswith(expected), (model, dataset)


def test_the_page_of_models_says_what_each_makes_of_the_graph():
    told = {}
    for row in re.findall(r"^\| (`.*)$", MODELS_PAGE.split("## Backbones")[0], flags=re.MULTILINE):
        names, *policies = row.split(" | ")
        values = [policy.strip(" |") for policy in policies]
        told |= dict.fromkeys(re.findall(r"`([^`]+)`", names), values)
    for name in memohop.models():
        options = entry(name).options()
        policies = [options.get(key, "-") for key in ("direction", "self_loops", "norm")]
        assert told.pop(name, ["-"] * 3) == policies, name
    assert not told


@pytest.mark.parametrize(
    "page", sorted(path.relative_to(ROOT) for path in [*ROOT.glob("*.md"), *ROOT.glob("docs/*.md")])
)
def test_links_inside_the_project_lead_somewhere(page):
    text = (ROOT / page).read_text(encoding="utf-8")
    for target in re.findall(r"\]\((?!https?:)([^)#]+)\)", text):
        assert (ROOT / page).parent.joinpath(target).exists(), target


def test_every_public_name_resolves_and_has_a_docstring():
    for name in memohop.__all__:
        value = getattr(memohop, name)
        assert name == "__version__" or value.__doc__
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        memohop.nothing  # noqa: B018
