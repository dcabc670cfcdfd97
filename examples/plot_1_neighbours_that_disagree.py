"""
Neighbours that disagree
========================

In a random graph the share of neighbours with one's own class, the homophily, can be chosen. Five
classes, features that say a little: what do a perceptron, a plain graph network and one with memory
make of it?
"""

import matplotlib.pyplot as plt

import memohop
from memohop.report.palette import marker_of

HOMOPHILIES = (0.05, 0.2, 0.4, 0.6, 0.9)
MARKERS = {"mlp": "D", "gcn": "s", "gcn+mmp": "o"}

# %%
# Each point is the mean over four splits, which are trained at once.

members = memohop.grid(split=range(4), lr=0.02, weight_decay=5e-4)
means = {model: [] for model in MARKERS}
for homophily in HOMOPHILIES:
    data = memohop.load("csbm", homophily=homophily, nodes=400, strength=0.3, splits=4)
    for model in means:
        options = {"hidden_channels": 32}
        results = memohop.train(data, model, members, options=options, epochs=40)
        means[model].append(100 * memohop.select(results).mean)

# %%
# Where neighbours disagree, the plain network falls far below the perceptron, which does not see
# the graph. With memory it keeps to itself there, and listens where that pays.

figure, axes = plt.subplots()
for model, marker in MARKERS.items():
    axes.plot(HOMOPHILIES, means[model], marker=marker, color=marker_of(model).colour, label=model)
axes.axvline(0.2, color="grey", linestyle=":", linewidth=1.2)
axes.annotate("neighbours say nothing", (0.21, 22), color="grey")
axes.set(xlabel="homophily: share of neighbours of one's own class", ylabel="test accuracy, %")
axes.set_ylim(15, 102)
axes.legend(loc="lower right")
plt.show()
