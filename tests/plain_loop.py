"""A module that is not ours; training the slow way, with nothing of the trainer's; comparison."""

from typing import NamedTuple

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

from memohop.nn import epoch_key, randomness


class Epoch(NamedTuple):
    """What an epoch has given; scores are those of the three parts."""

    loss: float
    val_loss: float
    scores: list


class RowByRow(nn.Module):
    """A module of another library, which looks at dense features alone."""

    def __init__(self, channels, outputs):
        super().__init__()
        self.linear = nn.Linear(channels, outputs)

    def forward(self, x, edge_index):
        assert x.layout == torch.strided
        return self.linear(x)


def accuracy(y, logits):
    return float((logits.argmax(-1) == y).float().mean())


def adam(model, member):
    return torch.optim.Adam(model.parameters(), lr=member.lr, weight_decay=member.weight_decay)


def plain_loop(
    data,
    member,
    build,
    epochs,
    *,
    optimiser=adam,
    x=None,
    summed=False,
    loss_of=F.cross_entropy,
    score=accuracy,
    penalised=lambda model: 0.0,
    after=lambda optimizer, epoch: None,
):
    """The history of a member whose network ``build`` makes.

    In training it is given the features ``x``, in any form that it takes. Its penalty may be summed
    over nodes, and ``penalised`` tells what is added to the validation loss.
    """
    torch.manual_seed(member.seed)
    model = build()
    prepare = getattr(model, "prepare", lambda edge_index, nodes: edge_index)
    graph = prepare(data.edge_index, data.num_nodes)
    optimizer = optimiser(model, member)
    masks = [data[f"{part}_mask"][:, member.split] for part in ("train", "val", "test")]

    def outputs(x):
        output = model(x, graph)
        return output if isinstance(output, tuple) else (output, 0.0)

    history = []
    for epoch in range(epochs):
        model.train()
        with randomness(epoch_key(torch.tensor(member.seed), torch.tensor(epoch))):
            said, penalty = outputs(data.x if x is None else x)
        loss = loss_of(said[masks[0]], data.y[masks[0]])
        loss = loss + member.lam * (penalty / int(masks[0].sum()) if summed else penalty)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        model.eval()
        with torch.no_grad():
            said, _ = outputs(data.x)
            val_loss = float(loss_of(said[masks[1]], data.y[masks[1]])) + penalised(model)
        scores = [score(data.y[mask], said[mask]) for mask in masks]
        history.append(Epoch(loss.item(), val_loss, scores))
        after(optimizer, epoch)
    return history


def assert_alike(results, expected, atol=0.0, rtol=0.0):
    """Results are those that were expected, to the bit unless there is a tolerance."""
    for result, other in zip(results, expected, strict=True):
        for name in ("member", "best_epoch", "epochs", "diverged"):
            assert getattr(result, name) == getattr(other, name), name
        for name in ("loss_curve", "val_curve", "train", "val", "test"):
            values = getattr(result, name), getattr(other, name)
            np.testing.assert_allclose(*values, rtol=rtol, atol=atol, err_msg=name)
        if other.state is not None:
            torch.testing.assert_close(result.state, dict(other.state), rtol=rtol, atol=atol)
