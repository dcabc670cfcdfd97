"""The demo as one page that needs no network, and its curve as one drawing."""

from __future__ import annotations

from collections.abc import Callable
from html import escape

from memohop.demo import DemoCell, DemoResult
from memohop.report.environment import template_text
from memohop.report.svg import Axis, Series, VerticalMark, line_chart, round_ticks

# Okabe and Ito's palette, which most colour-blind people can tell apart.
_COLOURS = {"mlp": "#797979", "gcn": "#d55e00", "gcn+mmp": "#0072b2", "gat+mmp": "#009e73"}
_SYMBOLS = {"mlp": "diamond", "gcn": "square", "gcn+mmp": "circle", "gat+mmp": "triangle"}
_GATES = (
    ("kept", "kept", "#0072b2", "circle"),
    ("absorbed", "absorbed", "#d55e00", "square"),
    ("passed_on", "passed on", "#009e73", "triangle"),
)
_INK_FOR_ANY_BACKGROUND = "#797979"  # as far from white as from GitHub's dark grey
_X = Axis("homophily: share of neighbours of one's own class", 0, 1, round_ticks(0, 1, step=0.2))
_X_NARROW = Axis("homophily", 0, 1, round_ticks(0, 1, step=0.2))

_OWN_STYLE = """
th:first-child { text-align: right; }
td span { color: var(--soft); white-space: nowrap; }
tr.mark th::after { content: " *"; }
pre { margin: .4rem 0; padding: .7rem .8rem; border: 1px solid var(--rule); border-radius: 6px;
  font-size: .85rem; white-space: pre-wrap; overflow-wrap: anywhere; }
@media screen and (max-width: 36rem) { td span { display: block; } }
"""
_VARIABLES = {
    "#797979": "var(--grey)",
    "#d55e00": "var(--orange)",
    "#0072b2": "var(--blue)",
    "#009e73": "var(--green)",
}


def curve_svg(result: DemoResult) -> str:
    """Accuracy against homophily as a file of its own, legible on white and on dark."""
    return _accuracy_chart(result, _X, themed=False, ink=_INK_FOR_ANY_BACKGROUND) + "\n"


def demo_page(result: DemoResult) -> str:
    """The whole page as text; every number on it comes from `result`."""
    gates = _gates_section(result)
    settings = result.settings
    return f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8"/>
<meta name="viewport" content="width=device-width, initial-scale=1"/>
<title>Memohop demo: when neighbours disagree</title>
<style>
{template_text("page.css")}{_OWN_STYLE}</style>
</head>
<body>
<main>
<h1>When neighbours disagree</h1>
<p>{_in_two_sentences(result)}</p>
<figure>
{_both_widths(_accuracy_chart, result)}
<figcaption>Mean test accuracy over {settings.splits} splits of each graph; the bands are one
standard deviation. With {result.classes} classes a homophily of {1 / result.classes:g} is where
neighbours say nothing: a neighbour's class is then as good as random.</figcaption>
</figure>
{_table(result)}
<p class="soft">Test accuracy in percent, mean ± sample standard deviation (ddof=1) over
{settings.splits} splits; λ is the weight of the decoupling loss that the mean validation accuracy
chose. * Neighbours say nothing. Labels, features and splits are the same at every homophily: only
the arcs change, which <code>mlp</code> does not see.</p>
{gates}
<h2>How it was made</h2>
<pre>memohop demo</pre>
{_how(result)}
</main>
</body>
</html>
"""


def _in_two_sentences(result: DemoResult) -> str:
    models, homophilies = result.settings.models, result.settings.homophilies
    first, last = (
        [f"{result.cell(homophily, model).mean:.1f} %" for model in models]
        for homophily in (homophilies[0], homophilies[-1])
    )
    named = [
        f"<code>{escape(model)}</code> {score}" for model, score in zip(models, first, strict=True)
    ]
    return (
        "Each point is a random graph in which a given share of a node's neighbours, the "
        "homophily, is of its own class, and networks learn to tell the classes of nodes that "
        f"they were not shown. Where neighbours disagree (homophily {homophilies[0]:g}) the "
        f"accuracy is {_in_words(named)}; where they agree ({homophilies[-1]:g}) it is "
        f"{_in_words(last)}."
    )


def _in_words(parts: list[str]) -> str:
    return f"{', '.join(parts[:-1])} and {parts[-1]}"


def _accuracy_chart(
    result: DemoResult,
    x: Axis,
    *,
    themed: bool,
    width: int = 720,
    height: int = 420,
    ink: str | None = None,
) -> str:
    lowest = min(cell.mean - cell.std for cell in result.cells)
    low = max(0, int(lowest // 10) * 10)
    series = []
    for model in result.settings.models:
        cells = [cell for cell in result.cells if cell.model == model]
        series.append(
            Series(
                label=model,
                colour=_colour(_COLOURS.get(model, _COLOURS["mlp"]), themed=themed),
                x=tuple(cell.homophily for cell in cells),
                y=tuple(cell.mean for cell in cells),
                spread=tuple(cell.std for cell in cells),
                titles=tuple(_tooltip(cell) for cell in cells),
                symbol=_SYMBOLS.get(model, "circle"),
                dashed=model == "mlp",
            )
        )
    return line_chart(
        series,
        title="Test accuracy against homophily, one line for each model",
        x=x,
        y=Axis("test accuracy, %", low, 100, round_ticks(low, 100, step=10)),
        mark=VerticalMark(1 / result.classes, "neighbours say nothing"),
        width=width,
        height=height,
        ink=ink,
    )


def _gates_chart(
    result: DemoResult, x: Axis, *, themed: bool, width: int = 720, height: int = 320
) -> str:
    cells = [cell for cell in result.cells if cell.gates is not None]
    series = []
    for name, label, colour, symbol in _GATES:
        values = tuple(float(getattr(cell.gates, name)) for cell in cells)
        series.append(
            Series(
                label=label,
                colour=_colour(colour, themed=themed),
                x=tuple(cell.homophily for cell in cells),
                y=values,
                titles=tuple(
                    f"{label}, homophily {cell.homophily:g}: {value:.2f}"
                    for cell, value in zip(cells, values, strict=True)
                ),
                symbol=symbol,
            )
        )
    return line_chart(
        series,
        title="Mean of the three gates of gcn+mmp against homophily",
        x=x,
        y=Axis("mean of the gate", 0, 1, round_ticks(0, 1, step=0.2)),
        mark=VerticalMark(1 / result.classes, "neighbours say nothing"),
        width=width,
        height=height,
    )


def _gates_section(result: DemoResult) -> str:
    if not any(cell.gates for cell in result.cells):
        return ""
    return f"""<h2>What the gates did</h2>
