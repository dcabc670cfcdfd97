"""One paper per file, plain modules, and the registry from id to network."""

from memohop.networks.base import NodeModel as NodeModel
from memohop.networks.memory import MemoryNetwork as MemoryNetwork
from memohop.networks.registry import build as build
from memohop.networks.registry import models as models
