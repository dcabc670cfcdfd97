import subprocess
import sys

import pytest

from memohop.data.datasets.fetch import address, known_digests
from memohop.data.datasets.registry import datasets, describe
from memohop.errors import UsageError

NAMES = [
    *("texas", "wisconsin", "cornell", "cornell-legacy", "actor", "chameleon", "squirrel"),
    *("cora", "citeseer", "pubmed", "chameleon-filtered", "squirrel-filtered"),
    *("minesweeper", "tolokers", "roman-empire", "amazon-ratings", "questions"),
    *("csbm", "digits"),
]


def test_the_ids_are_the_promised_ones_in_order():
    assert datasets() == NAMES
    assert [describe(name).id for name in NAMES] == NAMES
    assert [name for name in NAMES if not describe(name).files] == ["csbm", "digits"]
    with pytest.raises(UsageError, match=r"'corna'.*cora"):
        describe("corna")


def test_every_file_that_is_needed_has_a_digest_and_the_other_way_round():
    needed = {path for name in NAMES for path in describe(name).files}
    extra = known_digests().keys() - needed
    assert needed <= known_digests().keys()
    assert all(path.startswith("geom-gcn/structural_neighborhood/") for path in extra)
    assert {describe(name).neighbours for name in NAMES} - {""} <= extra
    assert len(extra) == 11
    assert all(len(digest) == 64 for digest in known_digests().values())


def test_what_was_published_about_the_three_that_are_not_measured_here():
    """The table of the authors' repository, whose edges are half as many as arcs."""
    published = {
        "roman-empire": (22662, 32927, 300, 18, 0.05, "accuracy"),
        "amazon-ratings": (24492, 93050, 300, 5, 0.38, "accuracy"),
        "questions": (48921, 153540, 301, 2, 0.84, "roc_auc"),
    }
    for name, facts in published.items():
        info = describe(name)
        counts = (info.nodes, info.arcs / 2, info.features, info.classes)
        assert (*counts, info.homophily, info.metric) == facts
        assert (info.directed, info.test_to_train) == (False, 0.5)
    noted = [name for name in NAMES if "not measured here" in describe(name).note]
    assert noted == list(published)


def test_addresses_are_encrypted_and_pinned_to_a_commit():
    for path in known_digests():
        scheme, _, host, _, _, commit = address(path).split("/")[:6]
        assert (scheme, host) == ("https:", "raw.githubusercontent.com")
        assert len(commit) == 40
    for path, end in {
        "geom-gcn/legacy/cornell/out1_graph_edges.txt": (
            "/1c4c04f93fa6ada91976cda8d7577eec0e3e5cce/new_data/cornell/out1_graph_edges.txt"
        ),
        "geom-gcn/splits/film_split_0.6_0.2_3.npz": (
            "/1124af17444d7fd09686504ec46caa3f39f4f632/splits/film_split_0.6_0.2_3.npz"
        ),
        "planetoid/ind.cora.graph": "/data/ind.cora.graph",
        "platonov/tolokers.npz": "/data/tolokers.npz",
    }.items():
        assert address(path).endswith(end)


def test_a_listing_needs_no_pytorch():
    code = (
        "import sys, memohop.data.datasets.registry as r, memohop.data.datasets.fetch as f;"
        "r.datasets(); f.known_digests();"
        "sys.exit('torch' in sys.modules or 'pooch' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
