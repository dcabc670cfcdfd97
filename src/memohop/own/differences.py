r"""How far the true difference of two models may be from the measured one, by the test nodes alone.

Other test nodes would give another difference of two scores. To estimate how much it varies, the
distinct test nodes of all splits are dealt to :math:`G` groups, each with its share of every class;
without group :math:`g` the mean difference over the splits is :math:`d_g`. The jackknife's variance
is then

.. math::
    v = \frac{G - 1}{G} \sum_g \left(d_g - \bar{d}\right)^2 .

Both models are scored on the same nodes, so nodes that are hard for both cancel out. This
works for any score. For accuracy and groups of one node, :math:`v` is the variance of a mean of
paired differences, :math:`s^2 / m`. It would be 0 if the models agree on every node. A. Agresti
and Y. Min, *Effects and non-effects of paired identical observations in comparing proportions with
binary matched-pairs data* (Statistics in Medicine 2004), therefore add half a node to either side,
which gives :math:`v + 1 / (m + 2)^2`. The reach of the test nodes is :math:`t_{G-1}` times its
root.
"""

from __future__ import annotations

import math

import torch
from scipy import stats
from torch import Tensor

from memohop.pyg import Data
from memohop.training.metrics import METRICS

_GROUPS = 50  # more of them hardly change the variance
_LEVEL = 0.95


def node_reach(one: Tensor, other: Tensor, graph: Data) -> float:
    """Half the width of the 95 % interval of the difference, by the test nodes alone.

    Args:
        one: Logits of a model, ``[splits, nodes, classes]``.
        other: Logits of another model.
        graph: A graph with labels, test masks ``[nodes, splits]`` and metric.
    """
    nodes = graph.test_mask.any(dim=1).nonzero().flatten()
    nodes = nodes[graph.y[nodes].argsort(stable=True)]  # so that every group has all classes
    groups = min(len(nodes), _GROUPS)
    if groups < 2:
        return math.inf
    left = torch.arange(len(nodes)) % groups != torch.arange(groups)[:, None]
    everyone = torch.ones(1, len(nodes), dtype=torch.bool)
    without, whole = (_gaps(one, other, graph, nodes, kept).double() for kept in (left, everyone))
    # If all of a split's test nodes of a class are in one group, it has no score without the group.
    without = torch.where(without.isfinite(), without, whole).mean(dim=0)
    variance = (groups - 1) * float(without.var(correction=0))
    variance += (_nodes_that_count(graph, nodes) + 2) ** -2
    return float(stats.t.ppf((1 + _LEVEL) / 2, groups - 1)) * math.sqrt(variance)


def _gaps(one: Tensor, other: Tensor, graph: Data, nodes: Tensor, kept: Tensor) -> Tensor:
    """Differences of the scores on the kept test nodes, ``[splits, rows of kept]``."""
    score, y = METRICS[graph.metric].score, graph.y[nodes]
    found = []
    for split, tested in enumerate(graph.test_mask[nodes].t()):
        masks = (kept & tested).to(one.dtype)[None]
        scores = [score(logits[split : split + 1, nodes], y, masks)[0] for logits in (one, other)]
        found.append(scores[0] - scores[1])
    return torch.stack(found)


def _nodes_that_count(graph: Data, nodes: Tensor) -> int:
    """All nodes for a mean over nodes; otherwise as many of each class as the smallest has."""
    if METRICS[graph.metric].is_mean:
        return len(nodes)
    sizes = graph.y[nodes].bincount()
    sizes = sizes[sizes > 0]
    return len(sizes) * int(sizes.min())
