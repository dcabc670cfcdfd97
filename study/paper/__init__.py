"""The study of the paper: what it printed, Table 1 beside it, the curves of its figures, gates."""
