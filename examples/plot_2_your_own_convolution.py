"""
Wrapping your own convolution
=============================

Any function from (memory, edge_index) to a message of the same width can be wrapped. Here it is a
convolution of our own, a mean over the neighbours followed by a linear map, first alone and then
with a memory around it, in networks of one to eight rounds.
"""

import matplotlib.pyplot as plt
import torch
from torch import nn

import memohop
from memohop.report.palette import HUES


class MeanConv(nn.Module):
    """The mean of the neighbours' rows, mapped linearly."""

    def __init__(self, channels):
        super().__init__()
        self.linear = nn.Linear(channels, channels)

    def forward(self, rows, edge_index):
        """One message for each node."""
        source, target = edge_index
        total = torch.zeros_like(rows).index_add(0, target, rows[source])
        count = torch.zeros_like(rows[:, :1]).index_add(
            0, target, torch.ones_like(rows[source, :1])
        )
        return self.linear(total / count.clamp(min=1))


# %%
# The network with memory has one more line, and classifies from ``hidden``.


class Network(nn.Module):
    """Some rounds of the convolution, alone or with memory."""

    def __init__(self, features, classes, rounds, with_memory, width=32):
        super().__init__()
        self.first, self.last = nn.Linear(features, width), nn.Linear(width, classes)
        self.rounds = nn.ModuleList(MeanConv(width) for _ in range(rounds))
        if with_memory:
            self.rounds = nn.ModuleList(memohop.MMP(conv, width) for conv in self.rounds)
        self.with_memory = with_memory

    def forward(self, x, edge_index):
        """The logits of every node."""
        hidden = memory = self.first(x).relu()
        for layer in self.rounds:
            if self.with_memory:
                hidden, memory = layer(hidden, memory, edge_index)
            else:
                hidden = layer(hidden, edge_index).relu()
        return self.last(hidden)


# %%
# ``memohop.train`` takes a function that builds the network, and trains four splits of it as one.

data = memohop.load("csbm", homophily=0.1, nodes=300, strength=0.35, splits=4)
members = memohop.grid(split=range(4), lr=0.02, weight_decay=5e-4)
depths = (1, 2, 4, 8)
means = {"alone": [], "with memory": []}
for rounds in depths:
    for name in means:

        def build(rounds=rounds, name=name):
            """A fresh network, called once for each member."""
            return Network(64, 5, rounds, with_memory=name == "with memory")

        results = memohop.train(data, build, members, epochs=40)
        means[name].append(100 * memohop.select(results).mean)

# %%
# Neighbours are of other classes here. Alone, the convolution replaces what a node knows about
# itself by what they say; with memory the node keeps it, however many rounds there are.

figure, axes = plt.subplots()
axes.plot(depths, means["with memory"], marker="o", color=HUES["blue"], label="with memory")
axes.plot(depths, means["alone"], marker="s", color=HUES["orange"], label="alone")
axes.axhline(20, color="grey", linestyle=":", linewidth=1.2)
axes.annotate("chance", (7.3, 21), color="grey")
axes.set(
    xlabel="rounds of the convolution", ylabel="test accuracy, %", xticks=depths, ylim=(10, 100)
)
axes.legend(loc="center right")
plt.show()
