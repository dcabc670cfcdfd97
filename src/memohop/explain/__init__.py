"""Which nodes use messages from their neighbours, and from which of them."""

from memohop.explain._fit import FitExplanation as FitExplanation
from memohop.explain._fit import explain_fit as explain_fit
from memohop.explain._pyg import as_pyg as as_pyg
from memohop.explain.gates import GateReadout as GateReadout
