"""The model card: the model, its data, and how far to trust it. Its text is in ``card.md``."""

from __future__ import annotations

import html
import platform
import re
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from jinja2 import Environment, StrictUndefined
from scipy import sparse

from memohop.data.audit import audit
from memohop.data.tables import OwnGraph
from memohop.fit._record import KeptPart
from memohop.outputs import printable
from memohop.pyg import Data
from memohop.training.metrics import METRICS
from memohop.version import __version__

if TYPE_CHECKING:
    from memohop.fit.estimator import GraphEstimator

_TEMPLATE = Path(__file__).with_name("card.md")
_PACKAGES = ("torch", "torch_geometric", "numpy", "scikit-learn", "lightgbm")
_CLASSES = 6  # named in the title, at most
_ARCS = 2_000_000  # of the largest graph that is audited for the card


def record_card(estimator: GraphEstimator) -> str:
    """The card of a model of the portfolio, as Markdown."""
    record = estimator.report_
    names, legend = list(record.class_sizes), record.legend()
    more = f" and {len(names) - _CLASSES} more" if len(names) > _CLASSES else ""
    target = str((estimator.reading_ or {}).get("label") or "numbers")
    counts = sorted({len(component.models) for component in estimator.model_.components})
    span = " to ".join(str(count) for count in dict.fromkeys((counts[0], counts[-1])))
    environment = Environment(  # it is Markdown, and `plain` escapes
        undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True, keep_trailing_newline=True
    )
    environment.filters["plain"] = _plain
    return environment.from_string(_TEMPLATE.read_text(encoding="utf-8")).render(
        record=record,
        metric=METRICS[record.metric],
        estimator=type(estimator).__name__,
        about=f"{', '.join(map(_plain, names[:_CLASSES]))}{more}" if names else _plain(target),
        times="once" if counts == [1] else f"{span} times",
        setting=_setting,
        same_values=any(part.options.get("same_values") for part in record.kept),
        sizes=", ".join(f"{_plain(name)}: {size}" for name, size in record.class_sizes.items()),
        legend=legend[:1].upper() + legend[1:],
        audited=_audit(estimator) if names else None,
        versions={
            "memohop": __version__,
            **{name: version(name) for name in _PACKAGES},
            "Python": platform.python_version(),
        },
    )


def _setting(part: KeptPart) -> str:
    pairs = {**part.options, **part.numbers}.items()
    return ", ".join(f"{name} {_shown(value)}" for name, value in pairs)


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
    audited = audit(graph_of_fit, probes=False)  # what columns and graph say, the scores tell
    names = ("edge_homophily", "adjusted_homophily", "label_informativeness")
    figures = {name.replace("_", " "): getattr(audited, name) for name in names}
    known = [f"- {name}: {_shown(value)}" for name, value in figures.items() if value is not None]
    return known + [f"- Beware: {_plain(reason)}" for reason in audited.advice.distrust]


def _shown(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def _plain(text: str) -> str:
    """Text from users, escaped so that it cannot become a tag, link or style."""
    return re.sub(r"[\\`*_\[\]|~]", r"\\\g<0>", html.escape(printable(text), quote=False))
