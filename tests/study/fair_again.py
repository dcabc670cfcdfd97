"""The fair table's figures computed again, without the library's statistics."""

import html
import re
from collections import defaultdict
from statistics import mean

import numpy as np
from scipy import stats

BACKBONES = ("gcn", "gat", "sage", "gin", "gatv2", "dir-gcn", "gcnii")
MEMORY = ("+mmp", "+mmp labels=memory", "+mmp address=rows")
PAIRS = [(backbone, plug_in) for backbone in BACKBONES for plug_in in ("+jk", "+de", *MEMORY)]
PAIRS += [
    (f"{b}+mmp", plug_in) for b in BACKBONES for plug_in in (" labels=memory", " address=rows")
]
FLAWED = ("cornell-legacy", "squirrel", "chameleon")
HALVES = ("minesweeper", "tolokers")  # 50 % of the nodes train, 25 % test
MINUS = "\N{MINUS SIGN}"
DRAWN = 0.006 + 5 * 0.5 * (2 / 20_000) ** 0.5
"""Two draws of twenty thousand each: five standard errors of their difference, and rounding."""
NUMBER = rf"([+{MINUS}-]?[\d,]+(?:\.\d+)?)"


def honest(cells):
    return {key: cell for key, cell in cells.items() if cell["dataset"] not in FLAWED}


def error(differences, dataset):
    ratio = 1 / 2 if dataset in HALVES else 20 / 48
    return ((1 / len(differences) + ratio) * np.var(differences, ddof=1)) ** 0.5


def t_test(differences, dataset):
    t = abs(mean(differences)) / error(differences, dataset)
    return 2 * stats.t.sf(t, len(differences) - 1)


def holm(p):
    """Step by step."""
    adjusted, worst = {}, 0.0
    for place, (key, value) in enumerate(sorted(p.items(), key=lambda item: item[1])):
        worst = max(worst, min(1.0, (len(p) - place) * value))
        adjusted[key] = worst
    return adjusted


def table_of(page, name):
    """The texts of a table's head and rows, without tags, and the rows as HTML."""
    body = re.search(rf'<table [^>]*id="{name}">(.*?)</table>', page, flags=re.S)[1]
    head, *rows = re.findall(r"<tr[^>]*>(.*?)</tr>", body, flags=re.S)
    split = [re.findall(r"<t[hd][^>]*>(.*?)</t[hd]>", row, flags=re.S) for row in (head, *rows)]
    return [text(cell) for cell in split[0]], split[1:]


def text(cell):
    without = re.sub(r"<(small|span)>.*?</\1>", " ", cell, flags=re.S)
    return html.unescape(re.sub(r"<[^>]+>", "", without)).strip()


def number(shown):
    return float(shown.replace(MINUS, "-").replace(",", ""))


def plain(row):
    return text(row[0]).removesuffix(" †")


def posterior(points, draws=20_000):
    """The Bayesian signed-rank test, with weights made from exponential ones."""
    z = np.array([0.0, *points])
    w = np.random.default_rng(5).exponential(size=(draws, len(z)))
    w /= w.sum(axis=1, keepdims=True)
    means = (z[:, None] + z) / 2
    theta = [np.einsum("di,ij,dj->d", w, part.astype(float), w)
             for part in (means > 1, abs(means) <= 1, means < -1)]  # fmt: skip
    return np.bincount(np.argmax(theta, axis=0), minlength=3) / draws


def points_of(gains, backbone, plug_in):
    own = {key: mean(d) for key, (_, d) in gains.items() if key[1] == plug_in}
    if not backbone.startswith("all seven"):
        return [gain for key, gain in own.items() if key[0] == backbone]
    by_column = defaultdict(list)
    for (_, _, column), gain in own.items():
        by_column[column].append(gain)
    return [mean(gained) for gained in by_column.values() if len(gained) == len(BACKBONES)]
