"""
A leak found by the audit
=========================

Pages were saved twice: half of the nodes of this graph have a twin that points to exactly the same
nodes. Links, features and labels are otherwise random, so there is nothing to learn. A model scores
well all the same, and the audit says why before anything is trained.
"""

import matplotlib.pyplot as plt
import numpy as np
import torch
from torch_geometric.data import Data

import memohop
from memohop.report.palette import HUES

# %%
# Three hundred pages with four links each; two hundred of them are there twice.

draw = np.random.default_rng(1)
pages, copies = 300, 200
label = draw.integers(3, size=pages)
links = np.array([draw.choice(pages, 4, replace=False) for _ in range(pages)])
label, links = np.append(label, label[:copies]), np.vstack([links, links[:copies]])
total = pages + copies
part = draw.choice(3, size=total, p=(0.5, 0.25, 0.25))
data = Data(
    x=torch.from_numpy(draw.normal(size=(total, 8)).astype("float32")),
    y=torch.from_numpy(label),
    edge_index=torch.from_numpy(np.stack([np.repeat(np.arange(total), 4), links.ravel()])),
    train_mask=torch.from_numpy(part == 0),
    val_mask=torch.from_numpy(part == 1),
    test_mask=torch.from_numpy(part == 2),
)

# %%
# The audit, without a single test label:

for warning in memohop.audit(data).advice.distrust:
    print(warning)

# %%
# A model that sees which nodes a node points to:

model = memohop.GraphClassifier(models=["linear+rows"], trials=4).fit(data)
right = model.predict() == label
seen = {tuple(sorted(row)) for row in links[part != 2]}
twin = np.array([tuple(sorted(row)) in seen for row in links])
test = part == 2
shares = [100 * right[test & twin].mean(), 100 * right[test & ~twin].mean()]

# %%
# Its score is that of the twins. On pages that are there once it guesses.

figure, axes = plt.subplots(figsize=(7.2, 3.2))
names = [f"with a twin ({(test & twin).sum()})", f"without ({(test & ~twin).sum()})"]
bars = axes.barh(names, shares, color=[HUES["orange"], HUES["blue"]], height=0.55)
axes.bar_label(bars, fmt="%.0f %%", label_type="center", color="white", weight="bold")
axes.axvline(100 / 3, color="grey", linestyle=":", linewidth=1.4)
axes.annotate("chance", (34.5, 1.38), color="grey")
axes.set(xlabel="test nodes that were right, %", xlim=(0, 108), ylim=(-0.5, 1.6))
axes.grid(axis="y", visible=False)
plt.show()
