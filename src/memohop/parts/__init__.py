"""A graph in parts: each process holds the rows of some nodes, and only the graph communicates."""
