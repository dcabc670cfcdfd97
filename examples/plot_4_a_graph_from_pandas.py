"""
A graph from pandas
===================

``read_graph`` takes two tables: names of files, or data frames as they are. These are of pandas;
frames of polars and tables of pyarrow go in the same place.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

import memohop
from memohop.report.palette import HUES

# %%
# A town with three trades, in which each shop buys from the next trade. A third of the trades are
# unknown.

draw = np.random.default_rng(7)
trades = np.array(["baker", "smith", "weaver"])
trade = draw.integers(3, size=150)
known = draw.random(150) < 0.67
nodes = pd.DataFrame(
    {
        "id": np.arange(150),
        "workers": draw.normal(2 + 2 * trade, 2).round(1),
        "street": draw.choice(["High Street", "Mill Lane", "Dock Road"], 150),
        "trade": pd.Series(trades[trade]).where(known),
    }
)
buyer = np.repeat(np.arange(150), 3)
sellers = [draw.choice(np.flatnonzero(trade == (trade[shop] + 1) % 3)) for shop in buyer]
edges = pd.DataFrame({"source": buyer, "target": sellers})
nodes.head()

# %%
# Two kinds of model are enough here: one that sees the columns, and one that sees the neighbours
# too.

graph = memohop.read_graph(nodes, edges, label="trade", directed=True)
model = memohop.GraphClassifier(models=["linear", "linear+neighbours"], trials=2).fit(graph)
print(model.report_.verdict())

# %%
# The predictions are one more column. Rings are shops whose trade was unknown, in the colour of the
# predicted one.

nodes["predicted"] = model.predict()
predicted = nodes["predicted"].map({name: number for number, name in enumerate(trades)}).to_numpy()
corner = np.array([[0.0, 1.0], [-0.87, -0.5], [0.87, -0.5]])
place = corner[trade] + draw.normal(scale=0.17, size=(150, 2))
colour = np.array([HUES["orange"], HUES["blue"], HUES["green"]])

figure, axes = plt.subplots(figsize=(7.2, 5.2))
for shop, seller in zip(buyer, sellers, strict=True):
    axes.plot(*place[[shop, seller]].T, color="grey", linewidth=0.4, alpha=0.35, zorder=1)
axes.scatter(*place[known].T, s=46, c=colour[trade[known]], zorder=2)
rings = {"s": 60, "facecolor": "none", "linewidth": 2}
axes.scatter(*place[~known].T, edgecolor=colour[predicted[~known]], zorder=3, **rings)
for name, at, tint in zip(trades, corner * 1.52 + [0, 0.06], colour, strict=True):
    axes.annotate(f"{name}s", at, color=tint, ha="center", va="center", fontsize=14, weight="bold")
axes.set_axis_off()
axes.set(xlim=(-1.9, 1.9), ylim=(-1.2, 1.75))
plt.show()
