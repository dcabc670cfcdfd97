"""Kernels: the code that computes an operation on one device, without derivatives."""
