"""Speed beside stock layers of PyTorch Geometric."""
