"""Kernels in plain PyTorch."""
