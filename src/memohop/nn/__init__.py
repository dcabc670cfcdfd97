"""The method: memory-based message passing, its gate and regulariser, and the graph product.

Public is what ``__all__`` lists; the other names below are for the rooms above.
"""

from memohop.nn._convolution import DirectedConv as DirectedConv
from memohop.nn._convolution import GraphConv as GraphConv
from memohop.nn._convolution import InitialResidualConv as InitialResidualConv
from memohop.nn._convolution import IsomorphismConv as IsomorphismConv
from memohop.nn._convolution import SageConv as SageConv
from memohop.nn._decoupling import FORMS as FORMS
from memohop.nn._decoupling import decoupling_loss as decoupling_loss
from memohop.nn._decoupling import network_decoupling_loss as network_decoupling_loss
from memohop.nn._dropout import Dropout as Dropout
from memohop.nn._edges import ArcWeightConv as ArcWeightConv
from memohop.nn._edges import RelationConv as RelationConv
from memohop.nn._features import FeatureLinear as FeatureLinear
from memohop.nn._features import SparseFeatures as SparseFeatures
from memohop.nn._features import linear_map as linear_map
from memohop.nn._graph import Graph as Graph
from memohop.nn._graph import ReweightedGraph as ReweightedGraph
from memohop.nn._graph_attention import DynamicGraphAttention as DynamicGraphAttention
from memohop.nn._graph_attention import GraphAttention as GraphAttention
from memohop.nn._mmp import MMP as MMP
from memohop.nn._mmp import Gates as Gates
from memohop.nn._mmp import MemoryGate as MemoryGate
from memohop.nn._mmp import keep_and_absorb as keep_and_absorb
from memohop.nn._normalisation import BatchNorm as BatchNorm
from memohop.nn._operation import Operation as Operation
from memohop.nn._operation import kernels_for as kernels_for
from memohop.nn._ops.pattern import FixedMatrix as FixedMatrix
from memohop.nn._ops.pattern import Pattern as Pattern
from memohop.nn._ops.pattern import fixed_product as fixed_product
from memohop.nn._ops.products import inner as inner
from memohop.nn._ops.products import row_sums as row_sums
from memohop.nn._ops.products import weighted_product as weighted_product
from memohop.nn._part import Axis as Axis
from memohop.nn._part import BothWays as BothWays
from memohop.nn._part import Part as Part
from memohop.nn._part import in_part as in_part
from memohop.nn._randomness import epoch_key as epoch_key
from memohop.nn._randomness import randomness as randomness
from memohop.nn._recomputation import recomputed as recomputed

__all__ = [
    "MMP",
    "ArcWeightConv",
    "BatchNorm",
    "DirectedConv",
    "Dropout",
    "DynamicGraphAttention",
    "FeatureLinear",
    "Graph",
    "GraphAttention",
    "GraphConv",
    "InitialResidualConv",
    "IsomorphismConv",
    "MemoryGate",
    "RelationConv",
    "SageConv",
    "SparseFeatures",
    "decoupling_loss",
    "epoch_key",
    "randomness",
]
