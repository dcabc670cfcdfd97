"""Experiments, the store of their runs, and measurements beside stock PyG."""
