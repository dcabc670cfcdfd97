"""The model card: the model, its data, and how far to trust it."""

from __future__ import annotations

import html
import platform
import re
from collections.abc import Iterable
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

import torch
from scipy import sparse

from memohop.data.audit import audit
from memohop.data.audit.advice import distrust
from memohop.data.tables.own_graph import OwnGraph
from memohop.printable import printable
from memohop.pyg import Data
from memohop.training.metrics import METRICS
from memohop.version import __version__

if TYPE_CHECKING:
    from memohop.fit.estimator import GraphEstimator
    from memohop.fit.record import FitRecord, KeptPart

_PACKAGES = ("torch", "torch_geometric", "numpy", "scikit-learn")
_ARCS = 2_000_000  # of the largest graph that is audited for the card
_USE = """
```
memohop predict MODEL --nodes nodes.csv --edges edges.csv -o predictions.csv
memohop explain MODEL -o page.html
```"""


def record_card(estimator: GraphEstimator) -> str:
    """The card of a model of the portfolio, as Markdown."""
    report, own = estimator.report_, type(estimator).__name__
    sizes = ", ".join(f"{_text(name)}: {size}" for name, size in report.class_sizes.items())
    names = [_text(name) for name in report.class_sizes]
    more = f" and {len(names) - 6} more" if len(names) > 6 else ""
    label = (estimator.reading_ or {}).get("label")
    about = f"{', '.join(names[:6])}{more}" if names else _text(str(label or "numbers"))
    kept = [
        f"- {part.family}, weight {part.weight:.2f}: "
        + ", ".join(f"{name} {_shown(value)}" for name, value in _setting(part).items())
        for part in report.kept
    ]
    sections = {
        "What it is": [
            f"Memohop's `{own}`: the mean, by weight, of the models below. Each was fitted "
            f"{_times(estimator)}, to other parts of the labelled nodes.",
            "",
            *kept,
            _USE,
        ],
        "Scores": [
            *_record_table(report),
            "",
            _text(report.verdict()),  # it may name a class
            *(["", report.later_text()] if report.later is not None else []),
            "",
            f"{_capital(report.legend())}.",
        ],
        "Data": [
            f"- {report.nodes} nodes, {report.arcs} arcs",
            f"- {report.labelled} nodes with a target" + f" ({sizes})" * bool(sizes),
            *(f"- {_text(note)}" for note in report.notes),
        ],
        **({"Audit": _audit(estimator)} if names else {}),
        "Files": [
            "- `model.json`, `weights-*.safetensors`, `trees-*.txt`: the model.",
            "- `graph-*.safetensors`: features, arcs, targets and ids of the graph it was fitted "
            "on. Delete it to share the model without its data; predicting on other graphs does "
            "not need it.",
        ],
        "Made with": _listed(_versions((*_PACKAGES, "lightgbm"))),
    }
    kind = "regressor" if report.residual is not None else "classifier"
    parts = [f"# A node {kind} for {about}"]
    parts += [f"## {title}\n\n" + "\n".join(lines) for title, lines in sections.items()]
    return "\n\n".join(parts) + "\n"


def _times(estimator: GraphEstimator) -> str:
    """How often the parts of an ensemble were fitted: all alike, unless time was short."""
    counts = sorted({len(one.models) for one in estimator.model_.components})
    if counts == [1]:
        return "once"
    return " to ".join(f"{count}" for count in dict.fromkeys((counts[0], counts[-1]))) + " times"


def _setting(part: KeptPart) -> dict[str, Any]:
    return {**part.options, **part.numbers}


def _record_table(report: FitRecord) -> list[str]:
    metric = METRICS[report.metric]
    val, tested = metric.text(report.val), report.test_text()
    lines = [
        f"| model | tried | validation | test, {metric.words} in {metric.unit} | behind |",
        "|---|---|---|---|---|",
        f"| kept | {report.candidates} | {val} | {tested} | |",
    ]
    for one in report.families:
        test = "" if one.test is None else metric.text(one.test)
        gap = one.behind
        ends = ""
        if gap is not None:
            ends = f"{metric.signed_text(gap.mean)} ({metric.ends_text(gap)})"
        lines.append(f"| {one.family} | {one.tried} | {metric.text(one.val)} | {test} | {ends} |")
    return lines


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]


def _audit(estimator: GraphEstimator) -> list[str]:
    graph = estimator.own_graph()
    if graph.arcs.shape[1] > _ARCS:
        return ["The graph is too large for a quick audit; `memohop audit` makes one."]
    data = Data(
        x=graph.x if sparse.issparse(graph.x) else torch.from_numpy(graph.x),
        y=torch.from_numpy(graph.y),
        edge_index=torch.from_numpy(graph.arcs),
    )
    graph_of_fit = OwnGraph(data, estimator.ids_, estimator.classes_.tolist(), None, ())
    found = audit(graph_of_fit, probes=False)  # what columns and graph say, the scores tell
    names = ("edge_homophily", "adjusted_homophily", "label_informativeness")
    figures = {name.replace("_", " "): getattr(found, name) for name in names}
    lines = _listed({name: value for name, value in figures.items() if value is not None})
    return lines + [f"- Beware: {_text(reason)}" for reason in distrust(found)]


def _listed(values: dict[str, Any]) -> list[str]:
    return [f"- {name}: {_shown(value)}" for name, value in values.items()]


def _shown(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def _text(text: str) -> str:
    """Text from users, escaped so that it cannot become a tag, link or style."""
    return re.sub(r"[\\`*_\[\]|~]", r"\\\g<0>", html.escape(printable(text), quote=False))


def _versions(packages: Iterable[str]) -> dict[str, str]:
    others = {name: version(name) for name in packages}
    return {"memohop": __version__, **others, "Python": platform.python_version()}
