"""Trained networks over a whole graph, some nodes at a time."""

from memohop.inference.blocks import Blocks as Blocks
from memohop.inference.blocks import block_logits as block_logits
