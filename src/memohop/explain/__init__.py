"""Which nodes use messages from their neighbours, and from which of them."""

from memohop.explain.fit import FitExplanation as FitExplanation
from memohop.explain.fit import explain_fit as explain_fit
from memohop.explain.gates import GateReadout as GateReadout
from memohop.explain.gates import read_gates as read_gates
from memohop.explain.node import NodeExplanation as NodeExplanation
from memohop.explain.node import explain_node as explain_node
from memohop.explain.pyg import as_pyg as as_pyg
