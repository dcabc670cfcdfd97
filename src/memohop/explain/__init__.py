"""Which nodes use messages from their neighbours, and from which of them."""

from memohop.explain.fit import FitExplanation as FitExplanation
from memohop.explain.fit import explain_fit as explain_fit
from memohop.explain.gates import GateReadout as GateReadout
from memohop.explain.pyg import as_pyg as as_pyg
