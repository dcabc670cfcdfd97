"""GPU kernels, in Triton."""
