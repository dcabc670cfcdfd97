"""Trained networks over a whole graph, some nodes at a time."""

from memohop.inference.blocks import Blocks as Blocks
from memohop.inference.reading import ReadOut as ReadOut
from memohop.inference.reading import probabilities as probabilities
from memohop.inference.reading import read_out as read_out
