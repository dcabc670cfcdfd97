"""Differentiable operations with their own backward passes and ``vmap`` rules."""
