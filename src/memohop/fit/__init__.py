"""Your own graph: a search for the best model, and a model that can be saved and used."""
