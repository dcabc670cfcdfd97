"""The method: memory-based message passing, its gate and regulariser, and the graph product."""

from memohop.nn.convolution import DirectedConv as DirectedConv
from memohop.nn.convolution import GraphConv as GraphConv
from memohop.nn.convolution import InitialResidualConv as InitialResidualConv
from memohop.nn.convolution import IsomorphismConv as IsomorphismConv
from memohop.nn.convolution import SageConv as SageConv
from memohop.nn.decoupling import decoupling_loss as decoupling_loss
from memohop.nn.dropout import Dropout as Dropout
from memohop.nn.features import FeatureLinear as FeatureLinear
from memohop.nn.features import SparseFeatures as SparseFeatures
from memohop.nn.graph import Graph as Graph
from memohop.nn.graph_attention import DynamicGraphAttention as DynamicGraphAttention
from memohop.nn.graph_attention import GraphAttention as GraphAttention
from memohop.nn.mmp import MMP as MMP
from memohop.nn.mmp import MemoryGate as MemoryGate
from memohop.nn.normalisation import BatchNorm as BatchNorm
from memohop.nn.randomness import epoch_key as epoch_key
from memohop.nn.randomness import randomness as randomness
