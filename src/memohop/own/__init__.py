"""Your own graph: what to search, how to choose, and a model that can be kept and used."""
