"""What all tests share.

Of the environment, ``MEMOHOP_TEST_SEED`` moves the seeds (see ``numerics.py``),
``MEMOHOP_TEST_THREADS`` is the number of PyTorch's threads, and with ``MEMOHOP_TEST_NUMBA=0`` there
is no Numba; ``make matrix`` goes through them.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

if os.environ.get("MEMOHOP_TEST_NUMBA") == "0":
    sys.modules["numba"] = None  # type: ignore[assignment]  # its import fails

import torch

import memohop.pyg  # noqa: F401  # before a test imports PyG with its warning, an error here
import numerics

# The graphs of the tests are small: more threads only wait.
torch.set_num_threads(int(os.environ.get("MEMOHOP_TEST_THREADS", "1")))

try:
    from hypothesis import HealthCheck, settings
except ImportError:  # tests without properties, such as those for a GPU, need none
    pass
else:
    # The same examples on every machine in `make test`; `make fuzz` takes new ones, and many.
    _PROPERTIES = settings(
        deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
    )
    settings.register_profile("test", _PROPERTIES, max_examples=100, derandomize=True)
    settings.register_profile("fuzz", _PROPERTIES, max_examples=2000)
    settings.load_profile("test")


@pytest.fixture(autouse=True)
def _random_numbers_from_the_base_seed():
    torch.manual_seed(numerics.seeded())


@pytest.fixture
def float64():
    """All of a test in float64."""
    with numerics.in_float64():
        yield


@pytest.fixture
def one_thread():
    """The CPU kernels share out members and leave few of them to PyTorch's threads."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


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
