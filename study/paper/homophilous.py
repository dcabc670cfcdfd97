"""The paper's second claim: on homophilous graphs memory is comparable to what it is compared with.

Comparable is what is shown to be less than a point behind, by the lower one of two one-sided tests;
to be ahead by more is no objection. Each model is compared with its own backbone, plain and with
the other two plug-ins, and Holm's correction is for these three comparisons: a correction for more
of them would make it easier not to be significantly behind.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from itertools import product
from statistics import fmean
from typing import Literal

from study.paper.table1 import Table1
from study.statistics.comparison import ALPHA, corrected_p, non_inferiority_test

GRAPHS = ("citeseer", "pubmed", "cora")
BACKBONES = ("gcn", "gat")
OTHERS = ("", "+jk", "+de")
"""What a backbone has in place of memory."""

MARGIN = 1.0
"""In points."""

Verdict = Literal["comparable", "behind", "open"]


@dataclass(frozen=True)
class Lead:
    """How far memory is ahead of something else on the same backbone and graph.

    Attributes:
        points: The mean over the splits.
        p: The p-value of the corrected t-test, to both sides.
        p_comparable: That of being behind by ``MARGIN`` or more.
    """

    points: float
    p: float
    p_comparable: float

    @property
    def verdict(self) -> Verdict:
        """Whether memory is shown to be comparable, or behind, or neither."""
        if self.p_comparable < ALPHA:
            return "comparable"
        return "behind" if self.p < ALPHA and self.points < 0 else "open"


def leads(table: Table1) -> dict[tuple[str, str, str], Lead]:
    """Those of all comparisons that were measured, by graph, backbone and the other plug-in."""
    of_all = {}
    for graph, backbone in product(GRAPHS, BACKBONES):
        scores = table.scores.get(graph, {})
        if not {f"{backbone}{other}" for other in (*OTHERS, "+mmp")} <= scores.keys():
            continue
        own = scores[f"{backbone}+mmp"]
        differences = {
            other: [a - b for a, b in zip(own, scores[backbone + other], strict=True)]
            for other in OTHERS
        }
        p = corrected_p(differences)
        p_comparable = corrected_p(differences, partial(non_inferiority_test, margin=MARGIN))
        for other, of_splits in differences.items():
            lead = Lead(fmean(of_splits), p[other], p_comparable[other])
            of_all[graph, backbone, other] = lead
    return of_all


def comparable_on(of_all: Mapping[tuple[str, str, str], Lead]) -> list[str]:
    """The graphs on which memory is comparable to everything on every backbone."""
    return [
        graph
        for graph in GRAPHS
        if len(own := [lead for key, lead in of_all.items() if key[0] == graph])
        == len(BACKBONES) * len(OTHERS)
        and all(lead.verdict == "comparable" for lead in own)
    ]
