"""Measurements: how fast it is, side by side with stock PyG."""
