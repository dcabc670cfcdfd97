"""A module that is not ours; and training the slow way, with nothing of the trainer's."""

from typing import NamedTuple

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
    """The history of a member.

    Args:
        data: The graph.
        member: The member.
        build: Makes its network.
        epochs: How many.
        optimiser: Makes the optimiser from network and member.
        x: The features in training, in a form that the network takes.
        summed: Whether the network's penalty is a sum over nodes.
        loss_of: The mean loss of outputs and targets.
        score: The score of targets and outputs.
        penalised: What is added to the validation loss.
        after: Called after each epoch.
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
