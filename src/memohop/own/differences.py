r"""How far two models are apart on the same test nodes, and how sure those nodes make one of it.

Had the graph had other test nodes, the difference of two scores would be another. How much is seen
by leaving some out: the distinct test nodes of all splits are dealt to :math:`G` groups, each with
its share of every class, and without group :math:`g` the mean difference over the splits is
:math:`d_g`. The jackknife's variance is then

.. math::
    v = \frac{G - 1}{G} \sum_g \left(d_g - \bar{d}\right)^2 .

Both models are scored on the same nodes, so that nodes that are hard for both do not count, and it
serves for any score. For accuracy and groups of one node it is the variance of a mean of paired
differences, :math:`s^2 / m`. Where the models differ on no node at all it would be 0, and so
A. Agresti and Y. Min, *Effects and non-effects of paired identical observations in comparing
proportions with binary matched-pairs data* (Statistics in Medicine 2004), add half a node to either
side, which makes it :math:`v + 1 / (m + 2)^2`. The test nodes reach as far as
:math:`t_{G-1}` times its root.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping

import torch
from scipy import stats
from torch import Tensor

from memohop.own.space import Trial
from memohop.pyg import Data
from memohop.training.device import find_device
from memohop.training.metrics import METRICS
from memohop.training.task import make_builder, make_task

_GROUPS = 50  # beyond, their number hardly changes the variance


def logits_of(
    data: Data,
    model: str,
    trial: Trial,
    states: Iterable[Mapping[str, Tensor]],
    device: torch.device | str,
) -> Tensor:
    """What trained networks say of every node, `[networks, nodes, classes]`.

    Args:
        data: What they were trained on.
        model: Its id.
        trial: Its setting.
        states: Parameters and buffers of each network.
        device: Where to compute.
    """
    place = find_device(device)
    network = make_builder(model, data, dict(trial.options))().to(place).eval()
    inputs = make_task(data, network, place, "auto").inputs
    found = []
    with torch.no_grad():
        for state in states:
            network.load_state_dict(dict(state))
            output = network(*inputs)
            found.append((output[0] if isinstance(output, tuple) else output).cpu())
    return torch.stack(found)


def node_reach(one: Tensor, other: Tensor, graph: Data, *, level: float = 0.95) -> float:
    """How far from the measured difference the true one may be, by the test nodes alone.

    Args:
        one: What a model says, `[splits, nodes, classes]`.
        other: What another one says.
        graph: With labels, test masks `[nodes, splits]` and metric.
        level: How sure one wants to be.
    """
    nodes = graph.test_mask.any(dim=1).nonzero().flatten()
    nodes = nodes[graph.y[nodes].argsort(stable=True)]  # so that each group has of every class
    groups = min(len(nodes), _GROUPS)
    if groups < 2:
        return math.inf
    left = torch.arange(len(nodes)) % groups != torch.arange(groups)[:, None]
    everyone = torch.ones(1, len(nodes), dtype=torch.bool)
    without, whole = (_gaps(one, other, graph, nodes, kept).double() for kept in (left, everyone))
    # A split may have its only test node of a class in one group, and no score without it.
    without = torch.where(without.isfinite(), without, whole).mean(dim=0)
    variance = (groups - 1) * float(without.var(correction=0))
    variance += (_nodes_that_count(graph, nodes) + 2) ** -2
    return float(stats.t.ppf((1 + level) / 2, groups - 1)) * math.sqrt(variance)


def _gaps(one: Tensor, other: Tensor, graph: Data, nodes: Tensor, kept: Tensor) -> Tensor:
    """Differences of the scores on the test nodes that are kept, `[splits, rows of kept]`."""
    score, y = METRICS[graph.metric].score, graph.y[nodes]
    found = []
    for split, tested in enumerate(graph.test_mask[nodes].t()):
        masks = (kept & tested).to(one.dtype)[None]
        scores = [score(logits[split : split + 1, nodes], y, masks)[0] for logits in (one, other)]
        found.append(scores[0] - scores[1])
    return torch.stack(found)


def _nodes_that_count(graph: Data, nodes: Tensor) -> int:
    """All of them for a mean over nodes; otherwise, of each class as many as the smallest has."""
    if METRICS[graph.metric].is_mean:
        return len(nodes)
    sizes = graph.y[nodes].bincount()
    sizes = sizes[sizes > 0]
    return len(sizes) * int(sizes.min())
