"""Made-up results, drawn from a seed, for the tests of tables, figures and pages."""

from __future__ import annotations

import numpy as np
import pytest

from study.pages.page import Findings, report_page
from study.paper.gates import GateBin, GateCurve, Gates
from study.paper.table1 import printed_table1, table1_datasets, table1_models, tables_of
from study.runs.results import Results, Row, Source, measured

SOURCE = Source(
    versions={"memohop": "0.0", "python": "3.11.0", "torch": "2.13.0"},
    device="A Processor <&> Co",
    commit="0123456789abcdef0123456789abcdef01234567",
    datasets={name: f"{i:064x}" for i, name in enumerate(table1_datasets())},
)
LAMBDAS = (0.0, 0.2, 1.0)


def row(test, *, val=0.5, protocol="paper", dataset="texas", model="gcn", split=0, seed=0, **more):
    """A row with made-up figures; ``more`` has its axes and its setting."""
    of_cell = (more.get("axes", {}), more.get("setting", {}))
    scores = (round(float(val), 6), round(float(test), 6))
    return Row(protocol, dataset, model, *of_cell, split, seed, *scores, 40, 100, 0.25, 0)


def results_of(*rows, experiment="table1"):
    return Results(experiment, (SOURCE,), rows)


def made_up_table1(protocols=("paper", "official")):
    rng = np.random.default_rng(0)
    rows = []
    for protocol in protocols:
        for dataset in table1_datasets():
            hardness = rng.normal(0, 0.02, 10)  # per split, the same for all models
            for model in table1_models():
                mean = printed_table1()[model, dataset].mean / 100 + rng.normal(0, 0.015)
                for lam in LAMBDAS if "mmp" in model else LAMBDAS[:1]:
                    setting = {"lam": lam} if "mmp" in model else {}
                    tests = np.clip(mean - lam / 100 + hardness + rng.normal(0, 0.01, 10), 0, 1)
                    rows += [
                        row(test, val=0.8 - abs(lam - 0.2) / 10, protocol=protocol, dataset=dataset,
                            model=model, setting=setting, split=split)
                        for split, test in enumerate(tests)
                    ]  # fmt: skip
    return results_of(*rows)


def made_up_noise():
    rng = np.random.default_rng(1)
    slopes = {
        "mlp": 0, "gcn": 0.30, "gat": 0.33, "gcn+jk": 0.22, "gcn+de": 0.28,
        "gcn+mmp": 0.14, "gat+mmp": 0.16,
    }  # fmt: skip
    rows = []
    for protocol, splits, seeds in (("paper", 10, 1), ("official", 1, 2)):
        for dataset, start in (("cora", 0.81), ("citeseer", 0.70)):
            for model, slope in slopes.items():
                for noise in (0, 25, 50, 75, 100, 200, 300, 400, 500):
                    for lam in (0.0, 0.4) if "mmp" in model else (None,):
                        level = start - slope * (1 - np.exp(-noise / 200)) + (lam or 0) * 0.03
                        level -= 0.22 if model == "mlp" else 0
                        rows += [
                            row(level + rng.normal(0, 0.012), val=0.7 + (lam or 0) / 10,
                                protocol=protocol, dataset=dataset, model=model, split=split,
                                seed=seed, axes={"noise": noise, "draw": draw},
                                setting={} if lam is None else {"lam": lam})
                            for draw in range(3)
                            for split in range(splits)
                            for seed in range(seeds)
                        ]  # fmt: skip
    return results_of(*rows, experiment="noise")


def made_up_lambda():
    rng = np.random.default_rng(2)
    slopes = {
        "texas": 0.05, "wisconsin": 0.04, "cornell-legacy": 0.05, "actor": 0.005,
        "squirrel": -0.15, "chameleon": -0.12,
    }  # fmt: skip
    rows = []
    for protocol in ("paper", "official"):
        for dataset, slope in slopes.items():
            hardness = rng.normal(0, 0.03, 10)
            for model in ("gcn+mmp", "gat+mmp"):
                start = printed_table1()[model, dataset].mean / 100 - 0.04
                for lam in (0.0, 0.1, 0.2, 0.4, 0.6, 0.8, 1.0):
                    rows += [
                        row(start + slope * np.sqrt(lam) + hardness[split] + rng.normal(0, 0.01),
                            val=0.8, protocol=protocol, dataset=dataset, model=model, split=split,
                            seed=seed, axes={"lam": lam})
                        for split in range(10)
                        for seed in range(2)
                    ]  # fmt: skip
    return results_of(*rows, experiment="lambda")


def made_up_gates():
    bins = tuple(
        GateBin(
            i / 5, (i + 1) / 5, nodes=40 - 7 * i,
            kept=0.8 - i / 20, absorbed=0.3 + i / 10, passed_on=0.5,
            kept_std=0.02, absorbed_std=0.03, passed_on_std=0.01,
        )
        for i in range(5)
        if i != 3
    )  # fmt: skip
    curves = [
        GateCurve("official", dataset, "gcn+mmp", lam=0.1, splits=10, bins=bins)
        for dataset in ("texas", "squirrel", "cora")
    ]
    return Gates(
        "python -m study bench gates --datasets texas,squirrel,cora", SOURCE, tuple(curves)
    )


@pytest.fixture(scope="session")
def findings():
    from made_up_search import made_up_search  # which takes the source from here

    measured = made_up_table1(), made_up_noise(), made_up_lambda(), made_up_gates()
    return Findings(*measured, made_up_search())


@pytest.fixture(scope="session")
def tables(findings):
    return tables_of(measured(findings.table1))


@pytest.fixture(scope="session")
def page(findings):
    return report_page(findings)
