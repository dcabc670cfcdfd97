"""
Four workers
============

A graph can be cut into blocks, one for each worker, and a network trained on it as if it were in
one piece. Each worker holds the nodes of its block, and asks the others for the states of
neighbours outside. The workers are processes of Ray (``pip install 'memohop[ray,metis]'``).
"""

import matplotlib.pyplot as plt
import numpy as np
import torch
from sklearn.neighbors import kneighbors_graph
from torch_geometric.data import Data

import memohop
from memohop.parts.partition import partition
from memohop.report.palette import HUES

# %%
# Six hundred villages, each linked to the five nearest. There are three classes, in stripes from
# west to east, and features that say only a little about them.

draw = np.random.default_rng(3)
at = draw.random((600, 2))
y = (6 * at[:, 0]).astype(int) % 3
edge_index = np.stack(kneighbors_graph(at, 5).nonzero())
part = draw.choice(3, size=600, p=(0.5, 0.25, 0.25))
data = Data(
    x=torch.from_numpy((np.eye(3)[y] + draw.normal(scale=1.5, size=(600, 3))).astype("float32")),
    y=torch.from_numpy(y),
    edge_index=torch.from_numpy(edge_index).long(),
    train_mask=torch.from_numpy(part == 0),
    val_mask=torch.from_numpy(part == 1),
    test_mask=torch.from_numpy(part == 2),
)

# %%
# One process, then four. One argument is the difference; ``say`` prints what is done and why.

given = {"members": memohop.grid(lr=0.02), "options": {"hidden_channels": 32}, "epochs": 60}
(alone,) = memohop.train(data, "gcn+mmp", **given)
(together,) = memohop.train(data, "gcn+mmp", **given, workers=4, cut="metis", say=print)

difference = np.abs(alone.loss_curve - together.loss_curve).max()
print(f"the losses of all {together.epochs} epochs differ by at most {difference:.0e}")
print(f"best epoch: {alone.best_epoch} and {together.best_epoch}")

# %%
# What does each worker hold? The nodes of its block, with their features and arcs. Where an arc was
# cut, it fetches the state of the node at the other end whenever the network multiplies by the
# graph.

blocks = partition(data.edge_index, 600, 4, method="metis")
owner = np.empty(600, dtype=int)
for worker in range(4):
    owner[blocks.nodes(worker)] = worker
both_ways = np.hstack([edge_index, edge_index[::-1]])
crosses = owner[both_ways[0]] != owner[both_ways[1]]
for worker in range(4):
    fetched = np.unique(both_ways[1][crosses & (owner[both_ways[0]] == worker)])
    print(f"worker {worker}: {(owner == worker).sum()} nodes of its own, {len(fetched)} fetched")

# %%
# On the left are the four blocks, with the arcs that were cut in grey; on the right the losses,
# which coincide. Dropout makes them zigzag, and even that is the same: which values are dropped
# depends on the position in the whole graph, not on the worker.

colour = np.array([HUES[name] for name in ("blue", "orange", "green", "purple")])
figure, (left, right) = plt.subplots(1, 2, figsize=(9.2, 4.2))
for source, target in both_ways[:, crosses].T:
    left.plot(*at[[source, target]].T, color="grey", linewidth=1.2, zorder=1)
left.scatter(*at.T, s=14, c=colour[owner], zorder=2)
left.set_axis_off()
left.set_title("four blocks")
epochs = np.arange(1, together.epochs + 1)
right.plot(epochs, alone.loss_curve, color="grey", linewidth=5, alpha=0.5, label="one process")
right.plot(epochs, together.loss_curve, color=HUES["blue"], linewidth=1.6, label="four workers")
right.set(xlabel="epoch", ylabel="training loss")
right.legend()
plt.show()
