"""
What the gates did
==================

Three gates of each node say how much it keeps of itself, absorbs from its neighbours, and passes on
to them. Here they are read out of networks that were trained on graphs in which neighbours agree
less or more. (For a model of your own, ``memohop explain`` draws them.)
"""

import matplotlib.pyplot as plt
import torch

import memohop
from memohop.report.palette import GATES

HOMOPHILIES = (0.05, 0.2, 0.4, 0.6, 0.8, 0.95)
MARKERS = {"circle": "o", "square": "s", "triangle": "^"}
OPTIONS = {"hidden_channels": 32}

# %%
# Three splits of each graph, all trained alike, and the mean of each gate over nodes and splits.

network = memohop.build("gcn+mmp", in_channels=64, out_channels=5, **OPTIONS).eval()
members = memohop.grid(split=range(3), lr=0.02, weight_decay=5e-4)
means = []
for homophily in HOMOPHILIES:
    data = memohop.load("csbm", homophily=homophily, nodes=400, strength=0.3, splits=3)
    graph = network.prepare(data.edge_index, data.num_nodes)
    results = memohop.train(data, "gcn+mmp", members, options=OPTIONS, epochs=40, keep_models=True)
    gates = []
    for result in results:
        network.load_state_dict(result.state)
        with torch.no_grad():
            first_round = network.gates(data.x, graph)[0]  # [nodes, 3]
        gates.append(first_round.mean(dim=0))
    means.append(torch.stack(gates).mean(dim=0))

# %%
# A node keeps itself, until neighbours are so much alike that it need not. It absorbs least where
# they say nothing (with five classes, at a homophily of one in five): to be unlike says something
# too. And what it hears is passed on where neighbours agree.

figure, axes = plt.subplots()
for column, (_, label, line) in enumerate(GATES):
    values = [float(mean[column]) for mean in means]
    axes.plot(HOMOPHILIES, values, marker=MARKERS[line.symbol], color=line.colour, label=label)
axes.set(xlabel="homophily", ylabel="mean of the gate in the first round", ylim=(0, 1.04))
axes.legend(loc="lower right")
plt.show()
