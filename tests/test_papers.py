"""The code in the documents runs, and the documents match the code and the results."""

import re
import statistics
from collections import Counter
from pathlib import Path

import pytest

import memohop
from memohop.networks.registry import entry
from study import RESULTS
from study.paper.curves import curves
from study.paper.gates import Gates
from study.paper.table1 import difference, printed_table1, tables_of
from study.runs.results import Results, measured
from study.statistics.comparison import ALPHA

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")
MODELS_PAGE = (ROOT / "docs" / "plug-in" / "models.md").read_text(encoding="utf-8")
PAGES = [
    "README.md",
    "docs/plug-in/index.md",
    "docs/how-it-works/population.md",
    "docs/how-it-works/masks.md",
]
BLOCKS = [
    (page, block)
    for page in PAGES
    for block in re.findall(
        r"^```python\n(.*?)^```$",
        (ROOT / page).read_text(encoding="utf-8"),
        flags=re.MULTILINE | re.DOTALL,
    )
]


@pytest.mark.parametrize(("page", "block"), BLOCKS, ids=range(len(BLOCKS)))
def test_the_code_of_a_page_runs(page, block, capsys):
    exec(compile(block, page, "exec"), {})
    if "print(" in block:
        assert re.fullmatch(r"lambda 0\.\d: \d\d\.\d \+- \d+\.\d\n", capsys.readouterr().out)


def test_the_code_of_every_page_is_known():
    assert {page for page, _ in BLOCKS} == set(PAGES)


def test_the_readme_fits_on_two_screens_and_begins_with_its_installation():
    lines = README.splitlines()
    assert lines[2:6] == ["```", "pip install memohop", "memohop demo", "```"]
    shown = [line for line in lines if line.strip() and not line.startswith("<!--")]
    assert len(shown) <= 90


def test_the_start_names_every_dataset_and_model():
    page = (ROOT / "docs" / "start.md").read_text(encoding="utf-8")
    table = page[page.index("## What is here") :]
    for name in memohop.datasets():
        assert re.search(rf"[` ]{name}[` ]", table), name
    for name in {part for model in memohop.models() for part in re.split(r"(?=\+)", model)}:
        assert name in table


def test_the_page_of_models_tells_of_every_model_and_of_no_other():
    headings = re.findall(r"^###.*$", MODELS_PAGE, flags=re.MULTILINE)
    told = [name for heading in headings for name in re.findall(r"`([^`]+)`", heading)]
    assert sorted(told) == sorted(memohop.models())


@pytest.fixture(scope="module")
def tables():
    return {table.protocol: table for table in tables_of(measured(Results.load("table1")))}


def test_the_page_of_rows_has_the_figures_of_the_results(tables):
    page = (ROOT / "docs" / "benchmarks" / "rows.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| `([^`]+)` \| (.*) \|$", page, flags=re.MULTILINE)
    datasets = re.search(r"^\| model \| (.*) \|$", page, flags=re.MULTILINE)[1].split(" | ")
    assert (len(rows), len(datasets)) == (14 + 4, 9)
    for line, (model, cells) in enumerate(rows):
        table = tables["paper" if line < 14 else "official"]
        for dataset, text in zip(datasets, cells.split(" | "), strict=True):
            scores, printed = table.measured[model, dataset], printed_table1()[model, dataset]
            spread = f" ± {printed.std:.2f}" if printed.std else ""
            expected = (
                f"{scores.mean:.2f} ± {scores.std:.2f}<br>printed {printed.mean:.2f}{spread}<br>"
            )
            assert text.startswith(expected), (model, dataset)
            points, stds = difference(scores)
            far = abs(stds if printed.std else points) > 1
            assert text.endswith("†") == far, (model, dataset)


def test_the_errata_have_the_figures_of_the_results(tables):
    page = (ROOT / "ERRATA.md").read_text(encoding="utf-8")
    section = page[page.index("## Weight decay beside a summed loss") :]
    datasets = re.search(r"^\| \| (.*) \|$", section, flags=re.MULTILINE)[1].split(" | ")
    told = re.search(r"^\| `paper` \| (.*) \|$", section, flags=re.MULTILINE)[1].split(" | ")
    cells = [tables["paper"].measured["gcn+mmp", dataset] for dataset in datasets]
    assert told == [f"{cell.mean:.2f}" for cell in cells]


def test_the_findings_have_the_differences_of_the_results(tables):
    page = (ROOT / "docs" / "benchmarks" / "findings.md").read_text(encoding="utf-8")
    parts = re.findall(r"^\| `(paper|official)` \| .*\n\|[-|]+\n((?:\| .*\n)+)", page, re.MULTILINE)
    assert [len(lines.splitlines()) for _, lines in parts] == [6, 6]
    for protocol, lines in parts:
        for line in lines.splitlines():
            dataset, *told = line.strip("| ").split(" | ")
            expected = []
            for backbone in ("gcn", "gat"):
                leads = tables[protocol].leads(f"{backbone}+mmp", dataset)
                for other in ("", "+jk", "+de"):
                    points, p = leads[backbone + other]
                    expected.append(f"**{points:+.1f}**" if p < ALPHA else f"{points:+.1f}")
            assert told == expected, (protocol, dataset)


