"""Kernels: what computes an operation on a device, without derivatives."""
