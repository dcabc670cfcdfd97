"""
A hundred learning rates at once
================================

A population is many networks trained as one. Here a hundred copies of the same network differ in
their learning rate alone, from one in ten thousand to three, and one call trains them.
"""

import time

import matplotlib.pyplot as plt
import numpy as np

import memohop
from memohop.report.palette import HUES

data = memohop.load("csbm", homophily=0.1, nodes=200, strength=0.35)
rates = np.logspace(-4, 0.5, 100)
members = memohop.grid(lr=rates.tolist())

start = time.perf_counter()
results = memohop.train(data, "gcn+mmp", members, options={"hidden_channels": 16}, epochs=40)
seconds = time.perf_counter() - start
print(f"{len(results)} networks of {results[0].epochs} epochs took {seconds:.1f} seconds")

# %%
# Each network keeps its best epoch on validation. A rate that is too low has not got there after
# forty epochs; one that is too high never does.

figure, axes = plt.subplots()
scores = [100 * result.val for result in results]
axes.scatter(rates, scores, s=26, color=HUES["blue"], alpha=0.75)
best = memohop.select(results).setting["lr"]
axes.axvline(best, color=HUES["orange"], linewidth=1.6)
axes.annotate(f"chosen: {best:.3g}", (best * 1.2, 45), color=HUES["orange"])
axes.set(xscale="log", xlabel="learning rate", ylabel="best validation accuracy, %")
plt.show()
