"""The best figures that others have published on the splits of the fair table, and where.

They are the best that we know, not the best that there are; figures of which the splits could not
be found out are left out. Those of CSNN were read in its paper, the others in lists of the papers'
results or in tables of later papers.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Published:
    """A figure.

    Attributes:
        points: In percent.
        method: What it is of.
        source: Where it stands.
    """

    points: float
    method: str
    source: str


_CSNN = ("CSNN", "arXiv 2507.00647, Tables 1 and 2")
_GREAD = ("GREAD", "arXiv 2211.14208, the best of its variants")
_TABPFN_GN = ("TabPFN-GN", "arXiv 2512.08798, its splits inferred from its authors' other code")

PUBLISHED: Mapping[str, Published] = {
    "texas": Published(89.73, *_GREAD),
    "wisconsin": Published(90.00, *_CSNN),
    "actor": Published(38.03, *_CSNN),
    "cora": Published(88.57, *_GREAD),
    "citeseer": Published(78.02, "Geom-GCN", "run again in arXiv 2102.06462, Table 1"),
    "pubmed": Published(90.30, "GCNII*", "arXiv 2007.02133"),
    "squirrel-filtered": Published(46.66, *_TABPFN_GN),
    "chameleon-filtered": Published(49.11, *_TABPFN_GN),
    "minesweeper": Published(99.07, *_CSNN),
    "tolokers": Published(85.91, "Polynormer-r", "arXiv 2403.01232, Table 2"),
}
"""By dataset."""
