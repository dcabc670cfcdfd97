"""What the fair table's page shows, and the same computed again from the file of results.

The second computation reads the JSON as it is and uses none of the library's statistics.
"""

import json
from statistics import mean

import numpy as np
import pytest

from fair_again import PAIRS, holm, honest, t_test
from made_up_search import made_up_search
from study import RESULTS
from study.pages.page import Findings, report_page
from study.runs.tuned import Tuned


@pytest.fixture(scope="module", params=["made up", "measured"])
def fair_path(request, tmp_path_factory):
    if request.param == "measured":
        return RESULTS / "fair.json"
    path = tmp_path_factory.mktemp("fair") / "fair.json"
    made_up_search().save(path)
    return path


@pytest.fixture(scope="module")
def fair_page(fair_path):
    return report_page(Findings(fair=Tuned.load(fair_path)))


@pytest.fixture(scope="module")
def raw(fair_path):
    return json.loads(fair_path.read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def cells(raw):
    """By model and dataset, with their variants: the cell, and its score on each split."""
    by_name = {}
    for cell in raw["cells"]:
        names = {"row": cell["model"], "column": cell["dataset"]}
        for name, value in cell["axes"].items():
            names["column" if name == "homophily" else "row"] += f" {name}={value}"
        cell["scores"] = [100 * mean(seeds) for seeds in zip(*cell["test"], strict=True)]
        by_name[names["row"], names["column"]] = cell
    return by_name


@pytest.fixture(scope="module")
def gains(cells):
    """By backbone, plug-in and dataset: the differences on the splits, in points."""
    own, differences = honest(cells), {}
    for backbone, plug_in in PAIRS:
        for (row, column), cell in own.items():
            if row == backbone + plug_in and (backbone, column) in own:
                before = own[backbone, column]["scores"]
                differences[backbone, plug_in, column] = (
                    cell["dataset"], np.subtract(cell["scores"], before).tolist(),
                )  # fmt: skip
    return differences


@pytest.fixture(scope="module")
def verdicts(gains):
    verdicts = {}
    for column in dict.fromkeys(column for *_, column in gains):
        p = {key: t_test(d, name) for key, (name, d) in gains.items() if key[2] == column}
        for key, value in holm(p).items():
            verdicts[key] = 0 if value >= 0.05 else (1 if mean(gains[key][1]) > 0 else -1)
    return verdicts
