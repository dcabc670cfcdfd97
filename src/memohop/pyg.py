"""PyTorch Geometric, imported nowhere else, and without the warning of its import.

It calls ``torch.jit.script``, which PyTorch has deprecated; our users can do nothing about that.
"""

import warnings

with warnings.catch_warnings():
    warnings.filterwarnings("ignore", message=r"`torch\.jit\.script` is ")
    from torch_geometric.data import Data as Data
    from torch_geometric.data.data import BaseData as BaseData
    from torch_geometric.nn import GATConv as GATConv
    from torch_geometric.nn import GCNConv as GCNConv
    from torch_geometric.nn import LGConv as LGConv
    from torch_geometric.nn import Sequential as Sequential
    from torch_geometric.nn.conv.gcn_conv import gcn_norm as gcn_norm
    from torch_geometric.utils import is_undirected as is_undirected
