"""The kinds of model that a fit chooses from, one file each."""
