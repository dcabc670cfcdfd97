"""PyTorch Geometric, imported here alone, and without the warning that its import gives.

It calls ``torch.jit.script``, which PyTorch has deprecated: a matter between the two, of which
users of this library need not hear.
"""

import warnings

with warnings.catch_warnings():
    warnings.filterwarnings("ignore", message=r"`torch\.jit\.script` is ")
    from torch_geometric.data import Data as Data
    from torch_geometric.nn import GATConv as GATConv
    from torch_geometric.nn import GCNConv as GCNConv
    from torch_geometric.nn import LGConv as LGConv
    from torch_geometric.nn.conv.gcn_conv import gcn_norm as gcn_norm
    from torch_geometric.utils import is_undirected as is_undirected