<p>In each round a node of <code>gcn+mmp</code> keeps a share of its own state, absorbs a share of
the message from its neighbours, and passes a share of that message on: where “absorbed” is low,
nodes trust their own features more than their neighbours.</p>
<figure>
{_both_widths(_gates_chart, result)}
<figcaption>Each gate lies between 0 (closed) and 1 (open). Means over nodes, rounds and
{result.settings.splits} splits, of networks trained with λ 0.</figcaption>
</figure>"""


def _both_widths(chart: Callable[..., str], result: DemoResult) -> str:
    """A drawing for screens and paper, and one for phones, whose text would shrink otherwise."""
    wide = chart(result, _X, themed=True).replace("<svg ", '<svg class="wide" ', 1)
    narrow = chart(result, _X_NARROW, themed=True, width=360, height=340)
    return wide + "\n" + narrow.replace("<svg ", '<svg class="narrow" ', 1)


def _table(result: DemoResult) -> str:
    models = result.settings.models
    head = "".join(f'<th scope="col">{escape(model)}</th>' for model in models)
    rows = []
    for homophily in result.settings.homophilies:
        cells = "".join(f"<td>{_score(result.cell(homophily, model))}</td>" for model in models)
        mark = ' class="mark"' if abs(homophily - 1 / result.classes) < 1e-9 else ""
        rows.append(f'<tr{mark}><th scope="row">{homophily:g}</th>{cells}</tr>')
    return (
        f'<table>\n<thead><tr><th scope="col">homophily</th>{head}</tr></thead>\n<tbody>\n'
        + "\n".join(rows)
        + "\n</tbody>\n</table>"
    )


def _score(cell: DemoCell) -> str:
    chosen = f", λ {cell.lam:g}" if cell.model.endswith("+mmp") else ""
    return f"{cell.mean:.1f} <span>± {cell.std:.1f}{chosen}</span>"


def _tooltip(cell: DemoCell) -> str:
    return f"{cell.model}, homophily {cell.homophily:g}: {cell.mean:.1f} ± {cell.std:.1f} %"


def _how(result: DemoResult) -> str:
    settings = result.settings
    lambdas = ", ".join(f"{lam:g}" for lam in settings.lambdas)
    versions = ", ".join(f"{name} {version}" for name, version in result.versions)
    example = settings.command(settings.homophilies[0], settings.models[-1])
    return f"""<p>Contextual stochastic block model (<code>csbm</code>) with its default numbers:
1000 nodes in {result.classes} classes, ten neighbours each on average, 64 noisy features. Every
network is {settings.hidden_channels} wide (attention with {settings.heads} head) and otherwise as
the library makes it; {settings.epochs} epochs of Adam with learning rate {settings.lr:g} and weight
decay {settings.weight_decay:g}; the epoch with the best validation accuracy counts. λ is one of
{lambdas}. Width and epochs are small so that two cores finish in under two minutes. To train one
model on one graph in this way:</p>
<pre>{escape(example)}</pre>
<p class="soft">Took {result.seconds:.0f} seconds in {result.processes} process(es).
{escape(versions)}.</p>"""


def _colour(colour: str, *, themed: bool) -> str:
    return _VARIABLES[colour] if themed else colour