def test_the_benchmarks_page_counts_the_claims_as_the_findings_judge_them():
    folder = ROOT / "docs" / "benchmarks"
    findings = (folder / "findings.md").read_text(encoding="utf-8")
    sections = re.split(r"^## (?=\d\. )", findings, flags=re.MULTILINE)[1:6]
    verdict = (
        r"^\*\*(Holds in part|Holds under `paper`; under `official` in part|Does not hold|Holds)\b"
    )
    judged = Counter(re.search(verdict, text, flags=re.MULTILINE)[1] for text in sections)
    in_part, by_protocol, not_at_all = (
        ("no", "one", "two", "three", "four", "five")[number]
        for number in (
            judged.pop("Holds in part", 0),
            judged.pop("Holds under `paper`; under `official` in part", 0),
            judged.pop("Does not hold", 0),
        )
    )
    assert not judged
    summary = " ".join((folder / "index.md").read_text(encoding="utf-8").split())
    assert (
        f"Of the paper's five claims {in_part} hold in part, {by_protocol} holds under `paper` and "
        f"in part under `official`, and {not_at_all}, the best average rank, does not hold"
    ) in summary


def test_the_findings_have_the_noise_of_the_results():
    page = (ROOT / "docs" / "benchmarks" / "findings.md").read_text(encoding="utf-8")
    found = {(cell.protocol, cell.dataset, cell.model, cell.axes["noise"], cell.axes["draw"]):
             cell.mean for cell in measured(Results.load("noise"))}  # fmt: skip
    head = re.search(r"^\| \| added \| (.*) \|$", page, flags=re.MULTILINE)[1]
    models = re.findall(r"`([^`]+)`", head)
    lines = re.findall(r"^\| (\w+), `(\w+)` \| (\d+) % \| (.*) \|$", page, flags=re.MULTILINE)
    assert (len(models), len(lines)) == (6, 16)
    for dataset, protocol, level, cells in lines:
        for model, text in zip(models, cells.split(" | "), strict=True):
            draws = [found[protocol, dataset, model, int(level), draw] for draw in range(3)]
            spread = "" if model == "mlp" else f" ± {statistics.stdev(draws):.1f}"
            assert text == f"{statistics.mean(draws):.1f}{spread}", (dataset, protocol, level)


def test_the_findings_have_the_lambdas_of_the_results():
    page = (ROOT / "docs" / "benchmarks" / "findings.md").read_text(encoding="utf-8")
    lines = re.findall(r"^\| (\S+), `(\w+)` \| (\d\d\.\d) \| (.*) \|$", page, flags=re.MULTILINE)
    told = {(dataset, protocol): (first, *rest.split(" | "))
            for dataset, protocol, first, rest in lines}  # fmt: skip
    found = curves(measured(Results.load("lambda")), "lam")
    assert len(told) == len(found) == 12
    for curve in found:
        changes = (
            f"**{points:+.1f}**" if p < ALPHA else f"{points:+.1f}"
            for points, p in curve.against(curve.points[0].x).values()
        )
        expected = (f"{curve.points[0].mean:.1f}", *changes)
        assert told[curve.dataset, curve.protocol] == expected


def test_the_findings_have_the_ranks_of_the_results(tables):
    page = (ROOT / "docs" / "benchmarks" / "findings.md").read_text(encoding="utf-8")
    told = re.search(r"Measured, `gcn\+mmp` has rank ([^.]*\d\.\d\d.*?\))\.\s", page, re.DOTALL)[1]
    for protocol, part in zip(("paper", "official"), told.split(", and "), strict=True):
        own, of = re.search(r"(\d\.\d\d) under\s`(\w+)`", part).groups()
        ranks = tables[protocol].ranks
        assert (of, own) == (protocol, f"{ranks['gcn+mmp']:.2f}")
        ahead = {name: f"{rank:.2f}" for name, rank in ranks.items() if rank < ranks["gcn+mmp"]}
        assert dict(re.findall(r"`([^`]+)`\s\((\d\.\d\d)\)", part)) == ahead


def test_the_findings_have_the_gates_of_the_results():
    page = (ROOT / "docs" / "benchmarks" / "findings.md").read_text(encoding="utf-8")
    section = page[page.index("## What the gates do") :]
    rows = re.findall(r"^\| ([a-z-]+) \| (.*) \|$", section, flags=re.MULTILINE)
    found = Gates.load(RESULTS / "gates.json")
    assert [name for name, _ in rows] == [curve.dataset for curve in found.curves]
    assert len(rows) == 9
    for curve, (name, cells) in zip(found.curves, rows, strict=True):
        ends = curve.bins[0], curve.bins[-1]
        assert [(each.low, each.high) for each in ends] == [(0, 0.2), (0.8, 1)], name
        gates = ("kept", "absorbed", "passed_on")
        pairs = [(getattr(each, gate), getattr(each, f"{gate}_std"))
                 for gate in gates for each in ends]  # fmt: skip
        assert cells.split(" | ") == [f"{mean:.2f} ± {spread:.2f}" for mean, spread in pairs]


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


def test_every_public_name_resolves_and_has_a_docstring():
    for name in memohop.__all__:
        value = getattr(memohop, name)
        assert name == "__version__" or value.__doc__
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        memohop.nothing  # noqa: B018


def _place(file):
    """Files of the study are named from the root, others from the package."""
    return ROOT / file if file.startswith("study/") else ROOT / "src" / "memohop" / file


def test_the_walks_of_the_contributors_lead_through_files_that_exist():
    page = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    walks = page[page.index("## Three walks") : page.index("## A new model")]
    paths = [re.findall(r"`((?:\w+/)+\w+\.(?:py|toml))`", walk) for walk in walks.split("\n**")[1:]]
    assert len(paths) == 3
    for stops in paths:
        assert 10 < len(set(stops)) <= 15
        for stop in stops:
            assert _place(stop).is_file(), stop


def test_the_map_of_the_contributors_names_what_is_there():
    page = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| [^|]+\? \| `([^`]+)` \| `([^`]+)` \|$", page, flags=re.MULTILINE)
    assert len(rows) >= 5
    for file, name in rows:
        text = _place(file).read_text(encoding="utf-8")
        assert re.search(rf"^(def |class )?{name}\b", text, flags=re.MULTILINE), (file, name)
