"""What memory adds on the fair table, beside residuals and beside published figures too."""

import html
import re
from collections import defaultdict
from statistics import mean

import numpy as np
import pytest
from scipy import stats

from fair_again import (
    BACKBONES,
    DRAWN,
    MEMORY,
    NUMBER,
    error,
    honest,
    number,
    points_of,
    posterior,
    table_of,
    text,
)
from memohop.data.datasets.registry import describe
from study.statistics.leaderboard import PUBLISHED


def test_wins_ties_losses_and_probabilities(fair_page, gains, verdicts):
    head, rows = table_of(fair_page, "fair-effects")
    assert rows
    for row in rows:
        shown = dict(zip(head, map(text, row), strict=True))
        backbone, plug_in = shown["model"], shown["plug-in"].removesuffix(" †")
        plug_in = plug_in if plug_in.startswith("+") else f" {plug_in}"
        points = points_of(gains, backbone, plug_in)
        assert number(shown["mean gain"]) == pytest.approx(mean(points), abs=0.0051)
        wanted = posterior(points)
        probabilities = [number(shown[name]) for name in ("p better", "p same", "p worse")]
        np.testing.assert_allclose(probabilities, wanted, atol=DRAWN)
        if backbone.startswith("all seven"):
            continue
        own = [v for (b, p, _), v in verdicts.items() if (b, p) == (backbone, plug_in)]
        counts = [number(shown[name]) for name in ("wins", "ties", "losses")]
        assert counts == [own.count(1), own.count(0), own.count(-1)]


def test_the_answers(fair_page, gains, verdicts):
    for plug_in in MEMORY:
        points = points_of(gains, "all seven", plug_in)
        match = re.search(
            rf"<li>{re.escape(plug_in)}: {NUMBER} points on average over (\d+) datasets and (\d+) "
            r"backbones\. Of (\d+) cases it is significantly better than its backbone in (\d+), "
            r"worse in (\d+), and neither in (\d+)\. The probability that it makes the mean of the "
            rf"7 backbones better by more than 1 point is {NUMBER}, .*? That it makes a single one "
            r"better by as much: ([^<]*)\.</li>",
            html.unescape(fair_page),
        )
        if not points:
            assert match is None
            continue
        own = [v for (_, p, _), v in verdicts.items() if p == plug_in]
        assert number(match[1]) == pytest.approx(mean(points), abs=0.0051)
        counts = [int(match[place]) for place in range(2, 8)]
        assert counts == [len(points), 7, len(own), own.count(1), own.count(-1), own.count(0)]
        assert number(match[8]) == pytest.approx(posterior(points)[0], abs=DRAWN)
        alone = dict(pair.split() for pair in match[9].split(", "))
        assert [*alone] == [*BACKBONES]
        for backbone, p in alone.items():
            wanted = posterior(points_of(gains, backbone, plug_in))[0]
            assert number(p) == pytest.approx(wanted, abs=DRAWN), backbone


def test_memory_on_real_graphs_that_are_not_web_graphs(fair_page, cells, gains):
    own, dataset_of, homophily = honest(cells), {}, {}
    for (_, column), cell in own.items():
        dataset_of[column] = cell["dataset"]
        known = describe(cell["dataset"]).homophily
        homophily[column] = cell["axes"].get("homophily", known)
    for plug_in in MEMORY:
        by_column = defaultdict(list)
        for (_, p, column), (_, d) in gains.items():
            if p == plug_in:
                by_column[column].append(mean(d))
        means = {c: mean(gained) for c, gained in by_column.items()
                 if len(gained) == len(BACKBONES)}  # fmt: skip
        few = {c: gain for c, gain in means.items()
               if dataset_of[c] not in ("texas", "wisconsin", "cornell", "csbm")}  # fmt: skip
        match = re.search(
            rf"<li>{re.escape(plug_in)} on the (\d+) real graphs that are not web graphs: {NUMBER} "
            rf"points on average\. .*? better by more than 1 point is {NUMBER}\. Rank correlation "
            rf"of gain and homophily there: {NUMBER} \(p (\S+)\); over all (\d+) datasets: "
            rf"{NUMBER} \(p (\S+)\)\.</li>",
            html.unescape(fair_page),
        )
        if not few:
            assert match is None
            continue
        assert (int(match[1]), int(match[6])) == (len(few), len(means))
        assert number(match[2]) == pytest.approx(mean(few.values()), abs=0.0051)
        assert number(match[3]) == pytest.approx(posterior([*few.values()])[0], abs=DRAWN)
        for rho, p, group in ((match[4], match[5], few), (match[7], match[8], means)):
            samples = [homophily[c] for c in group], [*group.values()]
            wanted = float(np.corrcoef(*map(stats.rankdata, samples))[0, 1])
            assert number(rho) == pytest.approx(wanted, abs=0.0051)
            t = wanted * ((len(group) - 2) / max(1 - wanted**2, 1e-300)) ** 0.5
            exact = 2 * stats.t.sf(abs(t), len(group) - 2)
            assert float(p) == pytest.approx(exact, rel=0.051, abs=1e-9)


