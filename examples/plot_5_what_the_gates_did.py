"""
What the gates did
==================

Three gates of each node say how much it keeps of itself, absorbs from its neighbours, and passes on.
They can be read out of any fitted model.
"""

import matplotlib.pyplot as plt

import memohop
from memohop.explain import read_gates
from memohop.report.palette import GATES

HOMOPHILIES = (0.05, 0.3, 0.6, 0.95)
MARKERS = {"circle": "o", "square": "s", "triangle": "^"}

# %%
# One graph for each homophily, and one classifier for each graph.

means = []
for homophily in HOMOPHILIES:
    data = memohop.load("csbm", homophily=homophily, nodes=300, strength=0.3)
    model = memohop.MMPClassifier(trials=1, splits=2, epochs=60).fit(data, split=0)
    means.append(read_gates(model).overall())

# %%
# The more neighbours agree, the more is absorbed. The node keeps itself throughout.

figure, axes = plt.subplots()
for gate, label, look in GATES:
    values = [getattr(mean, gate) for mean in means]
    axes.plot(HOMOPHILIES, values, marker=MARKERS[look.symbol], color=look.colour, label=label)
axes.set(xlabel="homophily", ylabel="mean of the gate", ylim=(0, 1.04))
axes.legend(loc="lower right")
plt.show()
