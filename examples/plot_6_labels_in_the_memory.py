"""
Labels in the memory
====================

The label of a training node is knowledge too, and its neighbours may hear of it. With
``labels="memory"`` known labels go into the memory, and never into the state that the node itself
is decided by. This is an extension of ours; other models do not read labels, so say so beside a
score.
"""

import matplotlib.pyplot as plt

import memohop
from memohop.report.palette import HUES

STRENGTHS = (0.0, 0.1, 0.2, 0.3)
members = memohop.grid(split=range(3), lr=0.02, weight_decay=5e-4)

# %%
# Most neighbours agree here, and the features say nothing at first, then more and more.

means = {"none": [], "memory": []}
for strength in STRENGTHS:
    data = memohop.load("csbm", homophily=0.6, nodes=300, strength=strength, splits=3)
    for labels in means:
        options = {"hidden_channels": 32, "labels": labels}
        results = memohop.train(data, "gcn+mmp", members, options=options, epochs=60)
        means[labels].append(100 * memohop.select(results).mean)

# %%
# Where features say little, labels in the memory are worth most.

figure, axes = plt.subplots()
for labels, name, colour, marker in (
    ("memory", "labels in the memory", HUES["green"], "^"),
    ("none", "features alone in the memory", HUES["blue"], "o"),
):
    axes.plot(STRENGTHS, means[labels], marker=marker, color=colour, label=name)
axes.set(xlabel="how much the features say", ylabel="test accuracy, %", ylim=(70, 100))
axes.legend(loc="lower right")
plt.show()