def test_memory_beside_residuals(fair_page, cells):
    own = honest(cells)
    for backbone in BACKBONES:
        points = [
            mean(np.subtract(cell["scores"], own[f"{backbone}-res", column]["scores"]))
            for (row, column), cell in own.items()
            if row == f"{backbone}+mmp" and (f"{backbone}-res", column) in own
        ]
        match = re.search(
            rf"<li>{backbone}\+mmp less {backbone}-res: {NUMBER} points on average over (\d+) "
            rf"datasets\. .*? by more than 1 point is {NUMBER}, .*? by as much {NUMBER}\.</li>",
            html.unescape(fair_page),
        )
        if not points:
            assert match is None
            continue
        assert int(match[2]) == len(points)
        assert number(match[1]) == pytest.approx(mean(points), abs=0.0051)
        better, _, worse = posterior(points)
        assert number(match[3]) == pytest.approx(better, abs=DRAWN)
        assert number(match[4]) == pytest.approx(worse, abs=DRAWN)


def test_does_memory_help(fair_page, gains):
    """The points of the figure, and their intervals, by what they say when one points at them."""
    matches = re.findall(
        rf"<title>(\S+)\+mmp on ([^:]+): {NUMBER} points, from {NUMBER} to {NUMBER}</title>",
        fair_page,
    )
    wanted = {key: gain for key, gain in gains.items() if key[1] == "+mmp"}
    assert len(matches) == 2 * len(wanted)  # for wide screens and for narrow ones
    for backbone, column, *shown in matches:
        dataset, differences = wanted[backbone, "+mmp", column]
        reach = stats.t.ppf(0.975, len(differences) - 1) * error(differences, dataset)
        middle = mean(differences)
        ends = [max(middle - reach, -100), min(middle + reach, 100)]
        np.testing.assert_allclose([*map(number, shown)], [middle, *ends], atol=0.0051)


def test_beside_the_best_published_figures(fair_page, cells):
    own, near, leads = honest(cells), {}, defaultdict(list)
    sides = {
        "plain memory": lambda row: row.endswith("+mmp"),
        "with memory": lambda row: "+mmp" in row,
        "without": lambda row: "+mmp" not in row,
    }
    head, rows = table_of(fair_page, "fair-published")
    chosen = []
    for row in rows:
        shown, column, scores = dict(zip(head, row, strict=True)), text(row[0]), {}
        for name, belongs in sides.items():
            of_side = {r: c for (r, other), c in own.items() if other == column and belongs(r)}
            best = max(of_side, key=lambda model: round(100 * np.mean(of_side[model]["val"]), 4))
            mark = " †" if of_side[best]["axes"].get("labels") else ""
            assert f"<small>{best}{mark}</small>" in html.unescape(shown[name])
            scores[name] = mean(of_side[best]["scores"])
            assert number(text(shown[name])) == pytest.approx(scores[name], abs=0.0051)
            chosen += [best] * (name == "with memory")
        for name in ("plain memory", "with memory"):
            leads[name].append(scores[name] - scores["without"])
        if published := PUBLISHED.get(column):
            assert number(text(shown["published"])) == pytest.approx(published.points, abs=0.051)
            assert f"<small>{published.method}</small>" in shown["published"]
            assert f"{published.method}: {published.source}" in html.unescape(fair_page)
            away = number(text(shown["with memory less published"]))
            assert away == pytest.approx(scores["with memory"] - published.points, abs=0.0051)
            near[column] = scores["with memory"] - published.points >= -1
    told = re.search(
        r"at most 1 point below it on (\d+) of (\d+) datasets(?:: ([^.<]+))?\.", fair_page
    )
    met = [column for column, is_near in near.items() if is_near]
    assert [int(told[1]), int(told[2]), told[3]] == [len(met), len(near), ", ".join(met) or None]
    counts = re.search(
        r"of (\d+) with memory and (\d+) without\. Of the former, (\d+) are plain; .*? as do (\d+) "
        r"of the (\d+) chosen\. Plain memory is ahead of the best without on (\d+) of (\d+) "
        rf"datasets, and {NUMBER} points on average\. Memory of any kind is ahead of the best "
        rf"without on (\d+) of (\d+) datasets, and {NUMBER} points on average\.",
        fair_page,
    )
    models = {row for row, _ in own}
    assert [int(counts[place]) for place in range(1, 6)] == [
        sum(map(sides["with memory"], models)),
        sum(map(sides["without"], models)),
        sum(map(sides["plain memory"], models)),
        sum(not sides["plain memory"](row) for row in chosen),
        len(chosen),
    ]
    for place, own_leads in ((6, leads["plain memory"]), (9, leads["with memory"])):
        ahead = [int(counts[place]), int(counts[place + 1])]
        assert ahead == [sum(lead > 0 for lead in own_leads), len(own_leads)]
        assert number(counts[place + 2]) == pytest.approx(mean(own_leads), abs=0.0051)


def test_every_published_figure_has_its_source():
    for dataset, published in PUBLISHED.items():
        assert describe(dataset).id == dataset
        assert re.search(r"arXiv \d{4}\.\d{5}", published.source)
        assert 30 < published.points < 100
