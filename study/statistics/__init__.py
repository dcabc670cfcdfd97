"""What the results say: comparisons, ranks, the value of a plug-in."""
