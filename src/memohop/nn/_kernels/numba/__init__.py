"""CPU kernels in Numba: functions of tensors (``*kernels``) and the loops that they run."""
