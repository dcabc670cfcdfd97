"""The model card: what a saved model is, what it was made from, and how far to trust it."""

from __future__ import annotations

import html
import platform
import re
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

from memohop.data.audit import audit
from memohop.own.model import MODEL
from memohop.own.report import FitReport
from memohop.printable import printable
from memohop.training.metrics import METRICS

if TYPE_CHECKING:
    from memohop.own.estimator import MMPClassifier

_PACKAGES = ("memohop", "torch", "torch_geometric", "numpy", "scikit-learn")


def model_card(classifier: MMPClassifier) -> str:
    """The card as Markdown."""
    report = classifier.report_
    sections = {
        "What it is": _what(classifier),
        "Scores": _scores(report),
        "Data": [*_data(report), *(f"- {_text(note)}" for note in report.notes)],
        "Audit": _audit(classifier),
        "Setting": _listed({**classifier.model_.options, **report.score().numbers}),
        "Files": [
            "- `model.json`, `weights-*.safetensors`: the model.",
            "- `graph-*.safetensors`: features, arcs, labels and ids of the graph it was fitted "
            "on. Delete it to share the model without its data; predicting on other graphs does "
            "not need it.",
        ],
        "Made with": _listed(
            {name: version(name) for name in _PACKAGES} | {"Python": platform.python_version()}
        ),
    }
    parts = [f"# A node classifier for {_in_words(classifier.classes_.tolist())}"]
    parts += [f"## {title}\n\n" + "\n".join(lines) for title, lines in sections.items()]
    return "\n\n".join(parts) + "\n"


def _what(classifier: MMPClassifier) -> list[str]:
    report = classifier.report_
    return [
        f"{report.splits} networks of the kind `{MODEL}` (memory-based message passing), one for "
        "each split of the labelled nodes; the mean of their probabilities counts.",
        "",
        "```",
        "memohop predict MODEL --nodes nodes.csv --edges edges.csv -o predictions.csv",
        "memohop explain MODEL -o page.html",
        "```",
    ]


def _scores(report: FitReport) -> list[str]:
    words = METRICS[report.metric].words
    lines = [f"| model | {words}, % | difference to {MODEL} |", "|---|---|---|"]
    for score in report.scores:
        gap = report.differences.get(score.model)
        text = ""
        if gap is not None:
            text = f"{-100 * gap.mean:+.1f} ({-100 * gap.high:+.1f} to {-100 * gap.low:+.1f})"
        lines.append(f"| {score.model} | {100 * score.mean:.1f} ± {100 * score.std:.1f} | {text} |")
    legend = report.legend()
    return [
        *lines,
        "",
        report.verdict(),
        "",
        f"{legend[0].upper()}{legend[1:]}. In brackets, the 95 % interval of the difference "
        "(corrected for overlapping splits, Nadeau and Bengio 2003, and no narrower than the test "
        "nodes allow). Test nodes played no part in any choice. The search ended because "
        f"{_ENDS[report.stopped]}.",
    ]


_ENDS = {
    "trials": "all trials were made",
    "time": "its time was over",
    "interrupted": "it was interrupted",
}


def _data(report: FitReport) -> list[str]:
    sizes = ", ".join(f"{_text(name)}: {size}" for name, size in report.class_sizes.items())
    return [
        f"- {report.nodes} nodes, {report.arcs} arcs",
        f"- {report.labelled} nodes with a label ({sizes})",
    ]


def _audit(classifier: MMPClassifier) -> list[str]:
    found = audit(classifier.own_graph())
    names = ("edge_homophily", "adjusted_homophily", "label_informativeness")
    figures = {name.replace("_", " "): getattr(found, name) for name in names}
    lines = _listed({name: value for name, value in figures.items() if value is not None})
    lines += [f"- {_text(reason)}" for reason in found.advice.reasons]
    return lines + [f"- Beware: {_text(reason)}" for reason in found.advice.distrust]


def _listed(values: dict[str, Any]) -> list[str]:
    return [f"- {name}: {_shown(value)}" for name, value in values.items()]


def _shown(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def _text(text: str) -> str:
    """Text with names that users gave, which must not become tags, links or styles."""
    return re.sub(r"[\\`*_\[\]|~]", r"\\\g<0>", html.escape(printable(text), quote=False))


def _in_words(names: list[Any]) -> str:
    shown = [_text(str(name)) for name in names[:6]]
    more = len(names) - len(shown)
    return ", ".join(shown) + (f" and {more} more" if more else "")
