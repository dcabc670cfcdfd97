"""The kinds of model that a fit chooses from, each in a file of its own."""
