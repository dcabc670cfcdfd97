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


def text_of(page):
    return (ROOT / page).read_text(encoding="utf-8")


def table_rows(like, text):
    """The groups of the pattern ``like`` in every row of a table that looks like it."""
    return re.findall(rf"^\| {like} \|$", text, flags=re.MULTILINE)


README = text_of("README.md")
MODELS_PAGE = text_of("docs/plug-in/models.md")
FINDINGS = text_of("docs/benchmarks/findings.md")
PAGES = [
    "README.md",
    "docs/plug-in/index.md",
    "docs/how-it-works/population.md",
    "docs/how-it-works/masks.md",
]
BLOCKS = [
    (page, block)
    for page in PAGES
    for block in re.findall(r"^```python\n(.*?)^```$", text_of(page), re.MULTILINE | re.DOTALL)
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
    table = text_of("docs/start.md").partition("## What is here")[2]
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
    page = text_of("docs/benchmarks/rows.md")
    rows = table_rows(r"`([^`]+)` \| (.*)", page)
    datasets = table_rows(r"model \| (.*)", page)[0].split(" | ")
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
    section = text_of("ERRATA.md").partition("## Weight decay beside a summed loss")[2]
    datasets = table_rows(r"\| (.*)", section)[0].split(" | ")
    told = table_rows(r"`paper` \| (.*)", section)[0].split(" | ")
    cells = [tables["paper"].measured["gcn+mmp", dataset] for dataset in datasets]
    assert told == [f"{cell.mean:.2f}" for cell in cells]


def change(lead):
    points, p = lead
    return f"**{points:+.1f}**" if p < ALPHA else f"{points:+.1f}"


def test_the_findings_have_the_differences_of_the_results(tables):
    table = r"^\| `(paper|official)` \| .*\n\|[-|]+\n((?:\| .*\n)+)"
    parts = re.findall(table, FINDINGS, re.MULTILINE)
    assert [len(lines.splitlines()) for _, lines in parts] == [6, 6]
    for protocol, lines in parts:
        for line in lines.splitlines():
            dataset, *told = line.strip("| ").split(" | ")
            expected = []
            for backbone in ("gcn", "gat"):
                leads = tables[protocol].leads(f"{backbone}+mmp", dataset)
                expected += [change(leads[backbone + other]) for other in ("", "+jk", "+de")]
            assert told == expected, (protocol, dataset)


def test_the_benchmarks_page_counts_the_claims_as_the_findings_judge_them():
    verdicts = ("Holds in part", "Holds under `paper`; under `official` in part", "Does not hold")
    sections = re.split(r"^## (?=\d\. )", FINDINGS, flags=re.MULTILINE)[1:6]
    verdict = rf"^\*\*({'|'.join(verdicts)}|Holds)\b"
    judged = Counter(re.search(verdict, text, flags=re.MULTILINE)[1] for text in sections)
    assert judged.keys() <= {*verdicts}
    numbers = ("no", "one", "two", "three", "four", "five")
    in_part, by_protocol, not_at_all = (numbers[judged[words]] for words in verdicts)
    summary = " ".join(text_of("docs/benchmarks/index.md").split())
    assert (
        f"Of the paper's five claims {in_part} hold in part, {by_protocol} holds under `paper` and "
        f"in part under `official`, and {not_at_all}, the best average rank, does not hold"
    ) in summary


def test_the_findings_have_the_noise_of_the_results():
    means = {(cell.protocol, cell.dataset, cell.model, cell.axes["noise"], cell.axes["draw"]):
             cell.mean for cell in measured(Results.load("noise"))}  # fmt: skip
    models = re.findall(r"`([^`]+)`", table_rows(r"\| added \| (.*)", FINDINGS)[0])
    lines = table_rows(r"(\w+), `(\w+)` \| (\d+) % \| (.*)", FINDINGS)
    assert (len(models), len(lines)) == (6, 16)
    for dataset, protocol, level, cells in lines:
        for model, text in zip(models, cells.split(" | "), strict=True):
            draws = [means[protocol, dataset, model, int(level), draw] for draw in range(3)]
            spread = "" if model == "mlp" else f" ± {statistics.stdev(draws):.1f}"
            assert text == f"{statistics.mean(draws):.1f}{spread}", (dataset, protocol, level)


def test_the_findings_have_the_lambdas_of_the_results():
    lines = table_rows(r"(\S+), `(\w+)` \| (\d\d\.\d \| .*)", FINDINGS)
    told = {(dataset, protocol): cells.split(" | ") for dataset, protocol, cells in lines}
    measured_curves = curves(measured(Results.load("lambda")), "lam")
    assert len(told) == len(measured_curves) == 12
    for curve in measured_curves:
        changes = [change(lead) for lead in curve.against(curve.points[0].x).values()]
        assert told[curve.dataset, curve.protocol] == [f"{curve.points[0].mean:.1f}", *changes]


def test_the_findings_have_the_ranks_of_the_results(tables):
    sentence = r"Measured, `gcn\+mmp` has rank ([^.]*\d\.\d\d.*?\))\.\s"
    told = re.search(sentence, FINDINGS, re.DOTALL)[1]
    for protocol, part in zip(("paper", "official"), told.split(", and "), strict=True):
        own, of = re.search(r"(\d\.\d\d) under\s`(\w+)`", part).groups()
        ranks = tables[protocol].ranks
        assert (of, own) == (protocol, f"{ranks['gcn+mmp']:.2f}")
        ahead = {name: f"{rank:.2f}" for name, rank in ranks.items() if rank < ranks["gcn+mmp"]}
        assert dict(re.findall(r"`([^`]+)`\s\((\d\.\d\d)\)", part)) == ahead


def test_the_findings_have_the_gates_of_the_results():
    section = FINDINGS.partition("## What the gates do")[2]
    rows = table_rows(r"([a-z-]+) \| (.*)", section)
    readouts = Gates.load(RESULTS / "gates.json")
    assert [name for name, _ in rows] == [curve.dataset for curve in readouts.curves]
    assert len(rows) == 9
    for curve, (name, cells) in zip(readouts.curves, rows, strict=True):
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


def test_a_name_that_is_not_there():
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        memohop.nothing  # noqa: B018


def _place(file):
    """Files of the study are named from the root, others from the package."""
    return ROOT / file if file.startswith("study/") else ROOT / "src" / "memohop" / file


def test_the_walks_of_the_contributors_lead_through_files_that_exist():
    page = text_of("CONTRIBUTING.md")
    walks = page[page.index("## Three walks") : page.index("## A new model")]
    paths = [re.findall(r"`((?:\w+/)+\w+\.(?:py|toml))`", walk) for walk in walks.split("\n**")[1:]]
    assert len(paths) == 3
    for stops in paths:
        assert 10 < len(set(stops)) <= 15
        for stop in stops:
            assert _place(stop).is_file(), stop


def test_the_map_of_the_contributors_names_what_is_there():
    rows = table_rows(r"[^|]+\? \| `([^`]+)` \| `([^`]+)`", text_of("CONTRIBUTING.md"))
    assert len(rows) >= 5
    for file, name in rows:
        text = _place(file).read_text(encoding="utf-8")
        assert re.search(rf"^(def |class )?{name}\b", text, flags=re.MULTILINE), (file, name)


def test_the_makefile_names_tests_and_scripts_that_exist():
    named = re.findall(r"\b(?:benchmarks|tests|docs)/[\w/]+(?:\.py)?\b", text_of("Makefile"))
    made = {"docs/html", "docs/gallery", "docs/reference/commands"}
    assert "tests/nn" in named
    assert [name for name in named if name not in made and not (ROOT / name).exists()] == []
