"""The study of the paper and the fair table: experiments, runs, statistics, results and pages.

It stands beside the library and uses it as anyone would: ``python -m study`` from a checkout.
"""

from pathlib import Path

ROOT = Path(__file__).parents[1]
"""The checkout."""
EXPERIMENTS = Path(__file__).parent / "experiments"
RESULTS = Path(__file__).parent / "results"
