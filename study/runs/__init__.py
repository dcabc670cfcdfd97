"""Experiments, their cells and runs, the store, and who trains them."""
