"""The noise and lambda figures."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from itertools import product

import pytest

from made_up_results import results_of, row
from study.pages.figures import figure_svg, lambda_panels, noise_panels
from study.paper.curves import curves
from study.runs.results import Results, measured

SVG = "{http://www.w3.org/2000/svg}"


def titles(root):
    return [title.text for title in root.iter(f"{SVG}title")]


def test_noise_has_a_panel_for_each_dataset_and_protocol(findings):
    panels = noise_panels(findings.noise)
    assert [panel.title for panel in panels] == [
        "cora (paper)",
        "citeseer (paper)",
        "cora (official)",
        "citeseer (official)",
    ]
    for panel in panels:
        names = [line.label for line in panel.lines]
        assert names[:7] == ["mlp", "gcn", "gat", "gcn+jk", "gcn+de", "gcn+mmp", "gat+mmp"]
        assert names[7:] == ["gcn+mmp, λ 0", "gat+mmp, λ 0"]
        assert [line.dashed for line in panel.lines] == [False] * 7 + [True] * 2


def test_a_protocol_that_is_alone_is_not_named(findings):
    paper = tuple(row for row in findings.noise.rows if row.protocol == "paper")
    panels = noise_panels(Results("noise", findings.noise.sources, paper))
    assert [panel.title for panel in panels] == ["cora", "citeseer"]


def test_without_the_regulariser_means_the_rows_of_lambda_0(findings):
    panel = noise_panels(findings.noise)[0]
    lines = {line.label: line.curve for line in panel.lines}
    chosen, without = lines["gcn+mmp"].points[3], lines["gcn+mmp, λ 0"].points[3]
    rows = [
        100 * row.test
        for row in findings.noise.rows
        if (row.protocol, row.dataset, row.model) == ("paper", "cora", "gcn+mmp")
        and (row.axes["noise"], row.setting["lam"]) == (75, 0)
    ]
    assert len(rows) == 30
    assert sorted(without.scores.values()) == pytest.approx(sorted(rows))
    assert not set(chosen.scores.values()) & set(rows)  # validation was made up to choose 0.4


def test_lambda_has_a_panel_for_each_dataset_and_a_line_for_each_model_and_protocol(findings):
    panels = lambda_panels(findings.lambda_)
    assert len(panels) == 6
    for panel in panels:
        names = {line.label: line.dashed for line in panel.lines}
        assert names == {
            "gcn+mmp, paper": False,
            "gat+mmp, paper": False,
            "gcn+mmp, official": True,
            "gat+mmp, official": True,
        }


def test_every_point_tells_its_numbers(findings):
    shown = titles(ET.fromstring(figure_svg("lambda", findings.lambda_)))
    assert len(shown) == 6 * 4 * 7
    for curve in curves(measured(findings.lambda_), "lam")[:4]:
        for point in curve.points:
            text = f", λ {point.x:g}: {point.mean:.2f} ± {point.std:.2f} % (n = 10)"
            assert any(title.endswith(text) for title in shown)


def test_a_figure_is_a_file_of_its_own(findings):
    root = ET.fromstring(figure_svg("noise", findings.noise))
    inner = root.findall(f"{SVG}svg")
    assert len(inner) == 4
    assert {(svg.get("x"), svg.get("y")) for svg in inner} == {
        ("0", "0"), ("480", "0"), ("0", "400"), ("480", "400"),
    }  # fmt: skip
    assert root.get("viewBox") == "0 0 960 800"
    assert root.get("color") == "#797979"


def test_points_and_bands_stay_on_their_axis(findings):
    """The axis has room for every mean with its deviation, so that nothing is cut off."""
    for name in ("noise", "lambda"):
        results = getattr(findings, name if name == "noise" else "lambda_")
        root = ET.fromstring(figure_svg(name, results))
        for svg in root.findall(f"{SVG}svg"):
            width, height = (int(n) for n in svg.get("viewBox").split()[2:])
            for group in svg.iter(f"{SVG}g"):
                if group.get("class") == "point":
                    x, y = group.get("transform")[10:-1].split()
                    assert 40 <= float(x) <= width
                    assert 48 <= float(y) <= height - 46


def test_words_of_the_experiment_make_panels_and_numbers_make_lines():
    rows = tuple(
        row(0.5, dataset="cora", model="mlp", axes=dict(zip(names, values, strict=True)))
        for names in [("noise", "noise_policy", "num_layers")]
        for values in product((0, 100), ("directed", "undirected"), (2, 4))
    )
    panels = noise_panels(results_of(*rows))
    assert [panel.title for panel in panels] == ["cora, directed", "cora, undirected"]
    names = [[line.label for line in panel.lines] for panel in panels]
    assert names == [["mlp, num_layers 2", "mlp, num_layers 4"]] * 2
