"""What all tests share."""

from __future__ import annotations

import os
import warnings
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

with warnings.catch_warnings():
    # Its import calls `torch.jit.script`, which is deprecated; the tests turn warnings into errors.
    warnings.simplefilter("ignore", DeprecationWarning)
    import torch_geometric  # noqa: F401

import torch

torch.set_num_threads(1)  # the graphs of the tests are small: more threads only wait


# The same examples on every machine in `make test`; `make fuzz` takes new ones, and many of them.
_PROPERTIES = settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
settings.register_profile("test", _PROPERTIES, max_examples=100, derandomize=True)
settings.register_profile("fuzz", _PROPERTIES, max_examples=2000)
settings.load_profile("test")


@pytest.fixture(scope="session")
def data_root() -> Path:
    """A local folder with the published files; tests that need them are skipped without one."""
    beside = Path(__file__).resolve().parents[2] / "shared" / "data"
    root = Path(os.environ.get("MEMOHOP_DATA") or beside)
    if not root.is_dir():
        pytest.skip(
            f"there are no published data files in {root}; set MEMOHOP_DATA to their folder"
        )
    return root
