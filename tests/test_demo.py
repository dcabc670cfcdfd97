"""A small version of the demo."""

import json
import re
import xml.etree.ElementTree as ET
from dataclasses import replace

import pytest

from memohop import cli
from memohop import demo as demo_module
from memohop.demo import DemoSettings, run_demo
from memohop.report.demo import curve_svg, demo_page

SMALL = DemoSettings(
    homophilies=(0.05, 0.2, 0.95), splits=2, epochs=4, hidden_channels=8, lambdas=(0.0, 0.1)
)


@pytest.fixture(scope="module")
def result():
    return run_demo(SMALL, processes=1)


def test_there_is_a_cell_for_each_graph_and_model_in_order(result):
    expected = [(h, model) for h in SMALL.homophilies for model in SMALL.models]
    assert [(cell.homophily, cell.model) for cell in result.cells] == expected
    for cell in result.cells:
        assert 0 <= cell.mean <= 100
        assert cell.lam in SMALL.lambdas_of(cell.model)
        assert (cell.gates is not None) == (cell.model == "gcn+mmp")
        gates = cell.gates and (cell.gates.kept, cell.gates.absorbed, cell.gates.passed_on)
        assert all(0 < value < 1 for value in gates or ())


def test_several_processes_find_the_same_and_tell_how_far_they_are(result):
    few, told = replace(SMALL, homophilies=(0.05,), models=("mlp", "gcn")), []
    for cell in run_demo(few, processes=2, progress=lambda *done: told.append(done)).cells:
        alone = result.cell(cell.homophily, cell.model)
        assert cell.mean == pytest.approx(alone.mean, abs=0.6)  # one node: rounding may decide it
    assert told == [(1, 2), (2, 2)]


def test_the_page_is_well_formed_and_has_every_number_and_loads_nothing(result):
    page = demo_page(result)
    assert "<title>gcn, homophily 0.2:" in page
    without = page.replace("http://www.w3.org/2000/svg", "")  # a name, not an address
    assert not re.search(r"https?:|//|url\(|@import|<script|<link|<img|src=|href=", without)
    root = ET.fromstring(page.removeprefix("<!DOCTYPE html>\n"))
    text = " ".join("".join(root.itertext()).split())
    for cell in result.cells:
        assert f"{cell.mean:.1f} ± {cell.std:.1f}" in text
    rows = [[*row] for row in root.iter("tr")][1:]
    assert [row[0].text for row in rows] == [f"{h:g}" for h in SMALL.homophilies]
    for name, version in result.versions.items():
        assert f"{name} {version}" in text
    assert "4 epochs" in text


def test_the_curve_is_a_file_of_its_own(result):
    root = ET.fromstring(curve_svg(result))
    assert root.tag == "{http://www.w3.org/2000/svg}svg"
    assert "var(" not in curve_svg(result)


def test_the_command_on_the_page_gives_the_cell(result, capsys):
    cell = result.cell(0.05, "gcn+mmp")
    command = SMALL.command(0.05, "gcn+mmp").split()
    assert command[0] == "memohop"
    assert cli.main([*command[1:], "--json"]) == 0
    (row,) = json.loads(capsys.readouterr().out)
    assert (row["lam"], row["splits"]) == (cell.lam, 2)
    assert row["mean"] == pytest.approx(cell.mean, abs=1e-3)
    assert row["std"] == pytest.approx(cell.std, abs=1e-3)


class TestCommand:
    @pytest.fixture(autouse=True)
    def small(self, result, monkeypatch, tmp_path):
        """The command has no option for a smaller demo, so the demo itself is replaced."""
        monkeypatch.chdir(tmp_path)
        monkeypatch.setattr(demo_module, "run_demo", lambda **_: result)

    def test_it_prints_the_table_and_writes_the_page(self, result, tmp_path, capsys):
        assert cli.main(["demo"]) == 0
        out, err = capsys.readouterr()
        for cell in result.cells:
            assert f"{cell.mean:.1f} ± {cell.std:.1f}" in out
        assert "memohop-demo.html" in err
        assert (tmp_path / "memohop-demo.html").read_text("utf-8") == demo_page(result)

    def test_it_writes_the_curve_alone_and_prints_json(self, result, tmp_path, capsys):
        assert cli.main(["demo", "--output", "curve.svg", "--json"]) == 0
        assert (tmp_path / "curve.svg").read_text("utf-8") == curve_svg(result)
        rows = json.loads(capsys.readouterr().out)
        assert rows == result.rows()
        for row in rows:
            assert not any(isinstance(value, (dict, list)) for value in row.values())
            assert {"dataset", "model", "homophily", "mean", "std", "splits"} <= set(row)

    @pytest.mark.parametrize("output", ["page.pdf", "no/such/folder/page.html"])
    def test_a_bad_output_is_found_before_the_training(self, output, capsys):
        assert cli.main(["demo", "--output", output]) == 2
        assert output in capsys.readouterr().err
